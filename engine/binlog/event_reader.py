"""A cursor over an event's bytes that checks every length before use.

All event decoders share it. A read outside the bounds raises an `EventError` with the offset; malformed
bytes never raise another exception.
"""

from __future__ import annotations

import struct

from engine.errors import EventError

_DOUBLE = struct.Struct("<d")
_LENGTH_ENCODED = {0xFC: 2, 0xFD: 3, 0xFE: 8}


class EventReader:
    """A cursor over `data[offset:end]`; offsets count from the start of `data`."""

    __slots__ = ("data", "end", "offset")

    def __init__(self, data: bytes, offset: int = 0, end: int | None = None) -> None:
        self.data = data
        self.offset = offset
        self.end = len(data) if end is None else end
        if not 0 <= offset <= self.end <= len(data):
            raise EventError(f"the event ends after {len(data)} bytes", offset)

    @property
    def remaining(self) -> int:
        """Number of bytes left."""
        return self.end - self.offset

    def skip(self, length: int) -> None:
        """Skip `length` bytes."""
        if not 0 <= length <= self.end - self.offset:
            raise EventError(f"{max(length, 1)} bytes expected, {self.remaining} left", self.offset)
        self.offset += length

    def take(self, length: int) -> bytes:
        """The next `length` bytes."""
        start = self.offset
        self.skip(length)
        return self.data[start : self.offset]

    def rest(self) -> bytes:
        """All bytes left."""
        return self.take(self.remaining)

    def part(self, length: int) -> EventReader:
        """A reader for the next `length` bytes, which this reader skips."""
        start = self.offset
        self.skip(length)
        return EventReader(self.data, start, self.offset)

    def uint(self, length: int) -> int:
        """A little-endian unsigned integer of `length` bytes."""
        start = self.offset
        self.skip(length)
        return int.from_bytes(self.data[start : self.offset], "little")

    def sint(self, length: int) -> int:
        """A little-endian signed integer of `length` bytes."""
        return int.from_bytes(self.take(length), "little", signed=True)

    def double(self) -> float:
        """A little-endian double."""
        value: float = _DOUBLE.unpack(self.take(8))[0]
        return value

    def length_encoded(self) -> int:
        """A length-encoded integer of the client/server protocol: 1, 3, 4 or 9 bytes."""
        if self.offset < self.end and (first := self.data[self.offset]) < 0xFB:
            self.offset += 1
            return first
        first = self.uint(1)
        if first not in _LENGTH_ENCODED:
            raise EventError(f"a length cannot start with byte 0x{first:02x}", self.offset - 1)
        return self.uint(_LENGTH_ENCODED[first])

    def length_encoded_bytes(self) -> bytes:
        """Bytes after their length, a length-encoded integer."""
        return self.take(self.length_encoded())

    def terminated(self) -> bytes:
        """The bytes before the next zero byte, which is skipped."""
        stop = self.data.find(b"\0", self.offset, self.end)
        if stop < 0:
            raise EventError("a string is not terminated", self.offset)
        value = self.take(stop - self.offset)
        self.skip(1)
        return value

    def fixed_text(self, length: int) -> str:
        """Text in a field of `length` bytes, up to its first zero byte."""
        return text(self.take(length).split(b"\0", 1)[0])


def text(value: bytes) -> str:
    """UTF-8 text, such as names in events; a byte that is not valid UTF-8 becomes `\\xNN`."""
    return value.decode("utf-8", "backslashreplace")
