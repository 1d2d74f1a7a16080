"""Arrow types and values from a table's definition, for columns of which the output has no row yet.

A column that was added after the last row, or a table without any row, has a definition and no Arrow field;
rows from before a column was added have its default. The types are those that the decoder gives to columns
(`engine.decode.columns`) without `--temporal text`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa

from engine.binlog.table_definition import ColumnDefinition
from engine.errors import EngineError

_LARGEST_PRECISION = 38
_GEOMETRY = pa.struct([pa.field("srid", pa.int32()), pa.field("wkb", pa.binary())])
UNSIGNED_BIGINT = pa.decimal128(20, 0)

_TYPES: dict[str, pa.DataType] = {
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "mediumint": pa.int32(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "year": pa.int16(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "datetime": pa.timestamp("us"),
    "timestamp": pa.timestamp("us", "UTC"),
    "time": pa.duration("us"),
    "vector": pa.list_(pa.float32()),
    **dict.fromkeys(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"), pa.binary()),
    **dict.fromkeys(
        (
            *("geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon"),
            *("geometrycollection", "geomcollection"),
        ),
        _GEOMETRY,
    ),
}
"""By the name of the type, where neither sign nor size matters; other types are text."""

_UNSIGNED: dict[str, pa.DataType] = {
    "tinyint": pa.int16(),
    "smallint": pa.int32(),
    "int": pa.int64(),
    "bigint": UNSIGNED_BIGINT,
}


def arrow_type(column: ColumnDefinition) -> pa.DataType:
    """The type of the column in change rows."""
    name = column.data_type
    if name == "decimal":
        precision, scale = _numbers(column) or (10, 0)
        return pa.decimal128(precision, scale) if precision <= _LARGEST_PRECISION else pa.string()
    if name == "bit":
        bits = (_numbers(column) or [1])[0]
        return {1: pa.bool_(), 64: UNSIGNED_BIGINT}.get(bits, pa.int64())
    if column.unsigned and name in _UNSIGNED:
        return _UNSIGNED[name]
    return _TYPES.get(name, pa.string())


def value_of(text: str, column: ColumnDefinition, data_type: pa.DataType) -> Any:
    """The value of a default, given as text, in rows with that Arrow type; None for a date that is none.

    Raises `EngineError` for a text that is not a value of the type.
    """
    try:
        return _parser(data_type)(text, column)
    except (ValueError, OverflowError, InvalidOperation) as error:
        raise EngineError(
            f"`{text}`, the default of the column `{column.name}`, is not a value of its type "
            f"{column.column_type} ({error}): give the value with a snapshot of the table"
        ) from None


def _parser(data_type: pa.DataType) -> Callable[[str, ColumnDefinition], Any]:
    for matches, parser in _PARSERS:
        if matches(data_type):
            return parser
    raise ValueError(f"constants of {data_type} are not supported")


def _number(text: str, column: ColumnDefinition) -> Decimal:
    literal = _BITS.fullmatch(text)
    if literal:
        return Decimal(int(literal["binary"] or "0", 2) or int(literal["hexadecimal"] or "0", 16))
    return Decimal(text)


def _bytes(text: str, column: ColumnDefinition) -> bytes:
    literal = _BITS.fullmatch(text)
    value = bytes.fromhex(literal["hexadecimal"]) if literal and literal["hexadecimal"] else text.encode()
    return value.ljust((_numbers(column) or [1])[0], b"\0") if column.data_type == "binary" else value


def _date(text: str, column: ColumnDefinition) -> date | None:
    moment = _moment(text, column)
    return None if moment is None else moment.date()


def _moment(text: str, column: ColumnDefinition) -> datetime | None:
    """None for dates with zeros, which change rows do not have either."""
    if re.match(r"0000|\d+-00|\d+-\d+-00", text):
        return None
    return datetime.fromisoformat(text).replace(tzinfo=UTC if column.data_type == "timestamp" else None)


def _duration(text: str, column: ColumnDefinition) -> timedelta:
    parts = _TIME.fullmatch(text)
    if parts is None:
        raise ValueError("a time such as -12:34:56.5 is expected")
    fraction = int((parts["fraction"] or "").ljust(6, "0"))
    value = timedelta(
        hours=int(parts["hours"]),
        minutes=int(parts["minutes"]),
        seconds=int(parts["seconds"]),
        microseconds=fraction,
    )
    return -value if parts["sign"] else value


_BITS = re.compile(r"(?:b'(?P<binary>[01]+)'|(?:0x|x')(?P<hexadecimal>(?:[0-9a-f]{2})+)'?)", re.IGNORECASE)
_TIME = re.compile(
    r"(?P<sign>-?)(?P<hours>\d+):(?P<minutes>\d\d):(?P<seconds>\d\d)(?:\.(?P<fraction>\d{1,6}))?"
)

_PARSERS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[str, ColumnDefinition], Any]], ...] = (
    (pa.types.is_string, lambda text, column: text),
    (pa.types.is_boolean, lambda text, column: bool(_number(text, column))),
    (pa.types.is_integer, lambda text, column: int(_number(text, column))),
    (pa.types.is_decimal, _number),
    (pa.types.is_floating, lambda text, column: float(text)),
    (pa.types.is_binary, _bytes),
    (pa.types.is_date, _date),
    (pa.types.is_timestamp, _moment),
    (pa.types.is_duration, _duration),
)


def _numbers(column: ColumnDefinition) -> list[int]:
    """The numbers in parentheses of a type such as `decimal(10,2) unsigned`."""
    found = re.match(r"\w+\(([0-9, ]+)\)", column.column_type)
    return [int(number) for number in found[1].split(",")] if found else []
