"""From the events in the buffer to batches: where to cut, and what the header of each batch says.

A batch ends behind the last transaction end in the buffer; inside a transaction only where that is larger
than a buffer, and then the next one repeats what the rest of it needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from engine.binlog import event_types as types
from engine.binlog.files import MAGIC_LENGTH
from engine.binlog.format_description import FormatDescription, rollback_undoes_rows
from engine.binlog.position import BinlogPosition
from engine.errors import EngineError
from engine.kernels.kernel import Bytes
from engine.net.batching import receive_kernel
from engine.net.batching.dropping import corruption_of
from engine.net.batching.event_filter import close_up
from engine.net.batching.receive_buffer import ReceiveBuffer
from engine.net.batching.receive_kernel import (
    BOUNDARY_COUNT,
    BOUNDARY_CURSOR,
    BOUNDARY_POSITION,
    POSITION,
    TOLD_POSITION,
)
from engine.net.batching.table_book import TableBook
from engine.pipeline.messages import Batch, Dropped, Failure, StreamStatus
from engine.pipeline.slot_file import BATCH_ROOM

TABLES_PER_BATCH = 16
"""A batch about twice as many tables holds twice as much, and so on."""
MOST_BATCH_BYTES = BATCH_ROOM
"""However many tables it is about, unless one event is larger."""


@dataclass(frozen=True, slots=True)
class OutgoingBatch:
    """A batch as it goes on the wire: its header, index and bytes."""

    header: Batch
    index: NDArray[np.uint32]
    data: Bytes
    slot: int | None = None
    """The slot that `data` stands in, if it does; whoever gets the batch gives it back."""


class Cutter:
    """Cuts `buffer`; `tables` knows which of them each batch is to describe.

    The stream starts in `file`, after what `gtid_set` says; `batch_bytes` is what a batch usually holds at
    most; `leaves_out`: the index may lack events whose bytes need not go along.
    """

    def __init__(
        self,
        buffer: ReceiveBuffer,
        tables: TableBook,
        *,
        file: str,
        gtid_set: str | None,
        format_description: FormatDescription,
        batch_bytes: int,
        leaves_out: bool,
    ) -> None:
        self._buffer = buffer
        self._tables = tables
        self._gtid_set = gtid_set
        self._batch_bytes = batch_bytes
        self._leaves_out = leaves_out
        self._aborts = False
        self._open_sent = False
        self._batch_position = self._open_position = buffer.position
        self._format_event = b""
        self.format = format_description
        """Of the file that the stream is in."""
        self.file = file
        """The binlog file that the stream is in."""
        self.sequence = 0
        """The number of the next batch."""

    @property
    def open_position(self) -> int:
        """Where the open transaction begins, or something before it that belongs to no other."""
        return self._open_position if self._open_sent else self._batch_position

    @property
    def format_context(self) -> list[bytes]:
        """The event that describes the file's format, if there was one."""
        return [self._format_event] if self._format_event else []

    def enter_file(self, name: str, position: int) -> None:
        """The next event is one of another file, at that position."""
        self.file = name
        self._buffer.state[POSITION] = position
        self._buffer.leave_transaction()
        self.restart()

    def describe_format(self, description: FormatDescription, event: bytes) -> None:
        """The events from here on have that format, which every batch is to say."""
        self.format = description
        self._format_event = event
        self.restart()

    def skip_to(self, position: int) -> None:
        """The next event is one at a later position, and there is none in the buffer."""
        self._buffer.state[POSITION] = position
        self._begin_batch()

    def restart(self) -> None:
        """Go on in a new buffer with what has not been indexed yet."""
        self._move_on(self.format_context, self._buffer.cursor, self._buffer.count)

    # -- with events ---------------------------------------------------------------------------------------

    def make_room(self) -> Iterator[OutgoingBatch]:
        """Room for the next event: send what is finished, else what there is, else grow."""
        if self._buffer.has_boundary:
            yield self.at_boundary()
        elif self._buffer.has_events:
            yield self._inside()
        else:
            self._move_on(self._context(), self._buffer.cursor, self._buffer.count)

    def finished(self) -> Iterator[OutgoingBatch]:
        """What is finished, if anything is."""
        if self._buffer.has_boundary:
            yield self.at_boundary()

    def leave_file(self, next_file: tuple[str, int] | None = None) -> Iterator[OutgoingBatch]:
        """What is left of the file; a transaction that it does not finish will never be."""
        if not self._buffer.inside_transaction:
            self._buffer.mark_boundary()
        if self._buffer.has_boundary:
            yield self.at_boundary(next_file)
        if self._buffer.has_events:
            yield self._inside()
        self._abort()

    def drop_unfinished(self) -> None:
        """The open transaction will not be finished; what went out of it is to be taken back."""
        self._buffer.forget_events()
        self._abort()

    def at_boundary(self, next_file: tuple[str, int] | None = None) -> OutgoingBatch:
        """What is finished, of which there is something; `next_file`: where to go on behind it."""
        state = self._buffer.state
        count, cursor = int(state[BOUNDARY_COUNT]), int(state[BOUNDARY_CURSOR])
        position = int(state[BOUNDARY_POSITION])
        has_later = self._buffer.count > count
        if self._open_sent and rollback_undoes_rows(self.format):
            self._aborts = receive_kernel.first_rolls_back(
                self._buffer.data,
                self._buffer.index[:count],
                self.format.post_header_length(types.QUERY_EVENT),
                self.format.checksum_length,
            )
        # The events behind the boundary were indexed for this batch; the next one needs their tables as well.
        later = self._tables.used_catalog(self.sequence + 1) if has_later else {}
        batch = self._outgoing(count, cursor, next_file or (self.file, position), ends=True)
        self._tables.hand_over(later)
        self._open_sent = False
        self._batch_position = position
        self._move_on(self.format_context, cursor, count)
        return batch

    def _inside(self) -> OutgoingBatch:
        if not self._open_sent:
            self._open_position = self._batch_position
        position = self._buffer.position
        batch = self._outgoing(self._buffer.count, self._buffer.cursor, (self.file, position), ends=False)
        self._tables.hand_over(batch.header.catalog)
        self._open_sent = True
        self._move_on(self._context(), self._buffer.cursor, self._buffer.count)
        return batch

    def _outgoing(self, count: int, cursor: int, resume: tuple[str, int], *, ends: bool) -> OutgoingBatch:
        header = self._header(
            self._buffer.context,
            self._batch_position,
            ends=ends,
            resume=resume,
            catalog=self._tables.catalog(self.sequence + 1),
        )
        self._numbered()
        index, data = self._buffer.index[:count].copy(), self._buffer.data[:cursor]
        closed = close_up(data, index) if self._leaves_out else data
        slot = self._buffer.give_slot() if closed is data else None
        return OutgoingBatch(header, index, closed, slot)

    # -- without events ------------------------------------------------------------------------------------

    def start(self) -> OutgoingBatch:
        """Says where the stream starts."""
        return self._empty(self._header(0, self._buffer.position, ends=True))

    def caught_up(self, moment_us: int) -> OutgoingBatch:
        """Says when the server had nothing more than this."""
        # Heartbeats may have moved it past transactions that the server left out.
        self._begin_batch()
        header = self._header(0, self._buffer.position, ends=True)
        return self._empty(replace(header, status=replace(header.status, caught_up_us=moment_us)))

    def last(self, error: EngineError | None) -> OutgoingBatch:
        """Says that nothing follows, and why if it is for an error; what is open will not be finished."""
        self._abort()
        failure = None if error is None else Failure(str(error), error.retryable, corruption_of(error))
        header = self._header(0, self._buffer.position, ends=True)
        status = replace(header.status, end_of_stream=True, failure=failure)
        return self._empty(replace(header, status=status))

    def dropped(self, record: Dropped, gtid_event: bytes | None, following: str | None) -> OutgoingBatch:
        """Says what was dropped, with the GTID event of it; `following`: the file in which to go on."""
        context = self.format_context + ([] if gtid_event is None else [gtid_event])
        resume = None if following is None else (following, MAGIC_LENGTH)
        header = replace(
            self._header(len(context), self._buffer.position, ends=True, resume=resume),
            dropped=record,
        )
        self._numbered()
        starts = np.cumsum([0, *map(len, context)])[:-1]
        index = np.array([(start, event[4]) for start, event in zip(starts, context, strict=True)], np.uint32)
        return OutgoingBatch(header, index.reshape(-1, 2), np.frombuffer(b"".join(context), np.uint8))

    def _empty(self, header: Batch) -> OutgoingBatch:
        self._numbered()
        return OutgoingBatch(header, np.empty((0, 2), np.uint32), np.empty(0, np.uint8))

    # -- from batch to batch -------------------------------------------------------------------------------

    def _header(
        self,
        context: int,
        position: int,
        *,
        ends: bool,
        resume: tuple[str, int] | None = None,
        catalog: dict[str, bytes] | None = None,
    ) -> Batch:
        return Batch(
            sequence=self.sequence,
            file=self.file,
            position=position,
            context_events=context,
            status=StreamStatus(
                resume=BinlogPosition(*(resume or (self.file, position))),
                ends_transaction=ends,
                aborts_transaction=self._aborts,
                gtid_set=self._gtid_set,
            ),
            catalog=catalog or {},
        )

    def _numbered(self) -> None:
        """The header of a batch was made: the next batch has another number, and need not say it again."""
        self.sequence += 1
        self._aborts = False
        self._gtid_set = None
        self._tables.forget_many()

    def _abort(self) -> None:
        """The next batch is to say that the transaction of which a part was sent is never finished."""
        self._aborts = self._aborts or self._open_sent
        self._open_sent = False

    def _context(self) -> Sequence[bytes]:
        """What the rest of the open transaction needs."""
        return [*self.format_context, *self._buffer.open_transaction()]

    def _move_on(self, context: Sequence[bytes], cursor: int, count: int) -> None:
        if not self._buffer.move_on(context, cursor, count, self._usual_capacity()):
            self._begin_batch()

    def _begin_batch(self) -> None:
        """The next batch begins here."""
        self._batch_position = self._buffer.state[TOLD_POSITION] = self._buffer.position

    def _usual_capacity(self) -> int:
        """For a batch about as many tables as the last one: there is work to do per table and batch."""
        times = self._tables.count_in_use(self.sequence) // TABLES_PER_BATCH
        return max(self._batch_bytes, min(times * self._batch_bytes, MOST_BATCH_BYTES))
