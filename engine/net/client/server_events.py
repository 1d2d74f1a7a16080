"""A server's binlog event by event, up to where it ends now: the plain way, for looking inside.

The pipeline reads the stream in large pieces (`engine.net.server_stream`). Both speak the same dump; here
the server is asked to hang up at the end, and what it sends but did not write into a file is left out.
"""

from __future__ import annotations

import contextlib
import random
import uuid
from collections.abc import Generator, Iterator
from dataclasses import dataclass

from engine.binlog import event_types as t
from engine.binlog.events import decode_event
from engine.binlog.events.management import Rotate
from engine.binlog.format_description import FormatDescription
from engine.errors import BinlogError, EngineError, EventError
from engine.net.client import server_queries
from engine.net.client.compressed_stream import Stream
from engine.net.client.connection import Connection
from engine.net.client.refusals import explain
from engine.net.client.server_queries import SourceFacts
from engine.net.protocol.packets import EOF_MARKER, PacketJoiner, is_err, parse_err

_FIRST_POSITION = 4
_MAX_PAYLOAD = 1 << 32
_RECEIVE_SIZE = 1 << 18
_HEARTBEAT_SECONDS = 30.0
_EVENT_MARKER = 0
_NOT_IN_FILES = (t.HEARTBEAT_LOG_EVENT, t.HEARTBEAT_LOG_EVENT_V2)


def any_server_id() -> int:
    """An id for a dump that only looks: a server that sees an id twice drops the dump that it had first."""
    return random.randrange(1 << 31, 1 << 32)


def assumed_format(facts: SourceFacts) -> FormatDescription:
    """What the events before the first format description are in."""
    return FormatDescription.assumed(checksum_algorithm=1 if facts.binlog_checksum == "CRC32" else 0)


def read_server_events(
    connection: Connection,
    facts: SourceFacts,
    file: str,
    position: int,
    server_id: int,
    gtid_set: str | None = None,
) -> Generator[tuple[str, int, bytes], None, None]:
    """File, position and bytes of each event from a place on. An empty `file` means the first one.

    With `gtid_set` it is the transactions that are not in it, wherever they are.
    The connection is used up. Raises `EngineError` for what the server refuses, and where the stream breaks.
    """
    identity = str(uuid.uuid4())
    server_queries.prepare_dump(
        connection, facts, heartbeat_seconds=_HEARTBEAT_SECONDS, replica_uuid=identity
    )
    context = server_queries.context_of(connection, file, position, server_id)
    if gtid_set is None:
        server_queries.start_dump(connection, file, position, server_id, non_block=True)
    else:
        server_queries.start_dump_by_gtid(connection, gtid_set, server_id, non_block=True)
    stream, pending = connection.take_over()
    place = _Place(file, position)
    fmt = assumed_format(facts)
    with contextlib.closing(stream):
        joiner = PacketJoiner(_MAX_PAYLOAD, numbered=connection.numbered_packets)
        joiner.sequence = 1
        joiner.feed(pending)
        for payload in _payloads(stream, joiner, str(connection.endpoint)):
            if is_err(payload):
                raise explain(parse_err(payload), context)
            if payload[:1] == bytes([EOF_MARKER]):
                return
            if len(payload) <= t.HEADER_LENGTH or payload[0] != _EVENT_MARKER:
                raise BinlogError(place.file, place.position, "the server sent a packet that is no event")
            data = payload[1:]
            yield from place.locate(data, fmt)


@dataclass(slots=True)
class _Place:
    """Where the stream is."""

    file: str
    position: int

    def locate(self, data: bytes, fmt: FormatDescription) -> Iterator[tuple[str, int, bytes]]:
        """The event with its place, if it stands in a file."""
        header = t.EventHeader.parse(data)
        if header.type_code in _NOT_IN_FILES:
            return
        if header.type_code == t.ROTATE_EVENT and not header.next_position:
            self._enter(data, fmt)
        elif header.type_code == t.FORMAT_DESCRIPTION_EVENT:
            # It comes first wherever the dump starts.
            yield self.file, _FIRST_POSITION, data
            self.position = max(self.position, _FIRST_POSITION + header.size)
        else:
            if header.next_position:
                # The header keeps the low 32 bits only: a huge transaction makes a file pass 4 GB.
                self.position += (header.next_position - header.size - self.position) & 0xFFFFFFFF
            yield self.file, self.position, data
            self.position += header.size

    def _enter(self, data: bytes, fmt: FormatDescription) -> None:
        try:
            body = decode_event(data, fmt).body
        except EventError as error:
            raise BinlogError(self.file, self.position, error.reason) from None
        if isinstance(body, Rotate):
            self.file, self.position = body.next_file, body.position


def _payloads(stream: Stream, joiner: PacketJoiner, where: str) -> Iterator[bytes]:
    while True:
        while (payload := joiner.next()) is not None:
            yield payload
        try:
            received = stream.recv(_RECEIVE_SIZE)
        except OSError as error:
            raise EngineError(f"the connection to {where} was lost: {error.strerror or error}") from None
        if not received:
            raise EngineError(f"{where} closed the connection in the middle of the binlog: see its error log")
        joiner.feed(received)
