"""The first pass over an archive: what each file's rows need, and the schemas of all rows.

The files are read in order, and their events are grouped as for decoding, but no row is looked at. The model
of all tables follows the statements, so that its state where a file begins is the one that a decoding of all
files before it would reach.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from engine.archive.files import ArchiveFile
from engine.archive.reading import (
    CorruptFileError,
    FilePart,
    Reading,
    TableKey,
    packed_model,
    part_batches,
    unpacked_model,
    with_skip,
)
from engine.binlog import event_types as types
from engine.binlog.event_table import EventTableError, open_events
from engine.binlog.format_description import FormatDescription
from engine.config.decode_options import DecodeOptions
from engine.decode.arrow.codec import Options
from engine.decode.batch import corruption_at
from engine.decode.rows.event_groups import feed_table, group_events
from engine.decode.rows.expand import expand_compressed
from engine.decode.tables.table_decoder import TableDecoder, TableDecoders
from engine.errors import EngineError, EventError
from engine.net.batching.outgoing_batch import OutgoingBatch
from engine.schema.model import SchemaModel


@dataclass(frozen=True, slots=True)
class Survey:
    """What the first pass has found."""

    parts: tuple[FilePart, ...]
    """One per file, in order."""
    schemas: dict[TableKey, tuple[pa.Schema, ...]]
    """Of each wanted table with rows the schemas of its rows, in the order in which they appear."""


def survey(files: Sequence[ArchiveFile], model: SchemaModel, reading: Reading) -> Survey:
    """Read the files; `model` has the definitions at the start of the first one, and follows the statements.

    Raises `EngineError` for what cannot be read, with the place of damage.
    """
    found: dict[TableKey, dict[bytes, pa.Schema]] = {}
    parts = []
    for file, following in zip(files, [*files[1:], None], strict=True):
        name = None if following is None else following.name
        part = FilePart(file, packed_model(model), tuple(found), name)
        while True:
            tables = _TablesOfFile(reading.decode)
            try:
                for batch in part_batches(part, model, reading):
                    tables.take(batch)
                break
            except CorruptFileError as damage:
                part = replace(part, skips=with_skip(part.skips, damage, reading))
                model = unpacked_model(part.schema)
        parts.append(part)
        for decoder in tables.kept:
            of_table = found.setdefault((decoder.database, decoder.table), {})
            of_table.setdefault(decoder.schema_bytes, decoder.schema)
    return Survey(tuple(parts), {table: tuple(schemas.values()) for table, schemas in found.items()})


class _TablesOfFile:
    """The table definitions that rows of a file are of, without those of dropped transactions."""

    def __init__(self, options: DecodeOptions) -> None:
        self._tables = TableDecoders(Options(options.temporal_text), options.tables, options.names_needed)
        self._feed = feed_table(options.bookkeeping_events)
        self._open: dict[int, TableDecoder] = {}
        self._kept: dict[int, TableDecoder] = {}

    @property
    def kept(self) -> list[TableDecoder]:
        """In the order of their first rows."""
        return list(self._kept.values())

    def take(self, batch: OutgoingBatch) -> None:
        """The tables of a batch. Raises `CorruptFileError` for a damaged event."""
        status = batch.header.status
        if status.aborts_transaction:
            self._open.clear()
        if batch.header.context_events and batch.header.dropped is None:
            for decoder in self._found(batch):
                self._open.setdefault(id(decoder), decoder)
        if status.ends_transaction:
            self._kept |= {key: each for key, each in self._open.items() if key not in self._kept}
            self._open.clear()

    def _found(self, batch: OutgoingBatch) -> list[TableDecoder]:
        header, index, data = batch.header, batch.index, batch.data
        start = int(index[0, 0])
        size = int.from_bytes(data[start + 9 : start + 13].tobytes(), "little")
        description = FormatDescription.parse(data[start : start + size].tobytes())
        events, error = open_events(
            header.file, data, index, header.context_events, header.position, description.checksum_length
        )
        if error is not None:
            raise _damage(error, batch)
        description = description.without_checksums()
        try:
            events = expand_compressed(events, description)
            groups = group_events(events, description.post_header_length(types.QUERY_EVENT), self._feed)
        except EventTableError as broken:
            raise _damage(broken, batch) from broken
        used = np.bincount(groups.rows_slots, minlength=len(groups.table_maps))
        found = []
        for event in groups.table_maps[used > 0]:
            try:
                decoder = self._tables.find(events.event(event).tobytes(), description, header.catalog)
            except EngineError as failure:
                reason = failure.reason if isinstance(failure, EventError) else str(failure)
                raise _damage(events.error(int(event), reason, failure.corrupt), batch) from failure
            if decoder is not None:
                found.append(decoder)
        return found


def _damage(error: EventTableError, batch: OutgoingBatch) -> Exception:
    corruption = corruption_at(error, batch.index, batch.data)
    return error if corruption is None else CorruptFileError(corruption)
