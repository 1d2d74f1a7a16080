"""FLOAT and DOUBLE: IEEE 754 numbers, little-endian as in Arrow, so their bytes are only copied."""

from __future__ import annotations

import pyarrow as pa

from engine.binlog.column import Column
from engine.binlog.field_types import FieldType
from engine.decode.arrow.codec import Codec, Options
from engine.decode.columns.integers import number_codec


def float_codec(column: Column, options: Options) -> Codec:
    """The codec of a FLOAT or DOUBLE column."""
    if column.type_code == FieldType.FLOAT:
        return number_codec(pa.float32(), 4, signed=False)
    return number_codec(pa.float64(), 8, signed=False)
