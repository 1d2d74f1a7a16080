"""Skips the corrupt events of one stream, by the rules of `dropping`.

The receive kernel stops from the position of the next corrupt event on. When that event is found, the open
transaction is dropped, and then the kernel stops at every event until the dropped transaction ends. A batch
without events records what was dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from engine.binlog.event_positions import length_in_file, start_position
from engine.binlog.files import MAGIC_LENGTH
from engine.errors import BinlogError
from engine.kernels.kernel import Bytes
from engine.net.batching.cutter import Cutter
from engine.net.batching.dropping import (
    Drop,
    SkipList,
    TransactionPart,
    is_sound,
    length_is_sure,
    may_define,
    part_of_transaction,
)
from engine.net.batching.outgoing_batch import OutgoingBatch
from engine.net.batching.receive_buffer import ReceiveBuffer
from engine.net.batching.statement_tracker import StatementTracker
from engine.net.batching.stream_format import FORMAT_EVENTS, StreamFormat
from engine.net.batching.stream_state import StreamState
from engine.pipeline.messages import Corruption


class CorruptEventSkipper:
    """`skips`: the corrupt events. `is_file`: the stream is bytes of binlog files, without packets."""

    def __init__(
        self,
        skips: Sequence[Corruption],
        statements: StatementTracker,
        cutter: Cutter,
        buffer: ReceiveBuffer,
        state: StreamState,
        stream_format: StreamFormat,
        *,
        is_file: bool,
    ) -> None:
        self._skips = SkipList(skips)
        self._cutter = cutter
        self._buffer = buffer
        self._state = state
        self._statements = statements
        self._format = stream_format
        self._is_file = is_file
        self._unsure: Corruption | None = None
        """A corrupt event after which the start of the next event is unknown."""
        self._drop: Drop | None = None
        self.set_stop()

    def set_stop(self) -> None:
        """Have the kernel stop at the next event to skip, and at every event while events are dropped."""
        self._state.stop_at(self._skips.next_stop(self._cutter.file) if self._drop is None else 0)

    def needs_more(self, last: bool) -> bool:
        """Whether more bytes of a file must be received to decide on the event at the cursor.

        They decide whether the size in a corrupt event's header is right. From a server the packet has the
        size, too. `last`: the file has no more bytes.
        """
        if not self._is_file or self._drop is not None:
            return False
        event = self._buffer.event()
        corruption = self._skips.find(self._cutter.file, event)
        if corruption is None:
            return False
        sure, needed = length_is_sure(
            event, self._buffer.following(), self._state.position, self._format.description, last
        )
        self._state.require(len(event) + needed)
        self._unsure = None if sure else corruption
        return needed > 0

    def stopped(self) -> Iterator[OutgoingBatch]:
        """Pass the event at the cursor if it is one to skip or to drop.

        Raises `BinlogError` where the start of the next event is unknown.
        """
        if self._unsure is not None:
            raise _error(self._unsure)
        event = self._buffer.event()
        if self._drop is None:
            yield from self._skip(event)
        else:
            yield from self._continue_drop(event, self._drop)

    def abandon_file(self, error: BinlogError, size: int, following: str | None) -> Iterator[OutgoingBatch]:
        """Drop the rest of a file of `size` bytes if `error` is one to skip; else raise it.

        `following`: the next file.
        """
        corruption = self._unsure or self._skips.at(error.file, error.position)
        if corruption is None:
            raise error
        if self._drop is None:
            yield from self._begin_drop(corruption, b"")
        self._unsure = None
        self._state.abandon_file(self._buffer.filled, size)
        yield from self.end_drop(rest_of_file=True, following=following)

    def end_drop(
        self, *, rest_of_file: bool = False, following: str | None = None
    ) -> Iterator[OutgoingBatch]:
        """Send the record of the dropped events, if there are any, and index events again."""
        if self._drop is None:
            return
        record = self._drop.record(self._state.position, rest_of_file)
        yield self._cutter.dropped(record, self._drop.gtid_event, following)
        if rest_of_file or self._drop.may_define:
            self._statements.lose(record)
        self._drop = None
        self._cutter.restart()
        self.set_stop()

    def _skip(self, event: Bytes) -> Iterator[OutgoingBatch]:
        position = start_position(event, 0, len(event), self._state.position)
        corruption = self._skips.take(self._cutter.file, event, position)
        if corruption is None:
            self.set_stop()
        elif self._state.position == MAGIC_LENGTH or int(event[4]) in FORMAT_EVENTS:
            # Without the format description no other event of the file can be read.
            self._unsure = corruption
            raise _error(corruption)
        else:
            passed = self._state.next_cursor - self._state.cursor
            size = len(event)
            # May move the event to a new buffer.
            yield from self._begin_drop(corruption, event.tobytes())
            self._state.pass_bytes(passed)
            self._state.advance(size)

    def _continue_drop(self, event: Bytes, drop: Drop) -> Iterator[OutgoingBatch]:
        description = self._format.description
        sound = is_sound(event.tobytes(), description)
        part = part_of_transaction(event, description) if sound else TransactionPart.MIDDLE
        if part == TransactionPart.START:
            yield from self.end_drop()
            return
        drop.take(sound, sound and may_define(event, description))
        self._state.pass_event()
        if sound:
            position = start_position(event, 0, len(event), self._state.position)
            self._state.skip_to(position + length_in_file(event, 0, len(event)))
        else:
            # Its header may be damaged; the next header shows whether the server left out events.
            self._state.advance(len(event))
        if part == TransactionPart.END:
            yield from self.end_drop()

    def _begin_drop(self, corruption: Corruption, event: bytes) -> Iterator[OutgoingBatch]:
        """Send the finished transactions before the corrupt event, and drop the open one."""
        yield from self._cutter.finished()
        description = self._format.description
        if self._state.is_outside:
            # In a file the corrupt event is at the stream's position, whatever its header contains.
            start = self._state.position if self._is_file else corruption.position
            self._drop = Drop.between(corruption, description, start, event)
        else:
            start, gtid_event = self._cutter.open_position, self._buffer.gtid_event()
            if gtid_event is not None:
                header = np.frombuffer(bytearray(gtid_event), np.uint8)
                start = start_position(header, 0, len(gtid_event), start)
            begun = self._state.has_begun
            self._drop = Drop.within(corruption, description, start, gtid_event, begun=begun)
        self._cutter.drop_unfinished()
        self.set_stop()


def _error(corruption: Corruption) -> BinlogError:
    return BinlogError(corruption.file, corruption.position, corruption.reason)
