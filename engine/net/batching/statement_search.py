"""Searches the bytes of a dump for the statements that may define, drop or empty a table.

A `StatementSearch` lends the memory that the next bytes are received into, has the statement kernel pass the
events in it, and handles those for which the kernel returns: statements, new files and new formats. Only of
these, and of heartbeats, are checksums verified: damaged rows are no statements, and the stream comes to them
itself. Compressed transactions of MySQL are not opened. Sans-IO.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.binlog import event_types as types
from engine.binlog.event_positions import length_in_file, start_position
from engine.binlog.event_roles import EVENT_ROLES, HEARTBEAT
from engine.binlog.events.decoding import decode_event
from engine.binlog.events.statements import Query
from engine.binlog.format_description import FormatDescription, verify_checksum
from engine.binlog.position import BinlogPosition
from engine.dataclass import dataclass
from engine.errors import BinlogError, EngineError, EventError
from engine.net.batching import kernel_status
from engine.net.batching.batcher import ServerErrorPacket
from engine.net.batching.receive_buffer import ReceiveBuffer
from engine.net.batching.rotation import Rotation, parse_rotation
from engine.net.batching.statement_kernel import next_statement
from engine.net.batching.stream_format import FORMAT_EVENTS, StreamFormat, parse_format, position_after_format
from engine.net.batching.stream_state import StreamState
from engine.pipeline.shared_slots import SlotPool, Slots

_BUFFER_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class FoundStatement:
    """A statement that may define, drop or empty a table."""

    position: BinlogPosition
    query: Query
    format: FormatDescription
    """Of its file: it says which server wrote the statement."""


class StatementSearch:
    """Searches a dump that begins at `start`.

    `checksum_algorithm`: of events before the first format description.
    """

    def __init__(self, start: BinlogPosition, checksum_algorithm: int) -> None:
        self._file = start.file
        self._state = StreamState(start.position, opens_payloads=False)
        self._buffer = ReceiveBuffer(SlotPool(Slots()), _BUFFER_BYTES, self._state)
        self._format = StreamFormat(checksum_algorithm)
        self._ended = False

    @property
    def ended(self) -> bool:
        """Whether an EOF packet has ended the dump."""
        return self._ended

    @property
    def position(self) -> BinlogPosition:
        """The position after the last event."""
        return BinlogPosition(self._file, self._state.position)

    def space(self) -> memoryview:
        """The room for the next bytes; never empty."""
        return self._buffer.space()

    def received(self, size: int) -> Iterator[FoundStatement]:
        """`size` more bytes are in `space`; yields the statements in them.

        Raises `BinlogError` for damage and `ServerErrorPacket` for an ERR packet.
        """
        self._buffer.filled += size
        while True:
            status = self._next_statement()
            if status == kernel_status.NEEDS_PYTHON:
                found = self._handle_event()
                if found is not None:
                    yield found
            elif status == kernel_status.MORE:
                break
            elif status == kernel_status.END:
                self._ended = True
                return
            else:
                raise self._failure(status)
        if self._buffer.is_full:
            self._buffer.move_on([], self._state.cursor, self._state.count, _BUFFER_BYTES)

    def _next_statement(self) -> int:
        return next_statement(
            self._buffer.data,
            self._buffer.filled,
            self._state.array,
            self._format.query_header,
            self._format.checksum_length,
        )

    def _handle_event(self) -> FoundStatement | None:
        """Pass the event at the cursor, at which the kernel stopped; returns it if it is a statement."""
        event = self._buffer.event().tobytes()
        found = None
        try:
            if event[4] in FORMAT_EVENTS:
                self._change_format(event)
            else:
                verify_checksum(event, self._format.description)
                if event[4] == types.ROTATE_EVENT:
                    self._rotate(parse_rotation(event, self._format.description))
                elif EVENT_ROLES[event[4]] != HEARTBEAT:
                    found = self._take_statement(event)
        except EventError as error:
            raise self._damage(str(error), error.corrupt) from error
        self._state.pass_event()
        return found

    def _change_format(self, event: bytes) -> None:
        self._format.replace(event, parse_format(event))
        position = position_after_format(event)
        if position is not None:
            self._state.skip_to(position)

    def _rotate(self, rotation: Rotation) -> None:
        if rotation.file != self._file or not rotation.artificial:
            self._file = rotation.file
            self._state.enter_file(rotation.position)

    def _take_statement(self, event: bytes) -> FoundStatement:
        description = self._format.description
        body = decode_event(event, description).body
        assert isinstance(body, Query)
        data = self._buffer.event()
        position = int(start_position(data, 0, len(data), self._state.position))
        self._state.skip_to(position + length_in_file(data, 0, len(data)))
        return FoundStatement(BinlogPosition(self._file, position), body, description)

    def _failure(self, status: int) -> EngineError:
        if status == kernel_status.SERVER_ERROR:
            return ServerErrorPacket(self._buffer.event().tobytes())
        return self._damage(kernel_status.REASONS[status])

    def _damage(self, reason: str, corrupt: bool = True) -> BinlogError:
        return BinlogError(self._file, self._state.position, reason, corrupt)
