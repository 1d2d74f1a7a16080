"""The layout of MySQL's binary JSON: types of values, lengths, and the tables at the start of a container.

All offsets are checked against the container that holds them and must not point backwards, so a document
cannot contain itself. Format: MySQL's `sql-common/json_binary.h`.
"""

from __future__ import annotations

from engine.dataclass import dataclass
from engine.errors import EventError

SMALL_OBJECT, LARGE_OBJECT, SMALL_ARRAY, LARGE_ARRAY = range(4)
LITERAL, INT16, UINT16, INT32, UINT32, INT64, UINT64, DOUBLE, STRING = range(4, 13)
OPAQUE = 15

DEEPEST = 100
"""The deepest nesting of containers that MySQL allows."""
INLINED = ({LITERAL, INT16, UINT16}, {LITERAL, INT16, UINT16, INT32, UINT32})
"""Types whose values are stored in the table of values itself, in small and in large containers."""
_LENGTH_BITS = range(0, 35, 7)
"""Places of the parts of a length in the number."""


@dataclass(frozen=True, slots=True)
class Container:
    """An object or array; all numbers are offsets in the document but `width` and `count`."""

    is_object: bool
    width: int
    """Bytes of each of its offsets and sizes: 2, or 4 in a large container."""
    count: int
    """Number of its values."""
    start: int
    """What its offsets count from."""
    keys: int
    """The table of keys, as long as `values` if it is an array."""
    values: int
    contents: int
    """After the tables: keys and values."""
    end: int


@dataclass(frozen=True, slots=True)
class Layout:
    """The bytes of a document. Methods raise `EventError`, with an offset in it, where they are broken."""

    document: bytes

    def check(self, at: int, size: int, end: int) -> None:
        """Raise `EventError` unless the `size` bytes at `at` end at or before `end`."""
        if size > end - at:
            raise EventError("a JSON value does not lie inside its document", at)

    def take(self, at: int, size: int, end: int) -> bytes:
        """The `size` bytes at `at`, which must end at or before `end`."""
        self.check(at, size, end)
        return self.document[at : at + size]

    def number(self, at: int, size: int, end: int) -> int:
        """The unsigned number in these bytes."""
        return int.from_bytes(self.take(at, size, end), "little")

    def variable_length(self, at: int, end: int) -> tuple[int, int]:
        """A length in seven bits per byte, and its end offset."""
        length = 0
        for shift in _LENGTH_BITS:
            byte = self.number(at, 1, end)
            at += 1
            length |= (byte & 0x7F) << shift
            if byte < 0x80:
                return length, at
        raise EventError("a JSON length has too many bytes", at)

    def container(self, kind: int, start: int, end: int, depth: int) -> Container:
        """The container of type `kind` that starts at `start` and lies before `end`, in `depth` others."""
        if depth == DEEPEST:
            raise EventError(f"a JSON document nests deeper than {DEEPEST} levels", start)
        is_object, is_large = kind in (SMALL_OBJECT, LARGE_OBJECT), kind in (LARGE_OBJECT, LARGE_ARRAY)
        width = 4 if is_large else 2
        count, size = self.number(start, width, end), self.number(start + width, width, end)
        self.check(start, size, end)
        keys = start + 2 * width
        values = keys + (count * (width + 2) if is_object else 0)
        contents = values + count * (1 + width)
        if contents > start + size:
            raise EventError(f"a JSON container of {size} bytes cannot hold {count} values", start)
        return Container(is_object, width, count, start, keys, values, contents, start + size)

    def key(self, container: Container, index: int) -> tuple[int, int]:
        """Offset and length of a key of an object, whose bytes may lie beyond its end."""
        entry = container.keys + index * (container.width + 2)
        return self._place(container, entry), self.number(entry + container.width, 2, container.end)

    def member(self, container: Container, index: int) -> tuple[int, int]:
        """The type of a value of a container, and where its content starts."""
        entry = container.values + index * (1 + container.width)
        kind = self.document[entry]
        is_inlined = kind in INLINED[container.width == 4]
        return kind, entry + 1 if is_inlined else self._place(container, entry + 1)

    def _place(self, container: Container, entry: int) -> int:
        """The offset in the document that an entry of a table has."""
        at = container.start + self.number(entry, container.width, container.end)
        if at < container.contents:
            raise EventError("a JSON offset points into the tables of its container", at)
        return at
