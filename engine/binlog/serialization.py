"""MySQL's serialization format (`mysql::serialization`), which it uses for events added since 8.3.

A message is the format version, its size, the last field that a reader must know, then fields of id and
value in order of ids. The id determines the type of the value. Source: MySQL's
`libs/mysql/serialization/readme.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from engine.binlog.event_reader import EventReader
from engine.errors import UnsupportedError

_FORMAT_VERSION = 1

FieldReader = Callable[[EventReader], Any]


def read_message(reader: EventReader, fields: Mapping[int, tuple[str, FieldReader]]) -> dict[str, Any]:
    """A message's fields by name. `fields` has name and reader per id.

    Reading stops at a field that is not in `fields`, since its length is unknown. Raises `UnsupportedError`
    if the message requires the reader to know it.
    """
    start = reader.offset
    version = unsigned(reader)
    if version != _FORMAT_VERSION:
        raise UnsupportedError(f"serialization format {version} is unknown", start)
    message = reader.part(unsigned(reader) - (reader.offset - start))
    must_know = unsigned(message)
    values: dict[str, Any] = {}
    while message.remaining:
        field = unsigned(message)
        if field in fields:
            name, read = fields[field]
            values[name] = read(message)
        elif field > must_know:
            break
        else:
            raise UnsupportedError(f"field {field} is unknown, but must not be ignored", message.offset)
    return values


def unsigned(reader: EventReader) -> int:
    """An unsigned integer of 1 to 9 bytes; the first byte's trailing ones count the bytes that follow it."""
    first = reader.uint(1)
    more = (~first & (first + 1)).bit_length() - 1
    if more == 8:
        return reader.uint(8)
    return first >> (more + 1) | reader.uint(more) << (7 - more)


def signed(reader: EventReader) -> int:
    """A signed integer: its sign is the lowest bit, and negative numbers are inverted."""
    value = unsigned(reader)
    return ~(value >> 1) if value & 1 else value >> 1


def string(reader: EventReader) -> bytes:
    """Bytes after their length."""
    return reader.take(unsigned(reader))
