"""What today's tools cannot read of the binlogs of the past; headers of all events."""

from __future__ import annotations

import struct

UNREADABLE = {
    "bug40482-bin.000001": "the tools know no incident of number 66",
    "binlog_before_20574.bin": "encrypted",
    "bug11747416_32228_binlog.000001": "cut off inside an event",
    "corrupt-relay-bin.000624": "damaged on purpose",
    "mdev-39404-binlog.000001": "damaged on purpose",
}


def headers(content: bytes) -> list[tuple[int, ...]]:
    """Position, then the header as it is, of every event that is whole; version 4 has two fields more."""
    found: list[tuple[int, ...]] = []
    at = 4
    while at + 19 <= len(content):
        timestamp, code, server_id, size, _, flags = struct.unpack_from("<IBIIIH", content, at)
        if size < 19 or at + size > len(content):
            break
        found.append((at, at + size, size, timestamp, code, server_id, flags))
        at += size
    return found
