"""Writes the table map of a table that a definition describes, as a server with minimal metadata writes it.

It contains the types of the columns, their metadata, and which of them may be NULL; names, signs, character
sets and members come from the definition, which must accompany it. The inverse of `table_map`.
"""

from __future__ import annotations

from engine.binlog.definition_fit import written_type
from engine.binlog.field_types import FieldType
from engine.binlog.table_definition import TableDefinition
from engine.binlog.table_map import LENGTH_BITS, METADATA_BYTES, REAL_TYPE_AND_LENGTH
from engine.errors import EngineError

_LARGEST_LENGTH = 1023
"""Bytes of the longest CHAR: its length has 10 bits."""


def length_encoded(number: int) -> bytes:
    """The number of columns, or of bytes of metadata, as events contain it."""
    if number < 0xFB:
        return bytes([number])
    return b"\xfc" + number.to_bytes(2, "little")


def write_table_map(definition: TableDefinition, table_id: int, *, mariadb: bool) -> bytes:
    """The body of a TABLE_MAP_EVENT without optional metadata.

    Raises `EngineError`, naming the column, for a type that cannot be written.
    """
    codes, metadata = bytearray(), bytearray()
    for column in definition.columns:
        code, value = written_type(column, mariadb=mariadb)
        codes.append(FieldType.STRING if code in (FieldType.ENUM, FieldType.SET) else code)
        metadata += _pack_metadata(column.name, code, value)
    null_bits = sum(column.nullable << index for index, column in enumerate(definition.columns))
    return b"".join(
        (
            table_id.to_bytes(6, "little"),
            b"\x01\x00",
            *(bytes([len(name)]) + name + b"\0" for name in _names(definition)),
            length_encoded(len(codes)),
            codes,
            length_encoded(len(metadata)),
            metadata,
            null_bits.to_bytes((len(codes) + 7) // 8, "little"),
        )
    )


def _names(definition: TableDefinition) -> tuple[bytes, bytes]:
    return definition.database.encode(), definition.table.encode()


def _pack_metadata(name: str, code: FieldType, value: int) -> bytes:
    if code not in REAL_TYPE_AND_LENGTH:
        return value.to_bytes(METADATA_BYTES.get(code, 0), "little")
    if value > _LARGEST_LENGTH:
        raise EngineError(f"column {name} has {value} bytes, more than a table map can contain for its type")
    # Bits 8 and 9 of the length are inverted in the type's byte.
    return bytes([code & ~LENGTH_BITS | ~(value >> 4) & LENGTH_BITS, value & 0xFF])
