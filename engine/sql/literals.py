"""SQL literals of the values in an output, for a session that `engine.sql.script` sets up.

A literal gives back the same value in a column of the same type. In a condition, a column is compared with it
byte by byte, because a collation may take different texts for equal.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from engine.dataclass import dataclass
from engine.output.sql_text import (
    bytes_literal,
    date_literal,
    floating_literal,
    moment_literal,
    number_literal,
    quoted_text,
    time_literal,
)
from engine.sql.json_documents import json_literal

Literal = Callable[[Any], str]
"""The literal of a value that is not None."""


@dataclass(frozen=True, slots=True)
class ValueFormat:
    """How the values of a column are written."""

    literal: Literal
    comparison: str = "{column} <=> {literal}"
    """A condition that only this value meets; `<=>` also compares NULL."""
    compared: Literal | None = None
    """The literal in `comparison`; None for the same one."""
    lossy_null: bool = False
    """Whether None may stand for a date that no calendar has."""

    def value(self, value: Any) -> str:
        """The literal of a value, or NULL."""
        return "NULL" if value is None else self.literal(value)

    def condition(self, column: str, value: Any) -> str:
        """The condition for a row that has the value in `column`."""
        if value is None:
            return f"{column} IS NULL"
        return self.comparison.format(column=column, literal=(self.compared or self.literal)(value))


def mysql_type(field: pa.Field) -> str:
    """The column type that an Arrow field comes from, such as `int unsigned`; empty if not known."""
    return (field.metadata or {}).get(b"mysql_type", b"").decode()


def value_format(field: pa.Field) -> ValueFormat:
    """The format of a column's values, from its Arrow field with the metadata `mysql_type`."""
    declared = mysql_type(field)
    if declared == "json":
        return _JSON
    if declared.startswith("year"):
        return ValueFormat(_year)
    if declared.startswith("decimal"):
        return ValueFormat(number_literal)
    return next(values for matches, values in _FORMATS if matches(field.type))


def _year(value: int) -> str:
    return f"'{value:04}'"


def _geometry(value: dict[str, Any]) -> str:
    """The servers' own form: four bytes of SRID, then well-known binary."""
    if not value["wkb"]:
        return "''"
    return bytes_literal(value["srid"].to_bytes(4, "little", signed=True) + value["wkb"])


def _vector(value: list[float]) -> str:
    return bytes_literal(struct.pack(f"<{len(value)}f", *value))


_AS_BYTES = "CAST(CONVERT({column} USING utf8mb4) AS BINARY) = CAST({literal} AS BINARY)"
_AS_DIGITS = "HEX({column}) = HEX({literal})"
_JSON = ValueFormat(json_literal, _AS_BYTES, quoted_text)
_FORMATS: tuple[tuple[Callable[[pa.DataType], bool], ValueFormat], ...] = (
    (pa.types.is_boolean, ValueFormat(number_literal)),
    (pa.types.is_integer, ValueFormat(number_literal)),
    (pa.types.is_decimal, ValueFormat(number_literal)),
    (pa.types.is_floating, ValueFormat(floating_literal)),
    (pa.types.is_date, ValueFormat(date_literal, lossy_null=True)),
    (pa.types.is_timestamp, ValueFormat(moment_literal, lossy_null=True)),
    (pa.types.is_duration, ValueFormat(time_literal)),
    (pa.types.is_struct, ValueFormat(_geometry, _AS_DIGITS)),
    (pa.types.is_list, ValueFormat(_vector, _AS_DIGITS)),
    (pa.types.is_binary, ValueFormat(bytes_literal)),
    (pa.types.is_large_binary, ValueFormat(bytes_literal)),
    (lambda kind: True, ValueFormat(quoted_text, _AS_BYTES)),
)
"""By Arrow type; the last is for texts."""
