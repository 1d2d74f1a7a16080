"""The change rows of one file of an archive: batches decoded in this process, in order.

`_seq` is the file's number times 2³² plus the number of the entry in its file, counted from 1 as the sink
counts: rows of the wanted tables, events of the feed, and `truncate` rows. Rows of a transaction that does
not fit into one batch are kept until it ends, since a rollback or damage may drop them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from engine.archive.files import ArchiveFile
from engine.archive.open_transaction import OpenTransaction
from engine.archive.reading import (
    CorruptFileError,
    FilePart,
    Reading,
    TableKey,
    part_batches,
    unpacked_model,
    with_skip,
)
from engine.binlog.position import BinlogPosition
from engine.decode.batch import BatchDecoder
from engine.errors import EngineError
from engine.net.batching.outgoing_batch import OutgoingBatch
from engine.output.change_schema import METADATA_FIELDS, as_in_files, to_file_message
from engine.pipeline.messages import Result, StatementFacts, TableResult
from engine.schema.changes import TableName
from engine.sink.schema_changes import divided
from engine.sink.transit_rows import opened
from engine.sink.truncate_row import truncate_row

ENTRY_BITS = 32
"""Bits of `_seq` for the number of the entry in its file."""
_MORE_ROOM = 1 << 22
"""Bytes for the result of a batch, in addition to the batch's size."""
_TRUNCATE_SCHEMA = pa.schema(METADATA_FIELDS)


@dataclass(frozen=True, slots=True)
class TableRows:
    """Some rows of one table, as data files have them."""

    table: TableKey
    rows: pa.RecordBatch


def change_rows(part: FilePart, reading: Reading) -> Iterator[TableRows]:
    """The rows of the file's finished transactions, and the entries of its events feed.

    Those of one table come in order of `_seq`. Raises `EngineError` for what cannot be decoded, with the
    place of damage; nothing of the transaction that has it was returned then.
    """
    last_seq = 0
    while True:
        try:
            for found in _FileDecoder(part, reading).rows():
                # After a corrupt event the file is read again: what comes before it was returned already.
                numbers = found.rows.column("_seq").to_numpy()
                first = int(np.searchsorted(numbers, last_seq, side="right"))
                if first < len(numbers):
                    yield TableRows(found.table, found.rows.slice(first)) if first else found
            return
        except _Interrupted as interrupted:
            last_seq = interrupted.last_seq
            part = replace(part, skips=with_skip(part.skips, interrupted.damage, reading))


class _Interrupted(Exception):
    """Damage after all entries up to `last_seq`."""

    def __init__(self, damage: CorruptFileError, last_seq: int) -> None:
        super().__init__(str(damage))
        self.damage = damage
        self.last_seq = last_seq


class _FileDecoder:
    """Decodes a file once, up to its end or to damage."""

    def __init__(self, part: FilePart, reading: Reading) -> None:
        self._part = part
        self._reading = reading
        self._decoder = BatchDecoder(reading.decode)
        self._first_seq = part.file.number << ENTRY_BITS
        self._last_seq = self._kept_seq = self._first_seq
        self._open = OpenTransaction()
        self._known = dict.fromkeys(part.tables_with_rows)
        """Tables with rows, in the order of their first ones."""

    def rows(self) -> Iterator[TableRows]:
        """Raises `_Interrupted` for damage, and `EngineError`."""
        model = unpacked_model(self._part.schema)
        try:
            for batch in part_batches(self._part, model, self._reading):
                yield from self._decode(batch)
        except CorruptFileError as damage:
            raise _Interrupted(damage, self._kept_seq) from damage
        finally:
            self._open.drop()

    def _decode(self, batch: OutgoingBatch) -> Iterator[TableRows]:
        if batch.header.status.aborts_transaction:
            self._open.drop()
            self._last_seq = self._kept_seq
        memory = np.empty(len(batch.data) + _MORE_ROOM, np.uint8)
        result, contents = self._decoder.decode(batch.header, batch.index, batch.data, memory)
        failure = result.status.failure
        if failure is not None:
            corruption = failure.corruption
            raise EngineError(failure.message) if corruption is None else CorruptFileError(corruption)
        found = [
            _numbered(table, content, self._last_seq)
            for table, content in zip(result.tables, contents, strict=True)
        ]
        self._last_seq += result.ordinals
        self._known |= {(each.database, each.table): None for each in result.tables if each.table}
        found += self._emptied(result)
        _check_number(self._part.file, self._last_seq - self._first_seq)
        if not result.status.ends_transaction:
            for each in found:
                self._open.add(each.table, each.rows)
            return
        self._kept_seq = self._last_seq
        for table, rows in self._open.take():
            yield TableRows(table, rows)
        yield from found

    def _emptied(self, result: Result) -> Iterator[TableRows]:
        """A `truncate` row for each table with rows that the batch's last statement emptied."""
        if result.statement is None:
            return
        _, changes = divided(result)
        for change in changes:
            for name in change.emptied:
                for table in [table for table in self._known if _is_of(table, name)]:
                    self._last_seq += 1
                    yield _truncated(table, self._last_seq, change.position, result.statement)


def _is_of(table: TableKey, name: TableName) -> bool:
    return table == (name.database, name.table) or (not name.table and table[0] == name.database)


def _truncated(table: TableKey, seq: int, position: BinlogPosition, facts: StatementFacts) -> TableRows:
    message = truncate_row(_TRUNCATE_SCHEMA, seq, position, facts)
    schema = _TRUNCATE_SCHEMA.serialize().to_pybytes()
    return TableRows(table, as_in_files(opened(schema, message)))


def _numbered(table: TableResult, content: np.ndarray, base: int) -> TableRows:
    message, _ = to_file_message(content.data, table.sequence_at, table.rows, base)
    return TableRows((table.database, table.table), as_in_files(opened(table.schema, message)))


def _check_number(file: ArchiveFile, entries: int) -> None:
    if entries >= 1 << ENTRY_BITS:
        raise EngineError(
            f"{file.location} has more than 2^{ENTRY_BITS} change rows, for which `_seq` has no numbers: "
            "read fewer of its tables"
        )
