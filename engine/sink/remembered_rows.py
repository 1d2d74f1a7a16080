"""The rows of small prepared transactions, kept in memory until these end.

Most transactions that are rolled back after XA PREPARE are small, and were prepared just before. Their rows
can be undone at once; to read those of others from the output, everything must be committed first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from engine.dataclass import dataclass
from engine.pipeline.messages import PreparedEntries, Result, TableResult
from engine.sink.staging import Rows
from engine.sink.transit_rows import opened
from engine.sink.undone_rows import TableRows, lacking_columns

MOST_BYTES = 1 << 20
"""Of the rows of one transaction."""
MOST_BYTES_IN_ALL = 16 << 20


@dataclass(frozen=True, slots=True)
class _Remembered:
    rows: list[TableRows]
    bytes: int


class RememberedRows:
    """Rows by XID, with the `_seq` that they have in the output."""

    def __init__(self) -> None:
        self._transactions: dict[str, _Remembered] = {}
        self._bytes = 0

    def look_at(self, result: Result, frames: Sequence[Rows], last_seq: int, *, is_open: bool) -> None:
        """A result comes after the entry `last_seq`, and is not changed yet.

        `is_open`: its first transaction began in an earlier one.
        """
        if result.xa is not None:
            for xid in result.xa.committed:
                self.take(xid)
            for entries in result.xa.prepared:
                self.take(entries.xid)
                if entries.first or not is_open:
                    self._remember(entries, result, frames, last_seq)
        if any(change.emptied for change in result.status.schema_changes):
            self.clear()

    def take(self, xid: str) -> list[TableRows] | None:
        """The rows of a transaction, which are not kept here any longer; None if it is not known."""
        found = self._transactions.pop(xid, None)
        if found is None:
            return None
        self._bytes -= found.bytes
        return found.rows

    def clear(self) -> None:
        """Rows from before some table was emptied, or its snapshot began, may not count any more."""
        self._transactions.clear()
        self._bytes = 0

    def _remember(
        self, entries: PreparedEntries, result: Result, frames: Sequence[Rows], last_seq: int
    ) -> None:
        rows: list[TableRows] = []
        """The parts of a table backwards."""
        size = 0
        for table, part in _parts(entries, result.tables, frames):
            size += part.nbytes
            if size > MOST_BYTES or self._bytes + size > MOST_BYTES_IN_ALL or lacking_columns(part):
                return
            rows.insert(0, TableRows(table.database, table.table, table.schema, _copied(part, last_seq)))
        if rows:
            self._transactions[entries.xid] = _Remembered(rows, size)
            self._bytes += size


def _parts(
    entries: PreparedEntries, tables: Sequence[TableResult], frames: Sequence[Rows]
) -> Iterator[tuple[TableResult, pa.RecordBatch]]:
    """The transaction's rows of each table."""
    for table, frame in zip(tables, frames, strict=True):
        if not table.table:
            continue
        rows = frame if isinstance(frame, pa.RecordBatch) else opened(table.schema, frame)
        numbers = rows.column("_seq").to_numpy()
        begin = int(np.searchsorted(numbers, entries.first))
        end = int(np.searchsorted(numbers, entries.last, side="right"))
        if begin < end:
            yield table, rows.slice(begin, end - begin)


def _copied(rows: pa.RecordBatch, last_seq: int) -> pa.RecordBatch:
    """A copy, since the rows are in memory that is used again; with `_seq` as in the output."""
    copy = pa.ipc.read_record_batch(rows.serialize(), rows.schema)
    index = rows.schema.get_field_index("_seq")
    numbers = pa.array(copy.column(index).to_numpy() + last_seq)
    return copy.set_column(index, rows.schema.field(index), numbers)
