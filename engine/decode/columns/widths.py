"""The size of the length prefix of a string-like cell, according to the table map's metadata."""

from __future__ import annotations

from engine.binlog.column import Column
from engine.binlog.field_types import FieldType
from engine.errors import EngineError

_LENGTH_IN_METADATA = {
    FieldType.VARCHAR,
    FieldType.VARCHAR_COMPRESSED,
    FieldType.VAR_STRING,
    FieldType.STRING,
}
"""Types whose metadata is the column's length in bytes; that of other types is the length prefix's size."""


def length_bytes(column: Column) -> int:
    """Bytes (1 to 4) of the length before each cell's content. Raises `EngineError` for invalid metadata."""
    if column.type_code in _LENGTH_IN_METADATA:
        return 2 if column.metadata > 255 else 1
    if not 1 <= column.metadata <= 4:
        raise EngineError(
            f"column {column.name} has lengths of {column.metadata} bytes in the binlog; they have 1 to 4"
        )
    return column.metadata
