"""Whether a column of the server's catalog is compatible with a column of a table map.

The catalog describes the table now, the binlog as it was when the event was written. After an ALTER TABLE the
catalog's names could be those of other columns, so every type and length must agree. What two columns may
differ in without a trace in the binlog (above all their names) cannot be checked.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from engine.binlog.charsets import widest_character
from engine.binlog.field_types import FieldType
from engine.binlog.field_types import FieldType as F
from engine.binlog.table_definition import UNKNOWN_CHARSET, ColumnDefinition, type_numbers
from engine.errors import EngineError

_LENGTH_BYTES = {"tiny": 1, "": 2, "medium": 3, "long": 4}
_GEOMETRIES = (
    *("geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon"),
    *("geometrycollection", "geomcollection"),
)
_CATALOG_ONLY = frozenset({"uuid", "inet4", "inet6", "vector", "json"})

_TYPES: dict[str, tuple[F, ...]] = {
    "tinyint": (F.TINY,),
    "smallint": (F.SHORT,),
    "mediumint": (F.INT24,),
    "int": (F.LONG,),
    "bigint": (F.LONGLONG,),
    "float": (F.FLOAT,),
    "double": (F.DOUBLE,),
    "decimal": (F.NEWDECIMAL, F.DECIMAL),
    "bit": (F.BIT,),
    "date": (F.DATE, F.NEWDATE),
    "datetime": (F.DATETIME2, F.DATETIME),
    "timestamp": (F.TIMESTAMP2, F.TIMESTAMP),
    "time": (F.TIME2, F.TIME),
    "year": (F.YEAR,),
    "char": (F.STRING, F.VAR_STRING),
    "binary": (F.STRING, F.VAR_STRING),
    "varchar": (F.VARCHAR, F.VARCHAR_COMPRESSED, F.VAR_STRING),
    "varbinary": (F.VARCHAR, F.VARCHAR_COMPRESSED, F.VAR_STRING),
    **{f"{size}text": (F.BLOB, F.BLOB_COMPRESSED) for size in _LENGTH_BYTES},
    **{f"{size}blob": (F.BLOB, F.BLOB_COMPRESSED) for size in _LENGTH_BYTES},
    "enum": (F.ENUM,),
    "set": (F.SET,),
    "json": (F.JSON, F.BLOB),
    **dict.fromkeys(_GEOMETRIES, (F.GEOMETRY,)),
    "vector": (F.VECTOR, F.VARCHAR),
    "uuid": (F.STRING,),
    "inet4": (F.STRING,),
    "inet6": (F.STRING,),
}
"""`DATA_TYPE` of `information_schema.columns` → the types that servers write for it, the newest first."""
_OTHER_IN_MARIADB = frozenset({"json", "vector"})
"""What MariaDB writes for these types comes last in `_TYPES`."""
_COMPRESSED = (F.VARCHAR_COMPRESSED, F.BLOB_COMPRESSED)
_COMPRESSED_COLUMN = re.compile(r"\bcompressed\b", re.IGNORECASE)
_FIXED_METADATA = {F.FLOAT: 4, F.DOUBLE: 8, F.JSON: 4, F.GEOMETRY: 4, F.VECTOR: 4}
"""Type → metadata that is the same for all its columns: the size of the value, or of the length before it."""


def mismatch(type_code: int, metadata: int, info: ColumnDefinition) -> str | None:
    """Why the catalog's column cannot be the table map's, in words; None if it can.

    Types that `_TYPES` does not contain (a server's plugins may add some) are accepted.
    """
    allowed = _TYPES.get(info.data_type)
    if allowed is None:
        return None
    lengths = _LENGTHS.get(type_code)
    if type_code in allowed and (lengths is None or metadata in lengths(info)):
        return None
    return f"{info.column_type} in the catalog, {_describe(type_code, metadata)} in the binlog"


def written_type(info: ColumnDefinition, *, mariadb: bool) -> tuple[FieldType, int]:
    """The type code and the metadata that current servers write for a column of the catalog.

    Raises `EngineError`, naming the column, if its type is not known, or its character set or members are
    needed and not known.
    """
    codes = _TYPES.get(info.data_type)
    if codes is None:
        raise EngineError(f"column {info.name} has the unknown type {info.column_type}")
    code = codes[0]
    if mariadb and info.data_type in _OTHER_IN_MARIADB:
        code = codes[-1]
    elif compressed := [code for code in codes if code in _COMPRESSED]:
        code = compressed[0] if _COMPRESSED_COLUMN.search(info.column_type) else code
    lengths = _LENGTHS[code](info) if code in _LENGTHS else {_FIXED_METADATA.get(code, 0)}
    if len(lengths) != 1:
        unknown = "character set" if info.charset == UNKNOWN_CHARSET else "definition"
        raise EngineError(f"the {unknown} of column {info.name} ({info.column_type}) is not known")
    return code, lengths.pop()


def declared_type(type_code: int, info: ColumnDefinition) -> str | None:
    """The type's name if the binlog's type code does not define it: MariaDB's uuid, or a plugin's type."""
    if type_code in (F.JSON, F.VECTOR) or (info.data_type in _TYPES and info.data_type not in _CATALOG_ONLY):
        return None
    return info.data_type


def stored_metadata(type_code: int, metadata: int, info: ColumnDefinition) -> int:
    """The metadata; for the old temporal types, which have none, the catalog's fraction digits (MariaDB)."""
    if type_code in (F.TIMESTAMP, F.DATETIME, F.TIME):
        return (type_numbers(info.column_type) or (0,))[0]
    return metadata


def _characters(info: ColumnDefinition) -> set[int]:
    """The lengths in bytes that a length in characters may have."""
    stated = (type_numbers(info.column_type) or (1,))[0]
    length = {"uuid": 16, "inet6": 16, "inet4": 4}.get(info.data_type) or stated
    if info.data_type == "vector":
        return {length * 4}
    if info.data_type in ("char", "varchar"):
        widths = (
            (1, 2, 3, 4) if info.charset in (None, UNKNOWN_CHARSET) else (widest_character(info.charset),)
        )
        return {length * width for width in widths}
    return {length}


def _compressed_characters(info: ColumnDefinition) -> set[int]:
    """As `_characters`, with the byte by which MariaDB marks how a value is compressed."""
    return {length + 1 for length in _characters(info)}


def _decimal(info: ColumnDefinition) -> set[int]:
    numbers = type_numbers(info.column_type)
    precision, scale = (*numbers, 10, 0)[:2] if len(numbers) != 1 else (*numbers, 0)
    return {precision | scale << 8}


def _bits(info: ColumnDefinition) -> set[int]:
    width = (type_numbers(info.column_type) or (1,))[0]
    return {width % 8 | width // 8 << 8}


def _fraction(info: ColumnDefinition) -> set[int]:
    return {(type_numbers(info.column_type) or (0,))[0]}


def _length_bytes(info: ColumnDefinition) -> set[int]:
    return {
        4
        if info.data_type == "json"
        else _LENGTH_BYTES[info.data_type.removesuffix("text").removesuffix("blob")]
    }


def _enum(info: ColumnDefinition) -> set[int]:
    return {1, 2} if info.members is None else {1 if len(info.members) < 256 else 2}


def _set(info: ColumnDefinition) -> set[int]:
    size = (len(info.members or ()) + 7) // 8
    return {1, 2, 3, 4, 8} if info.members is None else {size if size <= 4 else 8}


_LENGTHS: dict[int, Callable[[ColumnDefinition], set[int]]] = {
    F.NEWDECIMAL: _decimal,
    F.BIT: _bits,
    F.DATETIME2: _fraction,
    F.TIMESTAMP2: _fraction,
    F.TIME2: _fraction,
    F.STRING: _characters,
    F.VARCHAR: _characters,
    F.VARCHAR_COMPRESSED: _compressed_characters,
    F.BLOB: _length_bytes,
    F.BLOB_COMPRESSED: _length_bytes,
    F.ENUM: _enum,
    F.SET: _set,
}
"""Type → the metadata that it may have for a column of the catalog."""


_NAMED = frozenset(F)


def _describe(type_code: int, metadata: int) -> str:
    name = F(type_code).name.lower() if type_code in _NAMED else f"type {type_code}"
    if type_code in (F.NEWDECIMAL, F.BIT):
        return f"{name}({metadata & 0xFF}, {metadata >> 8})"
    return f"{name}({metadata})" if type_code in _LENGTHS else name
