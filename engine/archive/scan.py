"""The scan of one file in the first pass over an archive: its parts, and the tables of its rows.

Events are grouped as for decoding, but no value is decoded. Statements change the model of all tables, which
begins as it was before the file. Rows are counted only in a file that is divided: a part's numbers depend on
those before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from engine.archive.entry_numbers import EntryNumbers
from engine.archive.files import ArchiveFile, open_file
from engine.archive.reading import (
    CorruptFileError,
    FilePart,
    Reading,
    packed_model,
    part_batches,
    unpacked_model,
    with_skip,
)
from engine.archive.rolled_back import XaStep, XaSteps
from engine.binlog.event_table import EventTableError
from engine.config.decode_options import DecodeOptions
from engine.dataclass import dataclass
from engine.decode.batch_entries import batch_entries, batch_tables
from engine.decode.batch_walk import BatchWalk, corruption_at
from engine.decode.rows.prepared import XaEvents
from engine.decode.tables.table_decoder import TableDecoder
from engine.net.batching.outgoing_batch import OutgoingBatch
from engine.schema.model import SchemaModel


class ScanStopped(Exception):
    """The scan was no longer wanted."""


@dataclass(frozen=True, slots=True)
class FileScan:
    """What the scan of a file has found."""

    parts: tuple[FilePart, ...]
    """In order."""
    tables: tuple[TableDecoder, ...]
    """Of the file's rows, in the order of their first ones in each part."""
    model: SchemaModel
    """As it is after the file."""
    is_counted: bool
    """The entries were counted, which takes the tables with rows before the file into account."""
    xa_steps: tuple[XaStep, ...]


def scan_file(
    whole: FilePart, reading: Reading, part_bytes: int | None, is_stopped: Callable[[], bool] = lambda: False
) -> FileScan:
    """Scan a file, from the state before it that `whole` has.

    If it is not compressed, it is divided into parts of at least `part_bytes`, if that makes more than one;
    None does not divide it. Raises `EngineError` for what cannot be read, with the place of damage, and
    `ScanStopped` soon after `is_stopped`.
    """

    def check() -> None:
        if is_stopped():
            raise ScanStopped

    most_bytes = part_bytes if part_bytes is not None and _is_divided(whole.file, part_bytes) else None
    parts: list[FilePart] = []
    decoders: list[TableDecoder] = []
    steps: list[XaStep] = []
    next_part: FilePart | None = whole
    while next_part is not None:
        part, tables, next_part = _scan_part(next_part, reading, most_bytes, check)
        parts.append(part)
        decoders += tables.kept
        steps += tables.xa.steps
    return FileScan(tuple(parts), tuple(decoders), tables.model, most_bytes is not None, tuple(steps))


def _is_divided(file: ArchiveFile, part_bytes: int) -> bool:
    if file.size <= part_bytes:
        return False
    opened = open_file(file)
    opened.stream.close()
    return opened.size is not None


def _scan_part(
    part: FilePart, reading: Reading, part_bytes: int | None, check: Callable[[], None]
) -> tuple[FilePart, _TablesOfPart, FilePart | None]:
    """The part with its end, its tables, and what comes after it in the file; None for nothing."""
    while True:
        tables = _TablesOfPart(part, reading.decode, counts=part_bytes is not None)
        try:
            for batch in part_batches(part, tables.model, reading, check):
                tables.take(batch)
                end = batch.header.status.resume.position
                if part_bytes is not None and end - part.begin >= part_bytes and tables.may_end(batch):
                    return replace(part, end=end), tables, _following(part, tables, end)
            return part, tables, None
        except CorruptFileError as damage:
            part = replace(part, skips=with_skip(part.skips, damage, reading))


def _following(part: FilePart, tables: _TablesOfPart, end: int) -> FilePart | None:
    if end >= part.file.size:
        return None
    return replace(
        part,
        schema=packed_model(tables.model),
        tables_with_rows=tables.numbers.tables_with_rows,
        begin=end,
        entries_before=tables.numbers.kept_entries,
    )


class _TablesOfPart:
    """The table definitions that rows of a part are of, without those of dropped transactions.

    `counts`: its entries are counted, too.
    """

    def __init__(self, part: FilePart, options: DecodeOptions, *, counts: bool) -> None:
        self.model = unpacked_model(part.schema)
        """Follows the part's statements."""
        self.numbers = EntryNumbers(part)
        self.xa = XaSteps()
        self._file = part.file.name
        self._counts = counts
        self._walk = BatchWalk(options)
        self._open: dict[int, TableDecoder] = {}
        self._kept: dict[int, TableDecoder] = {}

    @property
    def kept(self) -> list[TableDecoder]:
        """In the order of their first rows."""
        return list(self._kept.values())

    def may_end(self, batch: OutgoingBatch) -> bool:
        """Whether another part can begin after the batch, the last one that was taken.

        The batcher is ahead of it: what it has read after the batch must not have changed the model. After
        the record of dropped events it is behind: it takes their statements as lost only then.
        """
        status, latest = batch.header.status, self.model.latest
        return (
            status.ends_transaction
            and batch.header.dropped is None
            and status.resume.file == self._file
            and (latest is None or latest < status.resume)
        )

    def take(self, batch: OutgoingBatch) -> None:
        """The tables of a batch. Raises `CorruptFileError` for a damaged event."""
        status = batch.header.status
        if status.aborts_transaction:
            self._open.clear()
            self.numbers.drop()
        found, xa = self._counted(batch) if self._counts else self._found(batch)
        self.xa.take(batch.header, xa)
        for decoder in found:
            self._open.setdefault(id(decoder), decoder)
        if status.ends_transaction:
            self._kept |= {key: each for key, each in self._open.items() if key not in self._kept}
            self._open.clear()
            self.numbers.keep()

    def _counted(self, batch: OutgoingBatch) -> tuple[Sequence[TableDecoder], XaEvents]:
        try:
            entries = batch_entries(self._walk, batch.header, batch.index, batch.data)
        except EventTableError as broken:
            raise _damage(broken, batch) from broken
        self.numbers.add(entries.number, [(each.database, each.table) for each in entries.tables])
        for _ in self.numbers.emptied(batch.header.status, entries.statement):
            pass
        return entries.tables, entries.xa

    def _found(self, batch: OutgoingBatch) -> tuple[Sequence[TableDecoder], XaEvents]:
        try:
            found = batch_tables(self._walk, batch.header, batch.index, batch.data)
            return found.tables, found.xa
        except EventTableError as broken:
            raise _damage(broken, batch) from broken


def _damage(error: EventTableError, batch: OutgoingBatch) -> Exception:
    corruption = corruption_at(error, batch.index, batch.data)
    return error if corruption is None else CorruptFileError(corruption)
