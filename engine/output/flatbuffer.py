"""Where things stand in a flatbuffer, as far as Arrow's own messages are taken apart here.

A table is followed from the buffer's beginning or from a reference; where its fields stand is told by a
*vtable* that it points back to. Source: the FlatBuffers binary format, and Arrow's `Message.fbs`, `File.fbs`.
"""

from __future__ import annotations

import struct

Content = bytes | bytearray


def follow(content: Content, place: int) -> int:
    """Where the thing is that the reference at `place` is to (at 0: the buffer's table)."""
    (distance,) = struct.unpack_from("<I", content, place)
    return place + int(distance)


def field(content: Content, table: int, number: int) -> int:
    """Where a table's field stands, which must be there: one that has its default value may not be."""
    (vtable,) = struct.unpack_from("<i", content, table)
    (distance,) = struct.unpack_from("<H", content, table - vtable + 4 + 2 * number)
    assert distance
    return table + int(distance)


def vector(content: Content, place: int) -> tuple[int, int]:
    """The first entry's place, and the number of entries, of the vector that is referred to at `place`."""
    start = follow(content, place)
    (count,) = struct.unpack_from("<I", content, start)
    return start + 4, int(count)
