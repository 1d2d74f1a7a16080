"""The buffer that a stream is received into, with the index that the receive kernel writes.

Received bytes are appended, and the kernel indexes whole events. When the events so far leave as a batch, the
other bytes move to a new buffer, after a copy of the events that they need as context. A pool lends the
memory, so that decoders can get it as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from engine.binlog import event_types as types
from engine.binlog.event_index import LEFT_OUT, TRANSACTION_END
from engine.kernels.kernel import Bytes
from engine.net.batching.stream_state import StreamState
from engine.pipeline.shared_slots import SlotPool

_BELIEVED_BYTES = 64 << 20
"""An event whose header contains a larger size gets more room only as its bytes are received."""


class ReceiveBuffer:
    """Starts empty, with room for `capacity` bytes. `state` is the stream's, with offsets in this buffer."""

    def __init__(self, pool: SlotPool, capacity: int, state: StreamState) -> None:
        self._pool = pool
        self._slot: int | None = None
        self._other_index = np.empty((0, 2), np.uint32)
        self._state = state
        self.data: Bytes
        self.filled = 0
        """Bytes of `data` that were received."""
        self.index = np.empty((0, 2), np.uint32)
        """A row per event, as in a batch; the state has the number of rows."""
        self.context = 0
        """Number of rows at the start of the index that repeat earlier events."""
        self._open(capacity, [])

    @property
    def has_events(self) -> bool:
        """Whether there are events other than context."""
        return self._state.count > self.context

    @property
    def has_boundary(self) -> bool:
        """Whether one of the events ends a transaction."""
        return self._state.boundary_rows > self.context

    @property
    def idle(self) -> bool:
        """Whether the last event received was a heartbeat of a server that has nothing more."""
        return self._state.idle_cursor == self._state.cursor == self.filled

    @property
    def missing(self) -> int:
        """Bytes that the next event lacks, as far as known; 0 where the stream may end."""
        received = self.filled - self._state.cursor
        return max(1, self._state.needed - received) if received else 0

    @property
    def is_full(self) -> bool:
        """Whether there is no room for the whole next event."""
        size = len(self.data)
        return self.filled == size or (self._state.needed_end > size and self.has_events)

    def space(self) -> memoryview:
        """The room for the next bytes; never empty."""
        return self.data[self.filled :].data

    def event(self) -> Bytes:
        """The event at the cursor, at which the kernel stopped."""
        return self.data[self._state.event]

    def received_bytes(self, size: int) -> bytes:
        """The first bytes of the next event of a file, at most `size`, as far as received."""
        start = self._state.cursor
        return self.data[start : min(start + size, self.filled)].tobytes()

    def following(self) -> Bytes:
        """The bytes that were received after the event at the cursor."""
        return self.data[self._state.next_cursor : self.filled]

    def take_out(self) -> tuple[bytes, bytes]:
        """Remove the event at the cursor and all that follows it; returns the two.

        The first may be a view that is valid after the buffer has moved on.
        """
        event, following = self.event(), self.following().tobytes()
        # A slot is used again; other memory is not, and may be large.
        kept = event if self._slot is None else event.copy()
        self.filled = self._state.cursor
        self._state.take_event_out()
        # A memoryview slices like bytes.
        return cast(bytes, kept.data), following

    def last_type(self) -> int | None:
        """The type of the last event; None where there is only context."""
        return int(self.index[self._state.count - 1, 1]) & 0xFF if self.has_events else None

    def gtid_event(self) -> bytes | None:
        """The open transaction's GTID event; None where it has none."""
        row = self._state.gtid_row
        return None if row is None else self._bytes_at(int(self.index[row, 0]))

    def append_event(self) -> None:
        """Add the event at the cursor to the index."""
        start = self._state.event.start
        self.index[self._state.count] = (start, self.data[start + 4])
        self._state.index_event()

    def drop_events(self) -> None:
        """Drop all events but the context, and with them the open transaction."""
        self._state.drop_events(self.context)

    def open_transaction(self) -> list[bytes]:
        """The events that the rest of the open transaction needs: its GTID event, and its table maps."""
        rows = self.index[: self._state.count]
        gtid_row = self._state.gtid_row
        needed = [] if gtid_row is None else [gtid_row]
        maps = np.nonzero((rows[:, 1] & ~np.uint32(TRANSACTION_END)) == types.TABLE_MAP_EVENT)[0]
        maps = maps[maps >= self._state.boundary_rows] if self.has_boundary else maps
        ids = np.zeros(len(maps), np.int64)
        for byte in range(6):
            ids |= self.data[rows[maps, 0] + types.HEADER_LENGTH + byte].astype(np.int64) << (8 * byte)
        # Of several table maps with the same id, the last one is in force.
        _, last = np.unique(ids[::-1], return_index=True)
        needed += sorted(int(maps[len(maps) - 1 - i]) for i in last)
        return [self._bytes_at(int(rows[row, 0])) for row in needed]

    def give_slot(self) -> int | None:
        """The slot of the bytes, None without one; the receiver returns it to the pool."""
        slot, self._slot = self._slot, None
        return slot

    def move_on(self, context: Sequence[bytes], cursor: int, count: int, usual_capacity: int) -> bool:
        """Continue in a new buffer: `context`, then the bytes from `cursor` and the rows from `count` on.

        Returns whether there were such rows.
        """
        old_data, old_slot, old_index, old_filled = self.data, self._slot, self.index, self.filled
        tail = old_filled - cursor
        needed = self._state.cursor - cursor + self._state.needed
        # The size in the next event's header may be wrong: the room for it grows as its bytes are received.
        room = max(tail + types.HEADER_LENGTH, min(needed, 4 * tail + _BELIEVED_BYTES))
        later = old_index[count : self._state.count]
        self._open(max(usual_capacity, sum(map(len, context)) + room + types.HEADER_LENGTH), context)
        shift = self.filled - cursor
        self.data[self.filled : self.filled + tail] = old_data[cursor:old_filled]
        self._pool.take_back(old_slot)
        kept = len(later)
        moved = np.where(later[:, 1] & LEFT_OUT, 0, np.uint32(shift & 0xFFFFFFFF))
        self.index[self.context : self.context + kept, 0] = later[:, 0] + moved
        self.index[self.context : self.context + kept, 1] = later[:, 1]
        self.filled += tail
        self._state.change_buffer(context=self.context, first=count, kept=kept, shift=shift)
        return kept > 0

    def _open(self, capacity: int, context: Sequence[bytes]) -> None:
        self.data, self._slot = self._pool.lend(capacity)
        # Two arrays alternate: the present one is still needed, and new memory would have to be cleared.
        self.index, self._other_index = self._other_index, self.index
        rows = capacity // types.HEADER_LENGTH + len(context) + 2
        if len(self.index) < rows:
            self.index = np.empty((rows, 2), np.uint32)
        self.filled = 0
        for row, event in enumerate(context):
            self.data[self.filled : self.filled + len(event)] = np.frombuffer(event, np.uint8)
            self.index[row] = (self.filled, event[4])
            self.filled += len(event)
        self.context = len(context)

    def _bytes_at(self, start: int) -> bytes:
        at = start + types.SIZE_AT
        size = int.from_bytes(self.data[at : at + 4].tobytes(), "little")
        return self.data[start : start + size].tobytes()
