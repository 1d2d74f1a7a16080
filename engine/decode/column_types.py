"""The column types of table maps (`MYSQL_TYPE_*` of MySQL's `field_types.h`, and MariaDB's own).

Plain integers, so that kernels can use them. `METADATA_BYTES` says how many bytes of metadata a table map
holds for a column of each type (`Field::do_save_field_metadata` in the servers' `field.cc`).
"""

from __future__ import annotations

DECIMAL = 0
TINY = 1
SHORT = 2
LONG = 3
FLOAT = 4
DOUBLE = 5
NULL = 6
TIMESTAMP = 7
LONGLONG = 8
INT24 = 9
DATE = 10
TIME = 11
DATETIME = 12
YEAR = 13
NEWDATE = 14
VARCHAR = 15
BIT = 16
TIMESTAMP2 = 17
DATETIME2 = 18
TIME2 = 19
BLOB_COMPRESSED = 140
VARCHAR_COMPRESSED = 141
VECTOR = 242
JSON = 245
NEWDECIMAL = 246
ENUM = 247
SET = 248
TINY_BLOB = 249
MEDIUM_BLOB = 250
LONG_BLOB = 251
BLOB = 252
VAR_STRING = 253
STRING = 254
GEOMETRY = 255

METADATA_BYTES: dict[int, int] = {
    DECIMAL: 0,
    TINY: 0,
    SHORT: 0,
    LONG: 0,
    FLOAT: 1,
    DOUBLE: 1,
    NULL: 0,
    TIMESTAMP: 0,
    LONGLONG: 0,
    INT24: 0,
    DATE: 0,
    TIME: 0,
    DATETIME: 0,
    YEAR: 0,
    NEWDATE: 0,
    VARCHAR: 2,
    BIT: 2,
    TIMESTAMP2: 1,
    DATETIME2: 1,
    TIME2: 1,
    BLOB_COMPRESSED: 1,
    VARCHAR_COMPRESSED: 2,
    VECTOR: 1,
    JSON: 1,
    NEWDECIMAL: 2,
    ENUM: 2,
    SET: 2,
    TINY_BLOB: 1,
    MEDIUM_BLOB: 1,
    LONG_BLOB: 1,
    BLOB: 1,
    VAR_STRING: 2,
    STRING: 2,
    GEOMETRY: 1,
}
"""Every type that a table map can hold. Any other is an error: nobody can know where its metadata ends."""

NUMERIC = frozenset({TINY, SHORT, INT24, LONG, LONGLONG, NEWDECIMAL, FLOAT, DOUBLE})
"""The types that a table map tells the signedness of."""
CHARACTER = frozenset(
    {STRING, VAR_STRING, VARCHAR, VARCHAR_COMPRESSED}
    | {TINY_BLOB, MEDIUM_BLOB, LONG_BLOB, BLOB, BLOB_COMPRESSED}
)
"""The real types that a table map tells the collation of."""
