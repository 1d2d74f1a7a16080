"""Run-end encoded columns, as the metadata columns of data files are, with a value per row instead."""

from __future__ import annotations

import numpy as np
import pyarrow as pa


def run_end_decoded(column: pa.Array) -> pa.Array:
    """A column, or a slice of one, without run-end encoding; any other is returned as it is.

    Arrow's own function takes no lists before pyarrow 26, and takes longer for them.
    """
    if not pa.types.is_run_end_encoded(column.type):
        return column
    if pa.types.is_list(column.type.value_type):
        return _lists(column)
    # Only here: Spark starts a process for each streaming query that imports this module to plan.
    import pyarrow.compute as pc

    return pc.run_end_decode(column)


def _lists(column: pa.RunEndEncodedArray) -> pa.Array:
    first, count = column.find_physical_offset(), column.find_physical_length()
    values = column.values.slice(first, count)
    if values.null_count == count:
        return pa.nulls(len(column), values.type)
    ends = column.run_ends.to_numpy()[first : first + count] - column.offset
    lengths = np.diff(np.minimum(ends, len(column)), prepend=0)
    return values.take(pa.array(np.repeat(np.arange(count), lengths)))


def chosen_rows(rows: pa.RecordBatch, chosen: np.ndarray) -> pa.RecordBatch:
    """Some of the rows, not run-end encoded, since Arrow cannot filter that; all of them as they are."""
    if chosen.all():
        return rows
    plain = [run_end_decoded(column) for column in rows.columns]
    fields = [field.with_type(column.type) for field, column in zip(rows.schema, plain, strict=True)]
    schema = pa.schema(fields, rows.schema.metadata)
    return pa.RecordBatch.from_arrays(plain, schema=schema).filter(pa.array(chosen))
