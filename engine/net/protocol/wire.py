"""The basic data types of MySQL's protocol: fixed-length and length-encoded integers, and strings.

A `Reader` parses one payload from its start to its end and checks every length before it uses it; the
`*_bytes` functions build the same types. The meaning of packets is in the modules that use this one.
"""

from __future__ import annotations

from engine.errors import EngineError

NULL_MARKER = 0xFB
_NULL = bytes([NULL_MARKER])
_LENENC_WIDTH = {0xFC: 2, 0xFD: 3, 0xFE: 8}


class ProtocolError(EngineError):
    """The other side sent bytes that are not MySQL's protocol.

    If the server normally uses the protocol, the bytes were damaged in transit or came from another program,
    so a later attempt may succeed.
    """

    retryable = True


class Reader:
    """A cursor over one payload; reading past its end raises `ProtocolError`."""

    __slots__ = ("_data", "_what", "offset")

    def __init__(self, data: bytes, what: str = "packet") -> None:
        self._data = data
        self._what = what
        self.offset = 0

    @property
    def remaining(self) -> int:
        """Bytes not read yet."""
        return len(self._data) - self.offset

    def fail(self, reason: str) -> ProtocolError:
        """An error that names this payload and the current offset, for the caller to raise."""
        return ProtocolError(f"malformed {self._what}: {reason} (byte {self.offset} of {len(self._data)})")

    def take(self, length: int) -> bytes:
        """Exactly `length` bytes."""
        if length > self.remaining:
            raise self.fail(f"{length} bytes are needed, {self.remaining} are left")
        start = self.offset
        self.offset = start + length
        return bytes(self._data[start : self.offset])

    def uint(self, width: int) -> int:
        """An unsigned little-endian integer of `width` bytes."""
        return int.from_bytes(self.take(width), "little")

    def peek(self) -> int | None:
        """The next byte, without advancing; None at the end."""
        return self._data[self.offset] if self.remaining else None

    def lenenc_int(self) -> int:
        """A length-encoded integer."""
        first = self.uint(1)
        if first < NULL_MARKER:
            return first
        width = _LENENC_WIDTH.get(first)
        if width is None:
            raise self.fail(f"0x{first:02x} does not start a length-encoded integer")
        return self.uint(width)

    def lenenc_bytes(self) -> bytes:
        """A string after its length-encoded length."""
        start = self.offset + 1
        if start <= len(self._data) and self._data[start - 1] < NULL_MARKER:
            # Most strings are short, and there are many: read these without further calls.
            end = start + self._data[start - 1]
            if end <= len(self._data):
                self.offset = end
                return self._data[start:end]
        return self.take(self.lenenc_int())

    def lenenc_bytes_or_null(self) -> bytes | None:
        """A cell of a text row: a length-encoded string, or None for the byte that means NULL."""
        if self._data[self.offset : self.offset + 1] == _NULL:
            self.offset += 1
            return None
        return self.lenenc_bytes()

    def short_bytes(self) -> bytes:
        """A string after a length of one byte."""
        return self.take(self.uint(1))

    def nul_bytes(self) -> bytes:
        """A string up to its NUL, which is skipped."""
        end = self._data.find(b"\0", self.offset)
        if end < 0:
            raise self.fail("a string does not end with a NUL")
        value = self.take(end - self.offset)
        self.offset += 1
        return value

    def nul_bytes_or_rest(self) -> bytes:
        """A string up to its NUL, or to the end of the payload: some servers leave the last NUL out."""
        if self._data.find(b"\0", self.offset) < 0:
            return self.rest()
        return self.nul_bytes()

    def rest(self) -> bytes:
        """All bytes that are left."""
        return self.take(self.remaining)


def uint_bytes(value: int, width: int) -> bytes:
    """`value` as an unsigned little-endian integer of `width` bytes."""
    return value.to_bytes(width, "little")


def lenenc_int_bytes(value: int) -> bytes:
    """`value` as a length-encoded integer, in its shortest form."""
    if value < NULL_MARKER:
        return uint_bytes(value, 1)
    for marker, width in _LENENC_WIDTH.items():
        if value < 1 << (8 * width):
            return uint_bytes(marker, 1) + uint_bytes(value, width)
    raise ValueError(f"{value} does not fit a length-encoded integer")


def lenenc_bytes(value: bytes) -> bytes:
    """`value` after its length-encoded length."""
    return lenenc_int_bytes(len(value)) + value


def lenenc_bytes_or_null(value: bytes | None) -> bytes:
    """A cell of a text row; None is NULL."""
    return uint_bytes(NULL_MARKER, 1) if value is None else lenenc_bytes(value)


def short_bytes(value: bytes) -> bytes:
    """`value` after a length of one byte; raises `ValueError` if it is longer than 255 bytes."""
    if len(value) > 255:
        raise ValueError(f"a length of one byte allows 255 bytes, not {len(value)}")
    return uint_bytes(len(value), 1) + value


def nul_bytes(value: bytes) -> bytes:
    """`value` and a NUL; raises `ValueError` if it contains a NUL itself."""
    if b"\0" in value:
        raise ValueError("a NUL-terminated string cannot contain a NUL")
    return value + b"\0"
