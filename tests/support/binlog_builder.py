"""Binlogs made from scratch: bytes of events, and whole files, out of event types and bodies.

For what no server at hand writes, and for bytes that lie. `tests.support.made_events` makes the bodies.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from engine.binlog import event_types as t
from engine.binlog.format_description import FormatDescription, has_checksum_field

MAGIC = b"\xfebin"
MYSQL = "8.0.36"
MARIADB = "10.11.6-MariaDB-log"
PLAIN = FormatDescription.assumed()
"""The format of events without checksums."""
CHECKED = FormatDescription.assumed(checksum_algorithm=1)
Part = tuple[int, bytes]
"""An event's type code and body."""

_HEADER = struct.Struct("<IBIIIH")
_POST_HEADER_LENGTHS = bytes([56, 13, 0, 8, 0, 18, 0, 4, 4, 4, 4, 18, 0, 0, 95, 0, 4, 26, 8]) + bytes(23)


def make_event(
    type_code: int,
    body: bytes,
    start: int = 100,
    checksum: bool = False,
    *,
    flags: int = 0,
    timestamp: int = 1_700_000_000,
    server_id: int = 5,
) -> bytes:
    """One event that starts at position `start` of its file."""
    size = t.HEADER_LENGTH + len(body) + (t.CHECKSUM_LENGTH if checksum else 0)
    content = _HEADER.pack(timestamp, type_code, server_id, size, (start + size) & 0xFFFFFFFF, flags) + body
    return content + zlib.crc32(content).to_bytes(4, "little") if checksum else content


def make_events(parts: Iterable[Part], start: int, checksum: bool) -> list[bytes]:
    """Events that follow each other from position `start` on."""
    events: list[bytes] = []
    for type_code, body in parts:
        events.append(make_event(type_code, body, start, checksum))
        start += len(events[-1])
    return events


def format_description(version: str = MYSQL, checksum: bool = True, flags: int = 0) -> bytes:
    """A format description; it always has room for a checksum, whatever the other events have."""
    body = struct.pack("<H50sIB", 4, version.encode(), 1_700_000_000, t.HEADER_LENGTH)
    whole = make_event(
        t.FORMAT_DESCRIPTION_EVENT, body + _POST_HEADER_LENGTHS + bytes([checksum]), len(MAGIC), True
    )
    return whole[:17] + flags.to_bytes(2, "little") + whole[19:]


def binlog(
    parts: Iterable[Part], version: str = MYSQL, *, checksum: bool | None = None, flags: int = 0
) -> list[bytes]:
    """All events of a file: a format description, then these parts.

    They have checksums where servers of that version write them, unless `checksum` says otherwise.
    """
    checksum = has_checksum_field(version) if checksum is None else checksum
    first = format_description(version, checksum, flags)
    return [first, *make_events(parts, len(MAGIC) + len(first), checksum)]


def write_binlog(
    path: Path, parts: Iterable[Part], version: str = MYSQL, checksum: bool = True, flags: int = 0
) -> list[bytes]:
    """Write a file that has the events of `binlog`; returns them."""
    written = binlog(parts, version, checksum=checksum, flags=flags)
    path.write_bytes(MAGIC + b"".join(written))
    return written


def with_checksum(event: bytes) -> bytes:
    """The event with its size raised and its checksum at its end."""
    event = event[:9] + (len(event) + 4).to_bytes(4, "little") + event[13:]
    return event + zlib.crc32(event).to_bytes(4, "little")


def resized(event: bytes) -> bytes:
    """The event with the size in its header made true again."""
    return event[:9] + len(event).to_bytes(4, "little") + event[13:]


def with_post_header(type_code: int, length: int, fmt: FormatDescription = PLAIN) -> FormatDescription:
    """The format with another post header length for one type."""
    lengths = bytearray(fmt.post_header_lengths.ljust(256, b"\0"))
    lengths[type_code - 1] = length
    return replace(fmt, post_header_lengths=bytes(lengths))
