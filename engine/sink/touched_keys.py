"""The keys of one table that the stream's change rows contain while chunks of the table are read.

A row of a chunk whose key the stream has changed meanwhile may be older than that change, which is in the
output already, so it is taken out. Keys are compared as the values of their columns in Arrow, where
different bytes of the table are different values. Rows of a transaction that is rolled back do not count.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.dataclass import dataclass
from engine.output.change_schema import INSERT, UPDATE_POSTIMAGE, own_name
from engine.output.run_ends import run_end_decoded

_LEAVES_ROW = pa.array([INSERT, UPDATE_POSTIMAGE], pa.int8())
_KIND, _ABSENT = "_change_type", "_absent_columns"


@dataclass(frozen=True, slots=True)
class Touched:
    """The keys of one batch of change rows."""

    keys: pa.Table
    """The columns of the key, in a form that can be compared."""
    partial: bool
    """Some of the rows that are there after their change do not have every column."""
    unclear: bool
    """The key of some row is not known exactly: its date is not valid, or the row has no such column."""


class TouchedKeys:
    """Those of one table with the key `columns`, since the first chunk that is being read was opened."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._columns = [own_name(name) for name in columns]
        self._kept: list[Touched] = []
        self._open: list[Touched] = []
        self._forgotten = 0

    @property
    def count(self) -> int:
        """The number of batches of finished transactions so far: the mark for `since`."""
        return self._forgotten + len(self._kept)

    def add(self, rows: pa.RecordBatch) -> None:
        """Add the change rows of a batch, which belong to the open transaction until `keep`."""
        self._open.append(_touched(rows, self._columns))

    def keep(self) -> None:
        """The open transaction has ended."""
        self._kept += self._open
        self._open.clear()

    def drop(self) -> None:
        """The open transaction was rolled back."""
        self._open.clear()

    def forget(self, mark: int) -> None:
        """Forget the batches before a mark."""
        del self._kept[: max(0, mark - self._forgotten)]
        self._forgotten = max(self._forgotten, mark)

    def since(self, mark: int) -> Touched | None:
        """The keys of all batches after a mark; None if there are none."""
        batches = self._kept[mark - self._forgotten :]
        if not batches:
            return None
        return Touched(
            pa.concat_tables([each.keys for each in batches], promote_options="permissive"),
            any(each.partial for each in batches),
            any(each.unclear for each in batches),
        )


def untouched(rows: pa.RecordBatch, touched: Touched, columns: Sequence[str]) -> pa.Array:
    """For each row whether its key is not among the touched ones."""
    keys = _comparable(rows, [own_name(name) for name in columns])
    if keys.num_columns == 1:
        return pc.invert(pc.is_in(keys.column(0), value_set=touched.keys.column(0))).combine_chunks()
    numbers = pa.array(np.arange(rows.num_rows))
    left = keys.append_column("row", numbers).join(
        touched.keys, keys.column_names, join_type="left anti", use_threads=False
    )
    return pc.is_in(numbers, value_set=left.column("row"))


def _touched(rows: pa.RecordBatch, columns: Sequence[str]) -> Touched:
    if any(rows.schema.get_field_index(name) < 0 for name in columns):
        return Touched(pa.table({}), partial=True, unclear=True)
    is_after = pc.equal(rows.column(_KIND), UPDATE_POSTIMAGE)
    absent = pc.is_valid(run_end_decoded(rows.column(_ABSENT)))
    # An image after an update may lack the key, which then is that of the image before it, the row before.
    unclear = any(
        pc.any(pc.and_not(pc.is_null(rows.column(name)), pc.and_(is_after, absent))).as_py()
        for name in columns
    )
    keys = _comparable(rows, columns)
    if pc.any(absent).as_py():
        keys = pa.table([pc.fill_null_forward(column) for column in keys.columns], names=keys.column_names)
    has_row = pc.is_in(rows.column(_KIND), value_set=_LEAVES_ROW)
    return Touched(keys, pc.any(pc.and_(absent, has_row)).as_py(), unclear)


def _comparable(rows: pa.RecordBatch, columns: Sequence[str]) -> pa.Table:
    """Copies of the columns, of types that Arrow compares: numbers for times, text for decimals."""
    arrays = []
    for name in columns:
        column = rows.column(name)
        kind = column.type
        if pa.types.is_date32(kind):
            column = column.cast(pa.int32())
        elif pa.types.is_temporal(kind):
            column = column.cast(pa.int64())
        elif pa.types.is_decimal(kind):
            column = column.cast(pa.string())
        # The rows may be in memory that is used again.
        arrays.append(pc.take(column, pa.array(np.arange(len(column)))))
    return pa.table(arrays, names=[f"key{number}" for number in range(len(columns))])
