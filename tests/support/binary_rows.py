"""Result sets of prepared statements as servers send them, made from Python values."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from engine.binlog.field_types import FieldType as F
from engine.binlog.table_definition import ColumnDefinition, TableDefinition
from engine.net.protocol.capabilities import Capability, ServerStatus
from engine.net.protocol.packets import build_end, frame
from engine.net.protocol.resultset import ColumnDefinition as ResultColumn
from engine.net.protocol.wire import lenenc_bytes

UNSIGNED = 0x20
BINARY, UTF8MB4, LATIN1 = 63, 255, 8
"""Collation ids."""
MODERN = Capability.PROTOCOL_41 | Capability.DEPRECATE_EOF
OLD = Capability.PROTOCOL_41


@dataclass(frozen=True)
class Typed:
    """A column's type in its definition, and in a result."""

    declared: str
    type_code: int
    flags: int = 0
    charset: str | None = None
    collation: int = BINARY
    decimals: int = 0

    def definition(self, name: str) -> ColumnDefinition:
        return ColumnDefinition(name, self.declared, self.charset)

    def result(self, name: str) -> ResultColumn:
        return ResultColumn(name, self.type_code, self.collation, 0, self.flags, self.decimals)


def text(declared: str, type_code: int = F.VAR_STRING) -> Typed:
    return Typed(declared, type_code, charset="utf8mb4", collation=UTF8MB4)


def table(columns: Sequence[Typed]) -> tuple[TableDefinition, tuple[ResultColumn, ...]]:
    """A table with these columns, and the columns of a result that selects them."""
    names = [f"c{number}" for number in range(len(columns))]
    definitions = tuple(column.definition(name) for name, column in zip(names, columns, strict=True))
    results = tuple(column.result(name) for name, column in zip(names, columns, strict=True))
    return TableDefinition("shop", "orders", definitions), results


def number(format: str, value: float) -> bytes:
    """An integer or a floating point number, by its `struct` format."""
    return struct.pack("<" + format, value)


def moment(value: date | datetime | None) -> bytes:
    """A DATE, DATETIME or TIMESTAMP as short as servers send it; None is the zero date."""
    if value is None:
        return b"\0"
    fields = struct.pack("<HBB", value.year, value.month, value.day)
    if isinstance(value, datetime) and (value.hour or value.minute or value.second or value.microsecond):
        fields += bytes([value.hour, value.minute, value.second])
        if value.microsecond:
            fields += struct.pack("<I", value.microsecond)
    return bytes([len(fields)]) + fields


def duration(value: timedelta) -> bytes:
    """A TIME as short as servers send it."""
    micros = abs(value) // timedelta(microseconds=1)
    if not micros:
        return b"\0"
    seconds, micros = divmod(micros, 1_000_000)
    days, rest = divmod(seconds, 86_400)
    fields = struct.pack("<BIBBB", value < timedelta(0), days, rest // 3600, rest // 60 % 60, rest % 60)
    if micros:
        fields += struct.pack("<I", micros)
    return bytes([len(fields)]) + fields


def row(values: Sequence[bytes | None]) -> bytes:
    """One row's payload from the bytes of its values; None is NULL."""
    nulls = sum((value is None) << (index + 2) for index, value in enumerate(values))
    bitmap = nulls.to_bytes((len(values) + 9) // 8, "little")
    return b"\0" + bitmap + b"".join(value for value in values if value is not None)


def result(rows: Iterable[bytes], capabilities: Capability = MODERN, sequence: int = 5) -> bytes:
    """The packets of these rows, numbered from `sequence` on, and of their end."""
    packets = bytearray()
    for payload in [*rows, build_end(ServerStatus.AUTOCOMMIT, capabilities)]:
        framed, sequence = frame(payload, sequence)
        packets += framed
    return bytes(packets)


def content(value: bytes) -> bytes:
    """A string, a DECIMAL's digits, or any other value that is sent as a string."""
    return lenenc_bytes(value)


def any_value(value: Any) -> bytes:
    """A value as its Python type suggests: bytes and text as strings, a moment or a duration."""
    if isinstance(value, timedelta):
        return duration(value)
    if isinstance(value, date):
        return moment(value)
    return content(value.encode() if isinstance(value, str) else value)
