"""The change rows that undo those of a prepared XA transaction which was rolled back.

The binlog has the transaction at XA PREPARE, and says nothing more of its rows at XA ROLLBACK. For each of
them comes one of opposite effect, in reverse order: a delete for an insert, an insert for a delete, and an
update back. Between the two statements the server kept the rows locked, so that the tables are then as if the
transaction had not been.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

import numpy as np
import pyarrow as pa

from engine.dataclass import dataclass
from engine.kernels.kernel import Int64s
from engine.output.change_schema import (
    DELETE,
    INSERT,
    UPDATE_POSTIMAGE,
    UPDATE_PREIMAGE,
    transit_schema,
    with_all_change_types,
)
from engine.output.prepared import XaRollback
from engine.output.run_ends import run_end_decoded
from engine.pipeline.messages import TableResult
from engine.sink.repeated import repeated

_OPPOSITES = {
    INSERT: DELETE,
    UPDATE_PREIMAGE: UPDATE_POSTIMAGE,
    UPDATE_POSTIMAGE: UPDATE_PREIMAGE,
    DELETE: INSERT,
}
_OPPOSITE_CODES = np.array([_OPPOSITES[code] for code in sorted(_OPPOSITES)], np.int8)


@dataclass(frozen=True, slots=True)
class TableRows:
    """Change rows of one table, in transit or as in files, with the `_seq` that they have in the output."""

    database: str
    table: str
    schema: bytes
    """That of files, as a serialized IPC message."""
    rows: pa.RecordBatch


class Places:
    """The places of rows among all that are to be undone, from the last one on.

    A transaction may have many rows, so runs of `_seq` without a gap are kept instead of these.
    """

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        runs = [_runs(rows.column("_seq").to_numpy()) for rows in batches]
        starts = np.concatenate([np.empty(0, np.int64), *(start for start, _ in runs)])
        lengths = np.concatenate([np.empty(0, np.int64), *(length for _, length in runs)])
        order = np.argsort(starts)
        self._starts = starts[order]
        """The first `_seq` of each run."""
        self._from = lengths.sum() - np.cumsum(lengths[order]) + lengths[order]
        """The place of that row."""

    def of(self, numbers: Int64s) -> Int64s:
        """1 for the last row of all, 2 for the one before it…"""
        run = np.searchsorted(self._starts, numbers, side="right") - 1
        return self._from[run] - (numbers - self._starts[run])


def _runs(numbers: Int64s) -> tuple[Int64s, Int64s]:
    """First numbers and lengths of the runs without a gap."""
    first = np.flatnonzero(np.diff(numbers, prepend=numbers[:1] - 2) != 1)
    return numbers[first], np.diff(first, append=len(numbers))


def undone_rows(
    rollback: XaRollback, tables: Iterable[TableRows], places: Places
) -> Iterator[tuple[TableResult, pa.RecordBatch]]:
    """What undoes a transaction: record batches in transit, with `_seq` from 1 on over all of them.

    `tables`: its rows, those of each table backwards.
    """
    time = rollback.commit_timestamp
    for part in tables:
        ordinals = places.of(part.rows.column("_seq").to_numpy()[::-1])
        result = TableResult(part.database, part.table, part.schema, len(ordinals), time, time, 0)
        yield result, _opposite(part.rows, ordinals, rollback)


def lacking_columns(rows: pa.RecordBatch) -> set[str]:
    """The columns that images of deleted and updated rows lack."""
    absent = run_end_decoded(rows.column("_absent_columns"))
    if absent.null_count == len(absent):
        return set()
    return set(absent.filter(pa.array(_codes(rows) != INSERT)).flatten().to_pylist())


def _opposite(rows: pa.RecordBatch, ordinals: Int64s, rollback: XaRollback) -> pa.RecordBatch:
    """The rows in reverse order, with opposite effect, as a record batch in transit."""
    count = rows.num_rows
    backwards = pa.array(np.arange(count - 1, -1, -1))
    constants = {
        "_commit_timestamp": rollback.commit_timestamp,
        "_gtid": rollback.gtid,
        "_file": rollback.position.file,
        "_pos": rollback.position.position,
    }
    schema = transit_schema(rows.schema)
    columns = []
    for field, column in zip(schema, rows.columns, strict=True):
        if field.name == "_change_type":
            columns.append(pa.array(_OPPOSITE_CODES[_codes(rows)[::-1]]))
        elif field.name == "_seq":
            columns.append(pa.array(ordinals))
        elif field.name in constants:
            columns.append(repeated(constants[field.name], field.type, count))
        elif field.name == "_absent_columns":
            columns.append(_run_end_encoded(run_end_decoded(column).take(backwards), field.type))
        else:
            columns.append(column.take(backwards))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _codes(rows: pa.RecordBatch) -> np.ndarray:
    """The codes of `_change_type`."""
    kinds = rows.column("_change_type")
    if pa.types.is_dictionary(kinds.type):
        kinds = with_all_change_types(rows).column("_change_type").indices
    return kinds.to_numpy()


def _run_end_encoded(values: pa.Array, data_type: pa.DataType) -> pa.Array:
    """Arrow's own function takes no lists."""
    if values.null_count == len(values):
        return repeated(None, data_type, len(values))
    runs = [(value, len(list(same))) for value, same in groupby(values.to_pylist())]
    ends = pa.array(np.cumsum([length for _, length in runs]), data_type.run_end_type)
    return pa.RunEndEncodedArray.from_arrays(ends, pa.array([v for v, _ in runs], data_type.value_type))
