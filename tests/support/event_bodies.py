"""Bodies of events, byte by byte, and what they decode to."""

from __future__ import annotations

import json
import struct
from typing import Any

import zstandard

from engine.binlog import event_types as t
from engine.binlog.events.decoding import decode_event
from engine.binlog.format_description import FormatDescription
from tests.support.binlog_builder import PLAIN, make_event

UUID = bytes(range(16))

UUID_TEXT = "00010203-0405-0607-0809-0a0b0c0d0e0f"


def body_of(type_code: int, body: bytes, fmt: FormatDescription = PLAIN) -> Any:
    return decode_event(make_event(type_code, body), fmt).body


def json_of(type_code: int, body: bytes, fmt: FormatDescription = PLAIN) -> Any:
    shown = decode_event(make_event(type_code, body), fmt).to_json()
    return json.loads(json.dumps(shown))["data"]


def serialized(value: int) -> bytes:
    """An unsigned integer in MySQL's serialization format."""
    bits = value.bit_length()
    size = 9 if bits > 56 else max(1, (bits + 6) // 7)
    head = (1 << (size - 1)) - 1
    if size == 9:
        return bytes([head]) + value.to_bytes(8, "little")
    return (value << size | head).to_bytes(size, "little")


def encoded_set(entries: list[tuple[bytes, bytes | None, list[tuple[int, int]]]], with_tags: bool) -> bytes:
    head = 1 << 56 | len(entries) << 8 | 1 if with_tags else len(entries)
    encoded = struct.pack("<Q", head)
    for uuid, tag, intervals in entries:
        encoded += uuid + (serialized(len(tag or b"")) + (tag or b"") if with_tags else b"")
        encoded += struct.pack("<Q", len(intervals))
        encoded += b"".join(struct.pack("<QQ", first, last + 1) for first, last in intervals)
    return encoded


def tagged(fields: dict[int, bytes], must_know: int = 0) -> bytes:
    content = serialized(must_know) + b"".join(serialized(key) + value for key, value in fields.items())
    size = 2
    while len(serialized(size)) + 1 + len(content) != size:
        size = len(serialized(size)) + 1 + len(content)
    return serialized(1) + serialized(size) + content


TAGGED = {
    0: serialized(1),
    1: b"".join(serialized(byte) for byte in UUID),
    2: serialized(6 << 1),
    3: serialized(3) + b"app",
    6: serialized(2_000_000),
    9: serialized(90000),
}


def query(statement: bytes, status: bytes = b"", database: bytes = b"shop") -> bytes:
    fixed = struct.pack("<IIBHH", 11, 2, len(database), 1062, len(status))
    return fixed + status + database + b"\0" + statement


def user_var(value_type: int, collation: int, value: bytes, tail: bytes = b"") -> bytes:
    fixed = struct.pack("<BBII", 0, value_type, collation, len(value))
    return struct.pack("<I", 1) + b"v" + fixed + value + tail


LOAD_FIXED = struct.pack("<IIIBBI", 5, 1, 2, 2, 4, 2)

LOAD_NAMES = b"\x01\x02" + b"a\0bb\0" + b"t1\0" + b"shop\0"


def rows_body(extra: bytes, *bitmaps: bytes, count: bytes = b"\x02", rows: bytes = b"") -> bytes:
    fixed = (99).to_bytes(6, "little") + struct.pack("<H", 1) + struct.pack("<H", 2 + len(extra)) + extra
    return fixed + count + b"".join(bitmaps) + rows


def payload(events: bytes, *, compression: int = 0, claimed: int | None = None, frames: int = 1) -> bytes:
    packed = events
    if compression == 0:
        step = max(1, -(-len(events) // frames))
        pieces = (events[at : at + step] for at in range(0, len(events), step))
        packed = b"".join(zstandard.compress(piece) for piece in pieces)
    values = {2: length_encoded(compression), 3: length_encoded(len(events) if claimed is None else claimed)}
    values[1] = length_encoded(len(packed))
    fields = b"".join(bytes([code, len(value)]) + value for code, value in values.items())
    return fields + b"\x00" + packed


def length_encoded(value: int) -> bytes:
    if value < 251:
        return bytes([value])
    return b"\xfe" + value.to_bytes(8, "little")


INNER = make_event(t.XID_EVENT, bytes(8)) + make_event(t.STOP_EVENT, b"")
