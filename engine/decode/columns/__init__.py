"""Converts the cells of a column to an Arrow array: one module per family of column types.

`codec_for` looks up the family of a column's type in a table; the family returns the codec.
"""

from __future__ import annotations

from collections.abc import Callable

from engine.binlog.column import Column
from engine.binlog.field_types import FieldType
from engine.decode.arrow.codec import Codec, Options
from engine.decode.columns.bits import bit_codec
from engine.decode.columns.compressed import compressed_codec
from engine.decode.columns.decimals import decimal_codec, old_decimal_codec
from engine.decode.columns.enums import enum_codec
from engine.decode.columns.floats import float_codec
from engine.decode.columns.geometry import geometry_codec
from engine.decode.columns.integers import integer_codec, year_codec
from engine.decode.columns.json.documents import json_codec
from engine.decode.columns.temporal import temporal_codec
from engine.decode.columns.text.strings import string_codec
from engine.decode.columns.uuid_inet import address_codec
from engine.decode.columns.vectors import vector_codec
from engine.errors import EngineError
from engine.kernels.typed import Kernel

_FAMILIES: dict[int, Callable[[Column, Options], Codec]] = {
    FieldType.TINY: integer_codec,
    FieldType.SHORT: integer_codec,
    FieldType.INT24: integer_codec,
    FieldType.LONG: integer_codec,
    FieldType.LONGLONG: integer_codec,
    FieldType.YEAR: year_codec,
    FieldType.FLOAT: float_codec,
    FieldType.DOUBLE: float_codec,
    FieldType.DECIMAL: old_decimal_codec,
    FieldType.NEWDECIMAL: decimal_codec,
    FieldType.BIT: bit_codec,
    FieldType.DATE: temporal_codec,
    FieldType.NEWDATE: temporal_codec,
    FieldType.DATETIME: temporal_codec,
    FieldType.DATETIME2: temporal_codec,
    FieldType.TIMESTAMP: temporal_codec,
    FieldType.TIMESTAMP2: temporal_codec,
    FieldType.TIME: temporal_codec,
    FieldType.TIME2: temporal_codec,
    FieldType.ENUM: enum_codec,
    FieldType.SET: enum_codec,
    FieldType.BLOB_COMPRESSED: compressed_codec,
    FieldType.VARCHAR_COMPRESSED: compressed_codec,
    FieldType.JSON: json_codec,
    FieldType.GEOMETRY: geometry_codec,
    FieldType.VECTOR: vector_codec,
    FieldType.STRING: string_codec,
    FieldType.VARCHAR: string_codec,
    FieldType.VAR_STRING: string_codec,
    FieldType.TINY_BLOB: string_codec,
    FieldType.BLOB: string_codec,
    FieldType.MEDIUM_BLOB: string_codec,
    FieldType.LONG_BLOB: string_codec,
}
"""By type code."""

_DECLARED_FAMILIES: dict[tuple[str | None, int], Callable[[Column, Options], Codec]] = {
    ("uuid", FieldType.STRING): address_codec,
    ("inet4", FieldType.STRING): address_codec,
    ("inet6", FieldType.STRING): address_codec,
    ("vector", FieldType.VARCHAR): vector_codec,
}
"""By the type's name in the catalog and the type code in the table map."""


def codec_for(column: Column, options: Options) -> Codec:
    """The codec of a column. Raises `EngineError`, naming the column, for an invalid type or metadata."""
    declared = _DECLARED_FAMILIES.get((column.declared, column.type_code))
    family = declared or _FAMILIES.get(column.type_code)
    if family is None:
        raise EngineError(
            f"column {column.name} has type code {column.type_code}, which no known MySQL or MariaDB version "
            "writes into row events"
        )
    return family(column, options)


def compile_all() -> None:
    """Compile every family's kernels, or load them from numba's cache."""
    for kernel in Kernel.every:
        kernel.compile()
