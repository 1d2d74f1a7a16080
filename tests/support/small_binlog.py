"""Small binlog files made from scratch: a format description and events of any type and body."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from pathlib import Path

from engine.binlog import event_types as t

MAGIC = b"\xfebin"
_HEADER = struct.Struct("<IBIIIH")
_POST_HEADER_LENGTHS = bytes([56, 13, 0, 8, 0, 18, 0, 4, 4, 4, 4, 18, 0, 0, 95, 0, 4, 26, 8]) + bytes(23)


def event(
    type_code: int, body: bytes, start: int, checksum: bool, flags: int = 0, timestamp: int = 1_700_000_000
):
    """One event that starts at position `start` of its file."""
    size = t.HEADER_LENGTH + len(body) + (t.CHECKSUM_LENGTH if checksum else 0)
    content = _HEADER.pack(timestamp, type_code, 5, size, (start + size) & 0xFFFFFFFF, flags) + body
    return content + zlib.crc32(content).to_bytes(4, "little") if checksum else content


def format_description(version: str = "8.0.36", checksum: bool = True, flags: int = 0) -> bytes:
    """A format description; it always has room for a checksum, whatever the other events have."""
    body = struct.pack("<H50sIB", 4, version.encode(), 1_700_000_000, t.HEADER_LENGTH)
    whole = event(
        t.FORMAT_DESCRIPTION_EVENT, body + _POST_HEADER_LENGTHS + bytes([checksum]), len(MAGIC), True
    )
    return whole[:17] + flags.to_bytes(2, "little") + whole[19:]


def write_binlog(
    path: Path,
    events: Iterable[tuple[int, bytes]],
    version: str = "8.0.36",
    checksum: bool = True,
    flags: int = 0,
) -> list[bytes]:
    """Write a file with these (type, body) behind its format description; returns all its events."""
    written = [format_description(version, checksum, flags)]
    position = len(MAGIC) + len(written[0])
    for type_code, body in events:
        written.append(event(type_code, body, position, checksum))
        position += len(written[-1])
    path.write_bytes(MAGIC + b"".join(written))
    return written
