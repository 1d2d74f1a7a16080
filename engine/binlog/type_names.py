"""A column's type in SQL notation, for the `mysql_type` metadata of an Arrow field."""

from __future__ import annotations

from engine.binlog.column import Column
from engine.binlog.field_types import FieldType

BINARY_COLLATION = 63

_NAMES = {
    FieldType.DECIMAL: "decimal",
    FieldType.TINY: "tinyint",
    FieldType.SHORT: "smallint",
    FieldType.LONG: "int",
    FieldType.FLOAT: "float",
    FieldType.DOUBLE: "double",
    FieldType.NULL: "null",
    FieldType.TIMESTAMP: "timestamp",
    FieldType.LONGLONG: "bigint",
    FieldType.INT24: "mediumint",
    FieldType.DATE: "date",
    FieldType.TIME: "time",
    FieldType.DATETIME: "datetime",
    FieldType.YEAR: "year",
    FieldType.NEWDATE: "date",
    FieldType.VARCHAR: "varchar",
    FieldType.BIT: "bit",
    FieldType.TIMESTAMP2: "timestamp",
    FieldType.DATETIME2: "datetime",
    FieldType.TIME2: "time",
    FieldType.BLOB_COMPRESSED: "blob compressed",
    FieldType.VARCHAR_COMPRESSED: "varchar compressed",
    FieldType.VECTOR: "vector",
    FieldType.JSON: "json",
    FieldType.NEWDECIMAL: "decimal",
    FieldType.ENUM: "enum",
    FieldType.SET: "set",
    FieldType.TINY_BLOB: "tinyblob",
    FieldType.MEDIUM_BLOB: "mediumblob",
    FieldType.LONG_BLOB: "longblob",
    FieldType.BLOB: "blob",
    FieldType.VAR_STRING: "varchar",
    FieldType.STRING: "char",
    FieldType.GEOMETRY: "geometry",
}
_BLOBS = {1: "tinyblob", 2: "blob", 3: "mediumblob", 4: "longblob"}
_TEXTS = {"char": "binary", "varchar": "varbinary"}
_FRACTIONAL = {
    *(FieldType.TIMESTAMP2, FieldType.DATETIME2, FieldType.TIME2),
    *(FieldType.TIMESTAMP, FieldType.DATETIME, FieldType.TIME),
}


def type_name(column: Column) -> str:
    """Such as `int unsigned`, `decimal(10,2)`, `datetime(6)`; lengths of strings are in bytes."""
    if column.declared is not None:
        return column.declared
    code = FieldType(column.type_code)
    name = _NAMES[code]
    is_binary = column.collation == BINARY_COLLATION or column.charset == "binary"
    if code == FieldType.BLOB:
        name = _BLOBS.get(column.metadata, name)
        is_text = not is_binary and (column.collation is not None or column.charset is not None)
        return name.replace("blob", "text") if is_text else name
    if code in (FieldType.VARCHAR, FieldType.VAR_STRING, FieldType.STRING):
        return f"{_TEXTS[name] if is_binary else name}({column.metadata})"
    if code == FieldType.NEWDECIMAL:
        name = f"{name}({column.metadata & 0xFF},{column.metadata >> 8})"
    elif code == FieldType.BIT:
        name = f"bit({(column.metadata >> 8) * 8 + (column.metadata & 0xFF)})"
    elif code in _FRACTIONAL and column.metadata:
        name = f"{name}({column.metadata})"
    return f"{name} unsigned" if column.unsigned else name
