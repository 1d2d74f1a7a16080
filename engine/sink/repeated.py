"""Arrow arrays in which every value is the same, of the types that columns of data files have."""

from __future__ import annotations

import pyarrow as pa


def repeated(value: object, data_type: pa.DataType, count: int) -> pa.Array:
    """An array with `count` times the same value; None for NULL."""
    if pa.types.is_run_end_encoded(data_type):
        run_ends = pa.array([count], data_type.run_end_type)
        return pa.RunEndEncodedArray.from_arrays(run_ends, repeated(value, data_type.value_type, 1))
    return pa.nulls(count, data_type) if value is None else pa.repeat(pa.scalar(value, data_type), count)
