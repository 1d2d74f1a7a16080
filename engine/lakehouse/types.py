"""The types of targets: those of change rows, where a table format has them, and exact ones where not.

Delta and Iceberg have no intervals, so TIME is a number of microseconds; Iceberg has no integers smaller than
INT. All other types of change rows are both formats' own (docs/lakehouse.md has the table).
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa

from engine.lakehouse.target import literal
from engine.spark.schema import spark_type

_SMALL = (pa.int8(), pa.int16())


def stored_type(data_type: pa.DataType, smallest_integer: str) -> pa.DataType:
    """The type in which a target stores values of a change row's type."""
    if pa.types.is_duration(data_type):
        return pa.int64()
    return pa.int32() if smallest_integer == "int" and data_type in _SMALL else data_type


def kind_of(data_type: pa.DataType) -> str:
    """A stored type as Spark shows it."""
    return spark_type(data_type).simpleString()


def constant(value: Any, kind: str) -> str:
    """A default value as SQL."""
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    text = format(value, "f") if isinstance(value, Decimal) else str(value)
    if kind == "variant":
        return f"parse_json({literal(text)})"
    return f"CAST({literal(text)} AS {kind})"
