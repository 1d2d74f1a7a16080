"""MySQL's binary JSON as the text that MySQL prints: the slow, readable reference of the kernel in
`documents`.

It converts every valid value; the kernel leaves rare values and broken documents to it. The text is limited
to a multiple of the document's size, so values that share bytes cannot multiply it. Strings and keys are
utf8mb4, so other bytes are an error. The bytes are those of `layout`, the text that of MySQL's
`Json_wrapper::to_string`.
"""

from __future__ import annotations

import base64
import math
import struct
from dataclasses import field

from engine.binlog.decimal_text import decimal_text
from engine.binlog.double_text import double_text
from engine.binlog.field_types import FieldType
from engine.dataclass import dataclass
from engine.decode.columns.json.layout import (
    DOUBLE,
    INT16,
    INT32,
    INT64,
    LARGE_ARRAY,
    LITERAL,
    OPAQUE,
    STRING,
    UINT16,
    UINT32,
    UINT64,
    Layout,
)
from engine.errors import EventError

GROWTH = 8
"""The most characters of text per byte of a document; an escaped control character takes six."""
SHORTEST_LIMIT = 64
"""Characters that every document may take in addition."""

LITERALS = ("null", "true", "false")
_NUMBERS = {INT16: "<h", UINT16: "<H", INT32: "<i", UINT32: "<I", INT64: "<q", UINT64: "<Q", DOUBLE: "<d"}

_ESCAPES = {ord('"'): '\\"', ord("\\"): "\\\\"}
_ESCAPES |= {byte: f"\\u{byte:04x}" for byte in range(0x20)}
_ESCAPES |= {ord(c): f"\\{name}" for c, name in zip("\b\t\n\f\r", "btnfr", strict=True)}

BASE64_LINE = 57
"""Bytes per line of base64; the line breaks are part of the text."""


def json_text(document: bytes, *, points: bool = True) -> str:
    """The text of a document; `points`: whether whole doubles have a decimal point.

    Raises `EventError`, with an offset in `document`, for a broken one.
    """
    if not document:
        return "null"
    writer = _Writer(Layout(document), GROWTH * len(document) + SHORTEST_LIMIT, points)
    writer.value(document[0], 1, len(document), 0)
    return "".join(writer.parts)


@dataclass(slots=True)
class _Writer:
    layout: Layout
    room: int
    points: bool
    parts: list[str] = field(default_factory=list)

    def write(self, text: str) -> None:
        self.room -= len(text)
        if self.room < 0:
            raise EventError("a JSON document has more text than its size allows: some of its values overlap")
        self.parts.append(text)

    def value(self, kind: int, at: int, end: int, depth: int) -> None:
        """Write the value of type `kind` whose content starts at `at` and lies before `end`."""
        if kind <= LARGE_ARRAY:
            self.container(kind, at, end, depth)
        elif kind == LITERAL:
            literal = self.layout.number(at, 1, end)
            if literal >= len(LITERALS):
                raise EventError(f"{literal} is not a JSON literal", at)
            self.write(LITERALS[literal])
        elif kind in _NUMBERS:
            form = _NUMBERS[kind]
            (number,) = struct.unpack(form, self.layout.take(at, struct.calcsize(form), end))
            if isinstance(number, float) and not math.isfinite(number):
                raise EventError(f"{number} is not a JSON number", at)
            self.write(self._double(number) if isinstance(number, float) else str(number))
        elif kind == STRING:
            length, at = self.layout.variable_length(at, end)
            self.string(at, length, end)
        elif kind == OPAQUE:
            field_type = self.layout.number(at, 1, end)
            length, at = self.layout.variable_length(at + 1, end)
            self.opaque(field_type, self.layout.take(at, length, end), at)
        else:
            raise EventError(f"{kind} is not a JSON type", at)

    def _double(self, number: float) -> str:
        text = double_text(number)
        return text if self.points else text.removesuffix(".0")

    def string(self, at: int, size: int, end: int) -> None:
        """Write the `size` bytes at `at`, which must end at or before `end`, as a JSON string."""
        content = self.layout.take(at, size, end)
        try:
            text = content.decode()
        except UnicodeDecodeError as error:
            reason = f"a JSON string is not UTF-8 (byte 0x{content[error.start]:02x})"
            raise EventError(reason, at + error.start) from None
        self.write('"' + text.translate(_ESCAPES) + '"')

    def container(self, kind: int, start: int, end: int, depth: int) -> None:
        """Write an object or array."""
        found = self.layout.container(kind, start, end, depth)
        self.write("{" if found.is_object else "[")
        for index in range(found.count):
            if index:
                self.write(", ")
            if found.is_object:
                self.string(*self.layout.key(found, index), found.end)
                self.write(": ")
            self.value(*self.layout.member(found, index), found.end, depth + 1)
        self.write("}" if found.is_object else "]")

    def opaque(self, field_type: int, content: bytes, at: int) -> None:
        """Write a value of an SQL type that JSON does not have."""
        if field_type == FieldType.NEWDECIMAL and len(content) > 2:
            self.write(decimal_text(content[2:], content[0], content[1]))
        elif field_type in (FieldType.DATE, FieldType.TIME, FieldType.DATETIME, FieldType.TIMESTAMP):
            if len(content) != 8:
                raise EventError(f"a JSON date or time has {len(content)} bytes", at)
            self.write(f'"{_temporal_text(field_type, int.from_bytes(content, "little", signed=True))}"')
        else:
            lines = [content[at : at + BASE64_LINE] for at in range(0, len(content), BASE64_LINE)]
            text = "\\n".join(base64.b64encode(line).decode() for line in lines)
            self.write(f'"base64:type{field_type}:{text}"')


def _temporal_text(field_type: int, packed: int) -> str:
    """The text of a date or time in MySQL's packed form, always with six fraction digits."""
    sign = "-" if packed < 0 else ""
    fields, micros = abs(packed) >> 24, abs(packed) & 0xFFFFFF
    time = f"{fields >> 6 & 63:02}:{fields & 63:02}.{micros:06}"
    if field_type == FieldType.TIME:
        return f"{sign}{fields >> 12 & 0x3FF:02}:{time}"
    months, day = fields >> 22, fields >> 17 & 31
    date = f"{months // 13:04}-{months % 13:02}-{day:02}"
    return date if field_type == FieldType.DATE else f"{date} {fields >> 12 & 31:02}:{time}"
