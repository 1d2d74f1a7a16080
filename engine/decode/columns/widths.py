"""How many bytes hold the length of a string-like cell, as the table map's metadata tells it."""

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
"""Types whose metadata is the column's length in bytes; the others' is the number of length bytes itself."""


def length_bytes(column: Column) -> int:
    """Bytes (1 to 4) of the length before each cell's content; `EngineError` for metadata that cannot be."""
    if column.type_code in _LENGTH_IN_METADATA:
        return 2 if column.metadata > 255 else 1
    if not 1 <= column.metadata <= 4:
        raise EngineError(
            f"column {column.name} has lengths of {column.metadata} bytes in the binlog, where 1 to 4 can be"
        )
    return column.metadata
