"""A whole transaction compressed into one event (`binlog_transaction_compression`, MySQL 8.0.20 and later).

The body has fields of type, length and value, then the events, without checksums, as a zstd stream. The
expanded size is limited both by the size that the event claims and by the caller's limit.
Source: `codecs/binary.cpp` and `compression/` in MySQL's `libs/mysql/binlog/event`.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import field
from typing import Self

import zstandard

from engine.binlog.event_body import HIDDEN, EventBody
from engine.binlog.event_reader import EventReader
from engine.binlog.event_types import HEADER_LENGTH, SIZE_AT, EventHeader
from engine.binlog.format_description import FormatDescription
from engine.dataclass import dataclass
from engine.errors import EventError, UnsupportedError

MAX_UNCOMPRESSED = 1 << 40
"""Largest total size in bytes of a transaction's events, unless the caller passes another limit: far more
than servers write."""
MAX_EVENT = 1 << 30
"""Largest size in bytes of one event: `max_allowed_packet` cannot be larger."""
LARGEST_WHOLE = 16 << 20
"""Bytes of the largest compressed transaction that a decoder expands. Larger ones are expanded in the network
process, a piece at a time."""

ENDS_INSIDE = "the compressed transaction ends in the middle of an event"
_MORE_THAN_CLAIMED = "the compressed transaction holds more bytes than it claims"

_ZSTD, _NONE = 0, 255
_ALGORITHMS = {_ZSTD: "ZSTD", _NONE: "NONE"}
_END, _PAYLOAD_SIZE, _COMPRESSION, _UNCOMPRESSED_SIZE = range(4)

_DECOMPRESSOR = zstandard.ZstdDecompressor()
"""For `expand_into`, shared so that no transaction needs to create one."""


@dataclass(frozen=True, slots=True)
class TransactionPayload(EventBody):
    """TRANSACTION_PAYLOAD_EVENT."""

    compression: str
    """`ZSTD` or `NONE`."""
    payload_size: int
    uncompressed_size: int
    payload: bytes = field(repr=False, metadata=HIDDEN)

    @classmethod
    def decode(cls, reader: EventReader, header: EventHeader, fmt: FormatDescription) -> Self:
        """Unknown fields are skipped; without compression the uncompressed size is absent."""
        values: dict[int, int] = {}
        while (field_type := reader.length_encoded()) != _END:
            value = reader.part(reader.length_encoded())
            if field_type in (_PAYLOAD_SIZE, _COMPRESSION, _UNCOMPRESSED_SIZE):
                values[field_type] = value.length_encoded()
        algorithm = values.get(_COMPRESSION)
        if algorithm not in _ALGORITHMS or _PAYLOAD_SIZE not in values:
            raise UnsupportedError(f"transaction compression {algorithm} is unknown", reader.offset)
        size = values[_PAYLOAD_SIZE]
        return cls(_ALGORITHMS[algorithm], size, values.get(_UNCOMPRESSED_SIZE, size), reader.take(size))

    def claimed_size(self, limit: int) -> int:
        """The expanded size in bytes that the event claims. Raises `UnsupportedError` above `limit`."""
        if self.uncompressed_size > limit:
            raise UnsupportedError(
                f"the compressed transaction claims {self.uncompressed_size} bytes, the limit is {limit}: "
                "start after it, and set binlog_transaction_compression=OFF in sessions that write so much"
            )
        return self.uncompressed_size


def inner_events(body: TransactionPayload, limit: int = MAX_UNCOMPRESSED) -> Iterator[bytes]:
    """The transaction's events, uncompressed one at a time; they have no checksums.

    Raises `EventError` if the payload is damaged, or larger than it claims or than `limit` bytes.
    """
    allowed = body.claimed_size(limit)
    with _open(body, zstandard.ZstdDecompressor()) as stream:
        while head := _read(stream, HEADER_LENGTH):
            size = int.from_bytes(head[SIZE_AT : SIZE_AT + 4], "little")
            if size < HEADER_LENGTH:
                raise EventError(ENDS_INSIDE)
            allowed -= size
            if allowed < 0 or size > MAX_EVENT:
                raise EventError(_MORE_THAN_CLAIMED)
            event = head + _read(stream, size - HEADER_LENGTH)
            if len(event) != size:
                raise EventError(ENDS_INSIDE)
            yield event


def expand_into(body: TransactionPayload, out: memoryview) -> int:
    """Expand the transaction's events into `out`, next to each other; returns how many bytes they take.

    `out` has the size that the event claims. Raises `EventError` if the payload is damaged or larger.
    """
    taken = 0
    with _open(body, _DECOMPRESSOR) as stream:
        try:
            while taken < len(out) and (piece := stream.readinto(out[taken:])):
                taken += piece
            if stream.read(1):
                raise EventError(_MORE_THAN_CLAIMED)
        except zstandard.ZstdError as error:
            raise _damaged(error) from None
    return taken


def _open(
    body: TransactionPayload, decompressor: zstandard.ZstdDecompressor
) -> io.BufferedIOBase | zstandard.ZstdDecompressionReader:
    if body.compression == _ALGORITHMS[_NONE]:
        return io.BytesIO(body.payload)
    return decompressor.stream_reader(body.payload, read_across_frames=True)


def _read(stream: io.BufferedIOBase | zstandard.ZstdDecompressionReader, length: int) -> bytes:
    """The next `length` bytes, or fewer at the end of the stream."""
    pieces = []
    while length:
        try:
            piece = stream.read(length)
        except zstandard.ZstdError as error:
            raise _damaged(error) from None
        if not piece:
            break
        pieces.append(piece)
        length -= len(piece)
    return b"".join(pieces)


def _damaged(error: zstandard.ZstdError) -> EventError:
    return EventError(f"the compressed transaction cannot be expanded: {error}")
