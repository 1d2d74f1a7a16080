"""A compressed transaction that is too large for one decoder, as the events that the server compressed.

A decoder expands a compressed transaction as a whole. A large one is expanded in the network process instead,
a piece at a time, and cut into batches like a plain transaction, so that no process needs memory for all of
it. Its events get the compressed one's position, as those that a decoder expands.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

from engine.binlog.event_headers import open_event
from engine.binlog.event_roles import (
    ANONYMOUS_GTID,
    EVENT_ROLES,
    FORMAT,
    HEARTBEAT,
    MARIADB_GTID,
    MYSQL_GTID,
    PAYLOAD,
    ROTATE,
    TAGGED_GTID,
)
from engine.binlog.event_types import CHECKSUM_LENGTH, FLAG_ARTIFICIAL, HEADER_LENGTH, SIZE_AT, event_name
from engine.binlog.events.payload import TransactionPayload, inner_events
from engine.binlog.format_description import FormatDescription
from engine.errors import EventError

_AT_ONCE = 1 << 18
"""Bytes of the events that are handed on together."""
_NEVER_INSIDE = frozenset(
    (FORMAT, ROTATE, HEARTBEAT, PAYLOAD, MYSQL_GTID, ANONYMOUS_GTID, TAGGED_GTID, MARIADB_GTID)
)
_SIZE_POSITION_FLAGS = struct.Struct("<IIH")
"""The last three fields of an event's header."""


def plain_events(event: bytes, description: FormatDescription) -> Iterator[tuple[bytes, bool]]:
    """The events in a TRANSACTION_PAYLOAD_EVENT, with checksums: many at a time, then the last one alone.

    Each item is with whether it is the last one. The events' headers say that they take no place in the file
    (`engine.binlog.event_positions`), since only the compressed one does. Raises `EventError` if the event is
    malformed, ends in the middle of one of them, or contains one that is never inside of a transaction.
    """
    header, reader = open_event(event, description)
    body = TransactionPayload.decode(reader, header, description)
    waiting: list[bytes] = []
    size = 0
    for inner in inner_events(body):
        if EVENT_ROLES[inner[4]] in _NEVER_INSIDE:
            raise EventError(f"a compressed transaction contains a {event_name(inner[4])}")
        if size >= _AT_ONCE:
            yield b"".join(waiting), False
            waiting, size = [], 0
        waiting.append(_plain(inner, description.checksum_length))
        size += len(inner)
    if waiting[:-1]:
        yield b"".join(waiting[:-1]), False
    if waiting:
        yield waiting[-1], True


def _plain(inner: bytes, checksum_length: int) -> bytes:
    """An event of a compressed transaction as one of the stream."""
    size, _, flags = _SIZE_POSITION_FLAGS.unpack_from(inner, SIZE_AT)
    fields = _SIZE_POSITION_FLAGS.pack(size + checksum_length, 0, flags | FLAG_ARTIFICIAL)
    plain = b"".join((inner[:SIZE_AT], fields, inner[HEADER_LENGTH:]))
    return plain + zlib.crc32(plain).to_bytes(CHECKSUM_LENGTH, "little") if checksum_length else plain
