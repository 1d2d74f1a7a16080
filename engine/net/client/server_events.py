"""A server's binlog event by event, up to where it ends now, for the `events` command.

The pipeline reads a dump in large pieces (`engine.net.server_stream`). Here the server ends the dump at the
end of the binlog, and events that it sends but did not write into a file are left out.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Generator, Iterator

from engine.binlog import event_types as t
from engine.binlog.event_headers import open_event
from engine.binlog.events.management import Rotate
from engine.binlog.format_description import FormatDescription
from engine.binlog.position import BinlogPosition
from engine.dataclass import dataclass
from engine.errors import BinlogError, EngineError, EventError
from engine.net.client.connection import Connection
from engine.net.client.dump_requests import FIRST_POSITION
from engine.net.client.dump_stream import DumpStream, dump_to_end
from engine.net.client.source_facts import SourceFacts
from engine.net.protocol.packets import EOF_MARKER, PacketJoiner, is_err

_MAX_PAYLOAD = 1 << 32
_RECEIVE_SIZE = 1 << 18
_EVENT_MARKER = 0
_NOT_IN_FILES = (t.HEARTBEAT_LOG_EVENT, t.HEARTBEAT_LOG_EVENT_V2)


def any_server_id() -> int:
    """A random id for a dump; when an id connects twice, the server ends the first dump."""
    return random.randrange(1 << 31, 1 << 32)


def assumed_format(facts: SourceFacts) -> FormatDescription:
    """The format of the events before the first format description."""
    return FormatDescription.assumed(checksum_algorithm=facts.checksum_algorithm)


def read_server_events(
    connection: Connection,
    facts: SourceFacts,
    file: str,
    position: int,
    server_id: int,
    gtid_set: str | None = None,
) -> Generator[tuple[str, int, bytes], None, None]:
    """File, position and bytes of each event from a position on. An empty `file` means the first one.

    With `gtid_set`, those of the transactions that are not in that set. The connection is used up. Raises
    `EngineError` if the server refuses, and if the connection is lost.
    """
    here = _StreamPosition(file, position)
    fmt = assumed_format(facts)
    joiner = PacketJoiner(_MAX_PAYLOAD, numbered=connection.numbered_packets)
    joiner.sequence = 1
    dump = dump_to_end(connection, facts, BinlogPosition(file, position), server_id, here.get, gtid_set)
    with contextlib.closing(dump):
        for payload in _payloads(dump, joiner):
            if is_err(payload):
                raise dump.refusal(payload)
            if payload[:1] == bytes([EOF_MARKER]):
                return
            if len(payload) <= t.HEADER_LENGTH or payload[0] != _EVENT_MARKER:
                raise BinlogError(here.file, here.position, "the server sent a packet that is not an event")
            try:
                yield from here.locate(payload[1:], fmt)
            except EventError as error:
                raise BinlogError(here.file, here.position, error.reason) from None


def file_begun(connect: Callable[[], Connection], facts: SourceFacts, file: str) -> int:
    """Server clock, in seconds, when a file was begun: the time of its format description."""
    return t.EventHeader.parse(format_event(connect, facts, file)).timestamp


def format_event(connect: Callable[[], Connection], facts: SourceFacts, file: str) -> bytes:
    """The format description event with which a file begins. Raises `EngineError`."""
    events = read_server_events(connect(), facts, file, FIRST_POSITION, any_server_id())
    with contextlib.closing(events):
        for _, _, event in events:
            return event
    raise EngineError(f"the server sends no event of {file}: see its error log")


@dataclass(slots=True)
class _StreamPosition:
    """Where the stream is."""

    file: str
    position: int

    def get(self) -> BinlogPosition:
        """File and position."""
        return BinlogPosition(self.file, self.position)

    def locate(self, data: bytes, fmt: FormatDescription) -> Iterator[tuple[str, int, bytes]]:
        """The event with its position, if it is in a file. Raises `EventError`."""
        header = t.EventHeader.parse(data)
        if header.type_code in _NOT_IN_FILES:
            return
        if header.type_code == t.ROTATE_EVENT and not header.next_position:
            self._enter(data, fmt)
        elif header.type_code == t.FORMAT_DESCRIPTION_EVENT:
            # The server sends it first, whatever the start position.
            yield self.file, FIRST_POSITION, data
            self.position = max(self.position, FIRST_POSITION + header.size)
        else:
            if header.next_position:
                # The header has the low 32 bits only: a huge transaction makes a file larger than 4 GB.
                self.position += (header.next_position - header.size - self.position) & 0xFFFFFFFF
            yield self.file, self.position, data
            self.position += header.size

    def _enter(self, data: bytes, fmt: FormatDescription) -> None:
        header, reader = open_event(data, fmt)
        rotate = Rotate.decode(reader, header, fmt)
        self.file, self.position = rotate.next_file, rotate.position


def _payloads(dump: DumpStream, joiner: PacketJoiner) -> Iterator[bytes]:
    space = memoryview(bytearray(_RECEIVE_SIZE))
    for size in filter(None, dump.receive(lambda: space)):
        joiner.feed(bytes(space[:size]))
        while (payload := joiner.next()) is not None:
            yield payload
