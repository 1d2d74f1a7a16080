"""Makes batches of the events in the buffer: where to cut, and what the header of each batch says.

A batch ends after the last transaction end in the buffer. Only a transaction larger than a buffer, or than
what decoders may need for a batch (`expanded_size`), is cut inside; the next batch repeats the events that
the rest of the transaction needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from engine.binlog.files import MAGIC_LENGTH
from engine.binlog.format_description import rollback_undoes_rows
from engine.binlog.position import BinlogPosition
from engine.errors import EngineError
from engine.net.batching.dropping import corruption_of
from engine.net.batching.event_filter import compacted
from engine.net.batching.outgoing_batch import OutgoingBatch, batch_of
from engine.net.batching.receive_buffer import ReceiveBuffer
from engine.net.batching.stream_format import StreamFormat
from engine.net.batching.stream_state import StreamState
from engine.net.batching.table_book import TableBook
from engine.net.batching.transaction_kernel import first_rolls_back
from engine.pipeline.messages import Batch, Dropped, Failure, StreamStatus
from engine.pipeline.slot_file import BATCH_ROOM
from engine.schema.changes import SchemaChange

TABLES_PER_BATCH = 16
"""A batch with twice as many tables has twice the capacity, and so on."""
MOST_BATCH_BYTES = BATCH_ROOM
"""The largest capacity, unless one event is larger."""


class Cutter:
    """Cuts `buffer`; `tables` knows which tables each batch must describe.

    The stream starts in `file`, after the transactions of `gtid_set`. `batch_bytes` is the usual capacity of
    a batch. `leaves_out`: the index may lack events, whose bytes need not be sent. `take_changes` returns
    the changes of table definitions for the next batch, which ends at the given position.
    """

    def __init__(
        self,
        buffer: ReceiveBuffer,
        state: StreamState,
        tables: TableBook,
        stream_format: StreamFormat,
        *,
        file: str,
        gtid_set: str | None,
        batch_bytes: int,
        leaves_out: bool,
        take_changes: Callable[[BinlogPosition], tuple[SchemaChange, ...]] = lambda reached: (),
        awaits_proof: Callable[[BinlogPosition], bool] = lambda position: False,
    ) -> None:
        self._buffer = buffer
        self._state = state
        self._tables = tables
        self._format = stream_format
        self._gtid_set = gtid_set
        self._batch_bytes = batch_bytes
        self._leaves_out = leaves_out
        self._take_changes = take_changes
        self._awaits_proof = awaits_proof
        self._aborts = False
        self._open_sent = False
        """Whether a part of the open transaction was sent."""
        self._batch_position = self._open_position = state.position
        self.file = file
        """The binlog file that the stream is in."""
        self.sequence = 0
        """The number of the next batch."""

    @property
    def open_position(self) -> int:
        """Where the open transaction begins, or an earlier position after the transaction before it."""
        return self._open_position if self._open_sent else self._batch_position

    @property
    def stamp(self) -> int:
        """The mark of the next batch in the table book."""
        return self.sequence + 1

    def enter_file(self, name: str, position: int) -> None:
        """The next event is at `position` of another file."""
        self.file = name
        self._state.enter_file(position)
        self.restart()

    def skip_to(self, position: int) -> None:
        """The next event is at a later position, and the buffer has no events."""
        self._state.skip_to(position)
        self._begin_batch()

    def restart(self) -> None:
        """Continue in a new buffer with the bytes that are not indexed yet."""
        self._move_on(self._format.context, self._state.cursor, self._state.count)

    # -- with events ---------------------------------------------------------------------------------------

    def make_room(self) -> Iterator[OutgoingBatch]:
        """Make room for the next event: send the finished transactions, else all events, else grow."""
        if self._buffer.has_boundary:
            yield self._at_boundary()
        elif self._buffer.has_events:
            yield self._inside()
        else:
            self._move_on(self._context(), self._state.cursor, self._state.count)

    def finished(self) -> Iterator[OutgoingBatch]:
        """The finished transactions, if there are any."""
        if self._buffer.has_boundary:
            yield self._at_boundary()

    def after_statement(self) -> Iterator[OutgoingBatch]:
        """All events up to a statement, the last one, whether it ends a transaction or not."""
        if self._state.boundary.rows == self._state.count:
            yield self._at_boundary()
        else:
            yield from self.finished()
            yield self._inside()

    def leave_file(self, next_file: tuple[str, int] | None = None) -> Iterator[OutgoingBatch]:
        """All events of the file; aborts a transaction without an end. `next_file`: the next file."""
        if not self._state.inside_transaction:
            self._state.mark_boundary()
        if self._buffer.has_boundary:
            yield self._at_boundary(next_file)
        if self._buffer.has_events:
            yield self._inside()
        self._abort()

    def drop_unfinished(self) -> None:
        """Drop the open transaction; the next batch aborts the part of it that was sent."""
        self._buffer.drop_events()
        self._abort()

    def _at_boundary(self, next_file: tuple[str, int] | None = None) -> OutgoingBatch:
        count, cursor, position = self._state.boundary
        has_later = self._state.count > count
        if self._open_sent and rollback_undoes_rows(self._format.description):
            self._aborts = first_rolls_back(
                self._buffer.data,
                self._buffer.index[:count],
                self._format.query_header,
                self._format.checksum_length,
            )
        # The events after the boundary were indexed for this batch; the next one needs their tables as well.
        later = self._tables.used_packed_columns(self.stamp) if has_later else {}
        batch = self._outgoing(count, cursor, next_file or (self.file, position), ends=True)
        self._tables.carry_over(later)
        self._open_sent = False
        self._batch_position = position
        self._move_on(self._format.context, cursor, count)
        return batch

    def _inside(self) -> OutgoingBatch:
        if not self._open_sent:
            self._open_position = self._batch_position
        resume = (self.file, self._state.position)
        batch = self._outgoing(self._state.count, self._state.cursor, resume, ends=False)
        self._tables.carry_over(batch.header.packed_columns)
        self._open_sent = True
        self._move_on(self._context(), self._state.cursor, self._state.count)
        return batch

    def _outgoing(self, count: int, cursor: int, resume: tuple[str, int], *, ends: bool) -> OutgoingBatch:
        header = self._header(
            self._buffer.context,
            self._batch_position,
            ends=ends,
            resume=resume,
            packed_columns=self._tables.packed_columns(self.stamp),
        )
        self._numbered()
        index, data = self._buffer.index[:count].copy(), self._buffer.data[:cursor]
        sent = compacted(data, index) if self._leaves_out else data
        slot = self._buffer.give_slot() if sent is data else None
        return OutgoingBatch(header, index, sent, slot)

    # -- without events ------------------------------------------------------------------------------------

    def start(self) -> OutgoingBatch:
        """A batch with the position at which the stream starts."""
        return self._without_buffer(self._header(0, self._state.position, ends=True))

    def caught_up(self, moment_us: int) -> OutgoingBatch:
        """A batch with the time at which the server had nothing more."""
        # Heartbeats may have moved the position past transactions that the server does not send.
        self._begin_batch()
        header = self._header(0, self._state.position, ends=True)
        # A server does not send all that its binlog has, so that the position may be before the end.
        status = replace(header.status, awaits_proof=False, caught_up_us=moment_us)
        return self._without_buffer(replace(header, status=status))

    def server_started(self, surviving_xids: tuple[str, ...]) -> OutgoingBatch:
        """A batch that says which prepared XA transactions the server still has."""
        self._begin_batch()
        header = self._header(0, self._state.position, ends=True)
        status = replace(header.status, surviving_xids=surviving_xids)
        return self._without_buffer(replace(header, status=status))

    def last(self, error: EngineError | None, caught_up_us: int) -> OutgoingBatch:
        """The last batch, with the error that ends the stream if there is one; aborts what is open.

        `caught_up_us`: when the source had nothing more, 0 if it is not known to be at its end.
        """
        self._abort()
        header = self._header(0, self._state.position, ends=True)
        if error is None:
            status = replace(header.status, awaits_proof=False, end_of_stream=True, caught_up_us=caught_up_us)
        else:
            unproven = header.status.awaits_proof
            failure = Failure(str(error), error.retryable, corruption_of(error), unproven=unproven)
            status = replace(header.status, end_of_stream=True, failure=failure)
        return self._without_buffer(replace(header, status=status))

    def dropped(self, record: Dropped, gtid_event: bytes | None, following: str | None) -> OutgoingBatch:
        """A batch with the record of dropped events and their GTID event; `following`: the next file."""
        context = self._format.context + ([] if gtid_event is None else [gtid_event])
        resume = None if following is None else (following, MAGIC_LENGTH)
        header = replace(
            self._header(len(context), self._state.position, ends=True, resume=resume),
            dropped=record,
        )
        return self._without_buffer(header, context)

    def _without_buffer(self, header: Batch, events: Sequence[bytes] = ()) -> OutgoingBatch:
        self._numbered()
        return batch_of(header, events)

    # -- from batch to batch -------------------------------------------------------------------------------

    def _header(
        self,
        context: int,
        position: int,
        *,
        ends: bool,
        resume: tuple[str, int] | None = None,
        packed_columns: dict[str, bytes] | None = None,
    ) -> Batch:
        reached = BinlogPosition(*(resume or (self.file, position)))
        return Batch(
            sequence=self.sequence,
            file=self.file,
            position=position,
            context_events=context,
            status=StreamStatus(
                resume=reached,
                ends_transaction=ends,
                aborts_transaction=self._aborts,
                awaits_proof=self._awaits_proof(reached),
                gtid_set=self._gtid_set,
                schema_changes=self._take_changes(reached),
            ),
            packed_columns=packed_columns or {},
        )

    def _numbered(self) -> None:
        """The header of a batch was made: the next batch has another number and not the same facts again."""
        self.sequence += 1
        self._aborts = False
        self._gtid_set = None
        self._tables.limit_memory()

    def _abort(self) -> None:
        """The next batch aborts the open transaction if a part of it was sent."""
        self._aborts = self._aborts or self._open_sent
        self._open_sent = False

    def _context(self) -> Sequence[bytes]:
        """The events that the rest of the open transaction needs."""
        return [*self._format.context, *self._buffer.open_transaction()]

    def _move_on(self, context: Sequence[bytes], cursor: int, count: int) -> None:
        if not self._buffer.move_on(context, cursor, count, self._usual_capacity()):
            self._begin_batch()

    def _begin_batch(self) -> None:
        """The next batch begins here."""
        self._state.begin_batch()
        self._batch_position = self._state.position

    def _usual_capacity(self) -> int:
        """More for many tables: decoders and sink have work to do per table and batch."""
        times = self._tables.count_in_use(self.sequence) // TABLES_PER_BATCH
        return max(self._batch_bytes, min(times * self._batch_bytes, MOST_BATCH_BYTES))
