"""Parses MySQL's binary JSON into a tree and serializes it again, to apply the differences of partial
updates.

Containers become Python containers; scalars keep their bytes, so that no value is rounded. The format is
that of `layout`.
"""

from __future__ import annotations

from engine.dataclass import dataclass
from engine.decode.columns.json.layout import (
    DEEPEST,
    DOUBLE,
    INLINED,
    INT16,
    INT32,
    INT64,
    LARGE_ARRAY,
    LARGE_OBJECT,
    LITERAL,
    OPAQUE,
    SMALL_ARRAY,
    SMALL_OBJECT,
    STRING,
    UINT16,
    UINT32,
    UINT64,
    Layout,
)
from engine.errors import EventError, UnsupportedError

_SIZES = {LITERAL: 1, INT16: 2, UINT16: 2, INT32: 4, UINT32: 4, INT64: 8, UINT64: 8, DOUBLE: 8}
_LARGEST_SMALL = 0xFFFF
"""The most bytes of a container whose offsets and sizes have two bytes."""
_LARGEST = 0xFFFFFFFF
"""The most bytes of a container whose offsets and sizes have four bytes."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """A value that is not a container: its type and its bytes, including its length prefix if it has one."""

    kind: int
    content: bytes


Node = Scalar | dict[bytes, "Node"] | list["Node"]
"""A value; the keys of objects are UTF-8."""


def text_scalar(text: str) -> Scalar:
    """A string value."""
    content = text.encode()
    return Scalar(STRING, _variable_length(len(content)) + content)


def parse_document(document: bytes) -> Node:
    """The root of a document. Raises `EventError`, with an offset in `document`, for a broken one."""
    if not document:
        return Scalar(LITERAL, b"\0")
    return _Parser(Layout(document), len(document)).value(document[0], 1, len(document), 0)


def serialize_document(root: Node) -> bytes:
    """The document as MySQL stores it. Raises `EventError` if it is too deep or too large."""
    kind, content = _packed(root, 0)
    return bytes([kind]) + content


@dataclass(slots=True)
class _Parser:
    layout: Layout
    room: int
    """Bytes that the values not yet parsed can have, since no two values share bytes."""

    def use(self, size: int, at: int) -> None:
        self.room -= size
        if self.room < 0:
            raise EventError("the values of a JSON document overlap", at)

    def value(self, kind: int, at: int, end: int, depth: int) -> Node:
        """The value of type `kind` whose content starts at `at` and lies before `end`."""
        if kind <= LARGE_ARRAY:
            return self.container(kind, at, end, depth)
        if kind in _SIZES:
            return Scalar(kind, self.layout.take(at, _SIZES[kind], end))
        if kind not in (STRING, OPAQUE):
            raise EventError(f"{kind} is not a JSON type", at)
        length, content = self.layout.variable_length(at + (kind == OPAQUE), end)
        self.use(length, content)
        return Scalar(kind, self.layout.take(at, content - at + length, end))

    def container(self, kind: int, start: int, end: int, depth: int) -> Node:
        """An object or array."""
        found = self.layout.container(kind, start, end, depth)
        self.use(found.contents - start, start)
        members = [self.layout.member(found, index) for index in range(found.count)]
        nodes = [self.value(*member, found.end, depth + 1) for member in members]
        if not found.is_object:
            return nodes
        names = []
        for index in range(found.count):
            at, length = self.layout.key(found, index)
            self.use(length, at)
            names.append(self.layout.take(at, length, found.end))
        return dict(zip(names, nodes, strict=True))


def _packed(node: Node, depth: int) -> tuple[int, bytes]:
    """The type and the content of a value."""
    if isinstance(node, Scalar):
        return node.kind, node.content
    if depth == DEEPEST:
        raise EventError(f"a JSON document nests deeper than {DEEPEST} levels")
    if isinstance(node, dict):
        small, large = SMALL_OBJECT, LARGE_OBJECT
        # The order in which MySQL stores and prints them.
        names = sorted(node, key=lambda name: (len(name), name))
        children = [_packed(node[name], depth + 1) for name in names]
    else:
        small, large, names = SMALL_ARRAY, LARGE_ARRAY, []
        children = [_packed(child, depth + 1) for child in node]
    content = _layout(names, children, 2)
    if len(content) <= _LARGEST_SMALL:
        return small, content
    content = _layout(names, children, 4)
    if len(content) > _LARGEST:
        raise UnsupportedError(f"a JSON document takes more than {_LARGEST} bytes")
    return large, content


def _layout(names: list[bytes], children: list[tuple[int, bytes]], width: int) -> bytes:
    """A container with sizes and offsets of `width` bytes; invalid if it is too large for these."""
    mask = (1 << 8 * width) - 1
    tables = 2 * width + len(names) * (width + 2) + len(children) * (1 + width)
    head, contents = bytearray(), bytearray()
    for name in names:
        head += (tables + len(contents) & mask).to_bytes(width, "little") + len(name).to_bytes(2, "little")
        contents += name
    for kind, content in children:
        head.append(kind)
        if kind in INLINED[width == 4]:
            head += content.ljust(width, b"\0")
        else:
            head += (tables + len(contents) & mask).to_bytes(width, "little")
            contents += content
    size = tables + len(contents)
    counts = len(children).to_bytes(width, "little") if len(children) <= mask else bytes(width)
    return counts + (size & mask).to_bytes(width, "little") + bytes(head) + bytes(contents)


def _variable_length(length: int) -> bytes:
    """A length in seven bits per byte."""
    encoded = bytearray()
    while length > 0x7F:
        encoded.append(length & 0x7F | 0x80)
        length >>= 7
    return bytes(encoded) + bytes([length])
