"""The change rows of a part of a file of an archive: batches decoded in this process, in order.

Rows get their `_seq` by the rules of `entry_numbers`. Those of a transaction that does not fit into one batch
are kept until it ends, since a rollback or damage may drop them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from engine.archive.entry_numbers import EntryNumbers
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
from engine.dataclass import dataclass
from engine.decode.batch import BatchDecoder
from engine.errors import EngineError
from engine.net.batching.outgoing_batch import OutgoingBatch
from engine.output.change_schema import METADATA_FIELDS, as_in_files, to_file_message
from engine.pipeline.messages import StatementFacts, TableResult
from engine.sink.transit_rows import opened
from engine.sink.truncate_row import truncate_row

_MORE_ROOM = 1 << 22
"""Bytes for the result of a batch, in addition to the batch's size."""
_TRUNCATE_SCHEMA = pa.schema(METADATA_FIELDS)


@dataclass(frozen=True, slots=True)
class TableRows:
    """Some rows of one table, as data files have them."""

    table: TableKey
    rows: pa.RecordBatch


def change_rows(part: FilePart, reading: Reading) -> Iterator[TableRows]:
    """The rows of the part's finished transactions, and the entries of its events feed.

    Those of one table come in order of `_seq`. Raises `EngineError` for what cannot be decoded, with the
    place of damage; nothing of the transaction that has it was returned then.
    """
    last_seq = 0
    while True:
        try:
            for found in _PartDecoder(part, reading).rows():
                # After a corrupt event the part is read again: what comes before it was returned already.
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


class _PartDecoder:
    """Decodes a part once, up to its end or to damage."""

    def __init__(self, part: FilePart, reading: Reading) -> None:
        self._part = part
        self._reading = reading
        self._decoder = BatchDecoder(reading.decode)
        self._numbers = EntryNumbers(part)
        self._open = OpenTransaction()

    def rows(self) -> Iterator[TableRows]:
        """Raises `_Interrupted` for damage, and `EngineError`."""
        model = unpacked_model(self._part.schema)
        try:
            for batch in part_batches(self._part, model, self._reading):
                yield from self._decode(batch)
        except CorruptFileError as damage:
            raise _Interrupted(damage, self._numbers.kept) from damage
        finally:
            self._open.drop()

    def _decode(self, batch: OutgoingBatch) -> Iterator[TableRows]:
        if batch.header.status.aborts_transaction:
            self._open.drop()
            self._numbers.drop()
        memory = np.empty(len(batch.data) + _MORE_ROOM, np.uint8)
        result, contents = self._decoder.decode(batch.header, batch.index, batch.data, memory)
        failure = result.status.failure
        if failure is not None:
            corruption = failure.corruption
            raise EngineError(failure.message) if corruption is None else CorruptFileError(corruption)
        tables = [(each.database, each.table) for each in result.tables if each.table]
        base = self._numbers.add(result.ordinals, tables)
        found = [
            _numbered(table, content, base) for table, content in zip(result.tables, contents, strict=True)
        ]
        for key, seq, change in self._numbers.emptied(result.status, result.statement):
            assert result.statement is not None
            found.append(_truncated(key, seq, change.position, result.statement))
        if not result.status.ends_transaction:
            for each in found:
                self._open.add(each.table, each.rows)
            return
        self._numbers.keep()
        for table, rows in self._open.take():
            yield TableRows(table, rows)
        yield from found


def _truncated(table: TableKey, seq: int, position: BinlogPosition, facts: StatementFacts) -> TableRows:
    message = truncate_row(_TRUNCATE_SCHEMA, seq, position, facts)
    schema = _TRUNCATE_SCHEMA.serialize().to_pybytes()
    return TableRows(table, as_in_files(opened(schema, message)))


def _numbered(table: TableResult, content: np.ndarray, base: int) -> TableRows:
    message, _ = to_file_message(content.data, table.sequence_at, table.rows, base)
    return TableRows((table.database, table.table), as_in_files(opened(table.schema, message)))
