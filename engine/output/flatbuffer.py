"""Finds offsets in a flatbuffer, as far as the engine parses Arrow's messages.

A table is found through a reference, at the buffer's start or in another table; the offsets of its fields are
in a *vtable* that it refers to. Source: the FlatBuffers binary format, and Arrow's `Message.fbs`, `File.fbs`.
"""

from __future__ import annotations

import struct

Content = bytes | bytearray


def follow(content: Content, offset: int) -> int:
    """The offset that the reference at `offset` refers to (at 0: the buffer's root table)."""
    (distance,) = struct.unpack_from("<I", content, offset)
    return offset + int(distance)


def field(content: Content, table: int, number: int) -> int:
    """The offset of a table's field, which must be present; a field with its default value may be absent."""
    (vtable,) = struct.unpack_from("<i", content, table)
    (distance,) = struct.unpack_from("<H", content, table - vtable + 4 + 2 * number)
    assert distance
    return table + int(distance)


def vector(content: Content, offset: int) -> tuple[int, int]:
    """The offset of the first entry and the number of entries of the vector that `offset` refers to."""
    start = follow(content, offset)
    (count,) = struct.unpack_from("<I", content, start)
    return start + 4, int(count)
