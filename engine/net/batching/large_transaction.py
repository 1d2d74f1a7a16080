"""A compressed transaction that is too large for one decoder, as the events that the server compressed.

A decoder expands a compressed transaction as a whole. A large one is expanded in the network process instead,
an event at a time, and cut into batches like a plain transaction, so that no process needs memory for all of
it. Its events get the compressed one's position, as those that a decoder expands.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

from engine.binlog.event_headers import open_event
from engine.binlog.event_types import CHECKSUM_LENGTH, FLAG_ARTIFICIAL, HEADER_LENGTH, SIZE_AT
from engine.binlog.events.payload import TransactionPayload, inner_events
from engine.binlog.format_description import FormatDescription

_SIZE_POSITION_FLAGS = struct.Struct("<IIH")
"""The last three fields of an event's header."""


def events_of(event: bytes, description: FormatDescription) -> Iterator[tuple[bytes, bool]]:
    """The events in a TRANSACTION_PAYLOAD_EVENT, each with whether it is the last; they have checksums.

    Their headers say that they take no place in the file (`engine.binlog.event_positions`), since only the
    compressed one does. Raises `EventError` if the event is malformed, or ends in the middle of one of them.
    """
    header, reader = open_event(event, description)
    body = TransactionPayload.decode(reader, header, description)
    waiting: bytes | None = None
    for inner in inner_events(body):
        if waiting is not None:
            yield waiting, False
        waiting = _plain(inner, description.checksum_length)
    if waiting is not None:
        yield waiting, True


def _plain(inner: bytes, checksum_length: int) -> bytes:
    """An event of a compressed transaction as one of the stream."""
    size, _, flags = _SIZE_POSITION_FLAGS.unpack_from(inner, SIZE_AT)
    fields = _SIZE_POSITION_FLAGS.pack(size + checksum_length, 0, flags | FLAG_ARTIFICIAL)
    plain = b"".join((inner[:SIZE_AT], fields, inner[HEADER_LENGTH:]))
    return plain + zlib.crc32(plain).to_bytes(CHECKSUM_LENGTH, "little") if checksum_length else plain
