"""Events made by hand, for what no server at hand writes."""

from __future__ import annotations

import zlib
from dataclasses import replace

from engine.binlog.format_description import FormatDescription

PLAIN = FormatDescription.assumed()
"""The format of events without checksums."""
CHECKED = FormatDescription.assumed(checksum_algorithm=1)


def make_event(
    type_code: int, body: bytes, *, timestamp: int = 1_700_000_000, server_id: int = 7, flags: int = 0
) -> bytes:
    """An event at position 100, without checksum."""
    size = 19 + len(body)
    return b"".join(
        (
            timestamp.to_bytes(4, "little"),
            bytes([type_code]),
            server_id.to_bytes(4, "little"),
            size.to_bytes(4, "little"),
            (100 + size).to_bytes(4, "little"),
            flags.to_bytes(2, "little"),
            body,
        )
    )


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
