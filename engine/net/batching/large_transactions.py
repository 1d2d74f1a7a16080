"""Compressed transactions that are too large for one decoder, as the events that the server compressed.

A decoder expands a compressed transaction as a whole. A large one is expanded in the network process instead,
a piece at a time, and its events are indexed in its place and cut into batches like those of a plain one, so
that no process needs memory for all of it. They get its position, as those that a decoder expands. What was
received after it may contain others, so it waits until the transaction is done with.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator

from engine.binlog.event_headers import open_event
from engine.binlog.event_positions import start_position
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
from engine.binlog.format_description import FormatDescription, verify_checksum
from engine.errors import EventError
from engine.net.batching.cutter import Cutter
from engine.net.batching.outgoing_batch import OutgoingBatch
from engine.net.batching.receive_buffer import ReceiveBuffer
from engine.net.batching.stream_format import StreamFormat
from engine.net.batching.stream_state import StreamState

_AT_ONCE = 1 << 18
"""Bytes of the events that are handed on together."""
_NEVER_INSIDE = frozenset(
    (FORMAT, ROTATE, HEARTBEAT, PAYLOAD, MYSQL_GTID, ANONYMOUS_GTID, TAGGED_GTID, MARIADB_GTID)
)
_SIZE_POSITION_FLAGS = struct.Struct("<IIH")
"""The last three fields of an event's header."""


class LargeTransactions:
    """Those of one stream. `index` indexes what is in `buffer`; `meanwhile` is called again and again."""

    def __init__(
        self,
        cutter: Cutter,
        buffer: ReceiveBuffer,
        state: StreamState,
        stream_format: StreamFormat,
        *,
        index: Callable[[], Iterator[OutgoingBatch]],
        meanwhile: Callable[[], None],
    ) -> None:
        self._cutter = cutter
        self._buffer = buffer
        self._state = state
        self._format = stream_format
        self._index = index
        self._meanwhile = meanwhile
        self.event: bytes | None = None
        """The one whose events are in the buffer in its place, in no packets."""
        self._following: list[memoryview] = []
        """Bytes that were received after such transactions, the next ones last."""

    @property
    def has_more(self) -> bool:
        """Whether bytes wait for `put_back`."""
        return bool(self._following)

    def expand(self) -> Iterator[OutgoingBatch]:
        """Index the events of the transaction at the cursor. Raises `EventError` if it is damaged."""
        start, size = self._state.event.start, len(self._buffer.event())
        position = start_position(self._buffer.data, start, size, self._state.position)
        self.event, following = self._buffer.take_out()
        self._state.skip_to(position)
        # A new buffer: otherwise its events would fill the room that there was for it.
        yield from self._cutter.make_room()
        self._state.begin_inner_events(None)
        verify_checksum(self.event, self._format.description)
        for events, is_last in _plain_events(self.event, self._format.description):
            self._state.begin_inner_events(position + size if is_last else None)
            left = memoryview(events)
            while left:
                left = self._put(left)
                yield from self._index()
            self._meanwhile()
        if self._state.awaits_end:
            raise EventError("the compressed transaction lacks its end")
        self.event = None
        self._following.append(memoryview(following))

    def put_back(self) -> bool:
        """Put bytes that were received after such a transaction into the buffer; false if none wait."""
        while self._following:
            content = self._following.pop()
            if content:
                left = self._put(content)
                if left:
                    self._following.append(left)
                return True
        return False

    def leave(self) -> None:
        """What was not indexed of a transaction, and after it, is dropped."""
        self.event = None
        self._following.clear()

    def _put(self, content: memoryview) -> memoryview:
        """Append to the buffer what it has room for; returns the rest."""
        space = self._buffer.space()
        taken = min(len(space), len(content))
        space[:taken] = content[:taken]
        self._buffer.filled += taken
        return content[taken:]


def _plain_events(event: bytes, description: FormatDescription) -> Iterator[tuple[bytes, bool]]:
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
