"""MySQL's binary JSON as the text that MySQL prints: the slow, readable reference of the kernel in
`documents`.

It converts every valid value; the kernel leaves rare values and broken documents to it. All offsets are
checked against the container that holds them and must not point backwards, so a document cannot contain
itself; the text is limited to a multiple of the document's size, so values that share bytes cannot multiply
it. Strings and keys are utf8mb4, so other bytes are an error. The format is that of MySQL's
`sql-common/json_binary.h`, the text that of `Json_wrapper::to_string`.
"""

from __future__ import annotations

import base64
import math
import struct
from dataclasses import dataclass, field

from engine.binlog.decimal_text import decimal_text
from engine.binlog.double_text import double_text
from engine.binlog.field_types import FieldType
from engine.errors import EventError

SMALL_OBJECT, LARGE_OBJECT, SMALL_ARRAY, LARGE_ARRAY = range(4)
LITERAL, INT16, UINT16, INT32, UINT32, INT64, UINT64, DOUBLE, STRING = range(4, 13)
OPAQUE = 15

DEEPEST = 100
"""The deepest nesting of containers that MySQL allows."""
GROWTH = 8
"""The most characters of text per byte of a document; an escaped control character takes six."""
SHORTEST_LIMIT = 64
"""Characters that every document may take in addition."""

LITERALS = ("null", "true", "false")
_NUMBERS = {INT16: "<h", UINT16: "<H", INT32: "<i", UINT32: "<I", INT64: "<q", UINT64: "<Q", DOUBLE: "<d"}
INLINED = ({LITERAL, INT16, UINT16}, {LITERAL, INT16, UINT16, INT32, UINT32})
"""Types whose values are stored in the table of values itself, in small and in large containers."""

_ESCAPES = {ord('"'): '\\"', ord("\\"): "\\\\"}
_ESCAPES |= {byte: f"\\u{byte:04x}" for byte in range(0x20)}
_ESCAPES |= {ord(c): f"\\{name}" for c, name in zip("\b\t\n\f\r", "btnfr", strict=True)}

_BASE64_LINE = 57
"""Bytes per line of base64; the line breaks are part of the text."""


def json_text(document: bytes) -> str:
    """The text of a document. Raises `EventError`, with an offset in `document`, for a broken one."""
    if not document:
        return "null"
    reader = _Reader(document, GROWTH * len(document) + SHORTEST_LIMIT)
    reader.value(document[0], 1, len(document), 0)
    return "".join(reader.parts)


@dataclass(slots=True)
class _Reader:
    document: bytes
    room: int
    parts: list[str] = field(default_factory=list)

    def write(self, text: str) -> None:
        self.room -= len(text)
        if self.room < 0:
            raise EventError("a JSON document has more text than its size allows: some of its values overlap")
        self.parts.append(text)

    def check(self, at: int, size: int, end: int) -> None:
        """Raise `EventError` unless the `size` bytes at `at` end at or before `end`."""
        if size > end - at:
            raise EventError("a JSON value does not lie inside its document", at)

    def take(self, at: int, size: int, end: int) -> bytes:
        """The `size` bytes at `at`, which must end at or before `end`."""
        self.check(at, size, end)
        return self.document[at : at + size]

    def number(self, at: int, size: int, end: int) -> int:
        return int.from_bytes(self.take(at, size, end), "little")

    def variable_length(self, at: int, end: int) -> tuple[int, int]:
        """A length in seven bits per byte, and its end offset."""
        length = 0
        for shift in range(0, 35, 7):
            byte = self.number(at, 1, end)
            at += 1
            length |= (byte & 0x7F) << shift
            if byte < 0x80:
                return length, at
        raise EventError("a JSON length has too many bytes", at)

    def value(self, kind: int, at: int, end: int, depth: int) -> None:
        """Write the value of type `kind` whose content starts at `at` and lies before `end`."""
        if kind <= LARGE_ARRAY:
            self.container(kind, at, end, depth)
        elif kind == LITERAL:
            literal = self.number(at, 1, end)
            if literal >= len(LITERALS):
                raise EventError(f"{literal} is not a JSON literal", at)
            self.write(LITERALS[literal])
        elif kind in _NUMBERS:
            form = _NUMBERS[kind]
            (number,) = struct.unpack(form, self.take(at, struct.calcsize(form), end))
            if isinstance(number, float) and not math.isfinite(number):
                raise EventError(f"{number} is not a JSON number", at)
            self.write(double_text(number) if isinstance(number, float) else str(number))
        elif kind == STRING:
            length, at = self.variable_length(at, end)
            self.string(at, length, end)
        elif kind == OPAQUE:
            field_type = self.number(at, 1, end)
            length, at = self.variable_length(at + 1, end)
            self.opaque(field_type, self.take(at, length, end), at)
        else:
            raise EventError(f"{kind} is not a JSON type", at)

    def string(self, at: int, size: int, end: int) -> None:
        """Write the `size` bytes at `at`, which must end at or before `end`, as a JSON string."""
        content = self.take(at, size, end)
        try:
            text = content.decode()
        except UnicodeDecodeError as error:
            reason = f"a JSON string is not UTF-8 (byte 0x{content[error.start]:02x})"
            raise EventError(reason, at + error.start) from None
        self.write('"' + text.translate(_ESCAPES) + '"')

    def container(self, kind: int, start: int, end: int, depth: int) -> None:
        """Write an object or array; its offsets count from `start`."""
        if depth == DEEPEST:
            raise EventError(f"a JSON document nests deeper than {DEEPEST} levels", start)
        is_object, is_large = kind in (SMALL_OBJECT, LARGE_OBJECT), kind in (LARGE_OBJECT, LARGE_ARRAY)
        width = 4 if is_large else 2
        count, size = self.number(start, width, end), self.number(start + width, width, end)
        self.check(start, size, end)
        end = start + size
        keys = start + 2 * width
        values = keys + (count * (width + 2) if is_object else 0)
        contents = values + count * (1 + width)
        if contents > end:
            raise EventError(f"a JSON container of {size} bytes cannot hold {count} values", start)

        self.write("{" if is_object else "[")
        for index in range(count):
            if index:
                self.write(", ")
            if is_object:
                entry = keys + index * (width + 2)
                key = start + self.number(entry, width, end)
                length = self.number(entry + width, 2, end)
                self.check_contents(key, contents)
                self.string(key, length, end)
                self.write(": ")
            entry = values + index * (1 + width)
            kind = self.number(entry, 1, end)
            if kind in INLINED[is_large]:
                self.value(kind, entry + 1, end, depth + 1)
            else:
                at = start + self.number(entry + 1, width, end)
                self.check_contents(at, contents)
                self.value(kind, at, end, depth + 1)
        self.write("}" if is_object else "]")

    @staticmethod
    def check_contents(at: int, contents: int) -> None:
        """Raise `EventError` for an offset before the container's contents."""
        if at < contents:
            raise EventError("a JSON offset points into the tables of its container", at)

    def opaque(self, field_type: int, content: bytes, at: int) -> None:
        """Write a value of an SQL type that JSON does not have."""
        if field_type == FieldType.NEWDECIMAL and len(content) > 2:
            self.write(decimal_text(content[2:], content[0], content[1]))
        elif field_type in (FieldType.DATE, FieldType.TIME, FieldType.DATETIME, FieldType.TIMESTAMP):
            if len(content) != 8:
                raise EventError(f"a JSON date or time has {len(content)} bytes", at)
            self.write(f'"{_temporal_text(field_type, int.from_bytes(content, "little", signed=True))}"')
        else:
            lines = [content[at : at + _BASE64_LINE] for at in range(0, len(content), _BASE64_LINE)]
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
