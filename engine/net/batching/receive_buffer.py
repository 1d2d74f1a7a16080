"""The buffer that a stream is received into, with the index that the receive kernel makes of it.

Bytes come in behind those that are there, the kernel indexes whole events, and when the events so far are
cut off as a batch the rest moves on into the next buffer, behind a copy of the events that it needs as
context. The memory is lent by a pool, so that it may go on to the decoders as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.binlog import event_types as types
from engine.binlog.event_index import LEFT_OUT, TRANSACTION_END
from engine.kernels.kernel import Bytes
from engine.net.batching import receive_kernel
from engine.net.batching.receive_kernel import (
    BOUNDARY_COUNT,
    BOUNDARY_CURSOR,
    BOUNDARY_POSITION,
    COUNT,
    CURSOR,
    EVENT_NEXT,
    EVENT_SIZE,
    EVENT_START,
    GTID_ROW,
    IDLE_CURSOR,
    INSIDE,
    LOOKED_INSIDE,
    NEEDED,
    NEVER,
    OUTSIDE,
    PENDING,
    POSITION,
    TOLD_POSITION,
    TRANSACTION,
)
from engine.pipeline.shared_slots import SlotPool

_SMALLEST_EVENT = 19
_BELIEVED_BYTES = 64 << 20
"""An event that claims to be larger gets more room only when so much of it has come."""


class ReceiveBuffer:
    """Starts empty, with room for `capacity` bytes, in a stream that starts at a file `position`."""

    def __init__(self, pool: SlotPool, capacity: int, position: int) -> None:
        self._pool = pool
        self._slot: int | None = None
        self._other_index = np.empty((0, 2), np.uint32)
        self.data: Bytes
        self.filled = 0
        """Bytes of `data` that have been received."""
        self.index = np.empty((0, 2), np.uint32)
        """A row per event, as in a batch; the state says how many there are."""
        self.context = 0
        """Rows of the index, the first ones, that repeat earlier events."""
        self.state = np.zeros(receive_kernel.STATE_SIZE, np.int64)
        """The receive kernel's: see `engine.net.batching.receive_kernel`."""
        self.state[POSITION] = self.state[TOLD_POSITION] = position
        self.state[GTID_ROW] = self.state[IDLE_CURSOR] = self.state[LOOKED_INSIDE] = -1
        self._open(capacity, [])

    @property
    def position(self) -> int:
        """The file position behind the last event."""
        return int(self.state[POSITION])

    @property
    def cursor(self) -> int:
        """Where the next event starts, or the packet that it is in."""
        return int(self.state[CURSOR])

    @property
    def count(self) -> int:
        """Events in the index, the context included."""
        return int(self.state[COUNT])

    @property
    def has_events(self) -> bool:
        """Whether there is more than context."""
        return self.count > self.context

    @property
    def has_boundary(self) -> bool:
        """Whether one of the events ends a transaction."""
        return bool(self.state[BOUNDARY_COUNT] > self.context)

    @property
    def inside_transaction(self) -> bool:
        """Whether the stream stands in a transaction that has not ended yet; its GTID alone begins one."""
        announced = self.state[TRANSACTION] == PENDING and self.state[GTID_ROW] >= 0
        return bool(announced or self.state[TRANSACTION] == INSIDE)

    @property
    def idle(self) -> bool:
        """Whether the last thing received was a heartbeat of a server that has nothing more."""
        return bool(self.state[IDLE_CURSOR] == self.cursor == self.filled)

    @property
    def missing(self) -> int:
        """Bytes that the next event lacks, as far as known; 0 where the stream may end as it is."""
        pending = self.filled - self.cursor
        return max(1, int(self.state[NEEDED]) - pending) if pending else 0

    @property
    def is_full(self) -> bool:
        """Whether the next event has no room behind what is there."""
        fits = self.cursor + self.state[NEEDED] <= len(self.data)
        return self.filled == len(self.data) or (not fits and self.has_events)

    def space(self) -> memoryview:
        """The room that the next bytes go into; never empty."""
        return self.data[self.filled :].data

    def event(self) -> Bytes:
        """The event at the cursor, at which the kernel stopped."""
        start = int(self.state[EVENT_START])
        return self.data[start : start + int(self.state[EVENT_SIZE])]

    def gtid_event(self) -> bytes | None:
        """The open transaction's GTID event; null where it has none."""
        row = int(self.state[GTID_ROW])
        return None if row < 0 else self._bytes_at(int(self.index[row, 0]))

    def append_event(self) -> None:
        """Take the event at the cursor into the index."""
        self.index[self.count] = (self.state[EVENT_START], self.data[self.state[EVENT_START] + 4])
        self.state[COUNT] += 1
        self.pass_event()

    def pass_event(self) -> None:
        """Go on behind the event at the cursor."""
        self.state[CURSOR] = self.state[EVENT_NEXT]

    def mark_boundary(self) -> None:
        """The last event ends a transaction."""
        self.state[BOUNDARY_COUNT] = self.state[COUNT]
        self.state[BOUNDARY_CURSOR] = self.state[CURSOR]
        self.state[BOUNDARY_POSITION] = self.state[POSITION]

    def forget_events(self) -> None:
        """All events but the context are dropped, and with them the open transaction."""
        self.state[COUNT] = self.state[BOUNDARY_COUNT] = self.context
        self.leave_transaction()

    def leave_transaction(self) -> None:
        """The stream stands between transactions."""
        self.state[TRANSACTION] = OUTSIDE
        self.state[GTID_ROW] = -1

    def open_transaction(self) -> list[bytes]:
        """What the rest of the open transaction needs: its GTID event, and the table maps so far."""
        rows = self.index[: self.count]
        wanted = [] if self.state[GTID_ROW] < 0 else [int(self.state[GTID_ROW])]
        maps = np.nonzero((rows[:, 1] & ~np.uint32(TRANSACTION_END)) == types.TABLE_MAP_EVENT)[0]
        maps = maps[maps >= self.state[BOUNDARY_COUNT]] if self.has_boundary else maps
        ids = np.zeros(len(maps), np.int64)
        for byte in range(6):
            ids |= self.data[rows[maps, 0] + types.HEADER_LENGTH + byte].astype(np.int64) << (8 * byte)
        # The last table map of each id is the one in force.
        _, last = np.unique(ids[::-1], return_index=True)
        wanted += sorted(int(maps[len(maps) - 1 - place]) for place in last)
        return [self._bytes_at(int(rows[row, 0])) for row in wanted]

    def give_slot(self) -> int | None:
        """The slot that the bytes stand in, if they do; whoever gets it gives it back to the pool."""
        slot, self._slot = self._slot, None
        return slot

    def move_on(self, context: Sequence[bytes], cursor: int, count: int, usual_capacity: int) -> bool:
        """Go on in a new buffer: `context`, then the bytes from `cursor` and the index from `count` on.

        Returns whether there were events to take along.
        """
        old_data, old_slot, old_index, old_filled = self.data, self._slot, self.index, self.filled
        tail = old_filled - cursor
        needed = self.cursor - cursor + int(self.state[NEEDED])
        # What the next event claims to take is believed in steps, as its bytes come.
        room = max(tail + _SMALLEST_EVENT, min(needed, 4 * tail + _BELIEVED_BYTES))
        later = old_index[count : self.count]
        self._open(max(usual_capacity, sum(map(len, context)) + room + _SMALLEST_EVENT), context)
        shift = self.filled - cursor
        self.data[self.filled : self.filled + tail] = old_data[cursor:old_filled]
        self._pool.take_back(old_slot)
        kept = len(later)
        moved = np.where(later[:, 1] & LEFT_OUT, 0, np.uint32(shift & 0xFFFFFFFF))
        self.index[self.context : self.context + kept, 0] = later[:, 0] + moved
        self.index[self.context : self.context + kept, 1] = later[:, 1]
        self.filled += tail
        self._renumber(count, kept, shift)
        return kept > 0

    def _renumber(self, count: int, kept: int, shift: int) -> None:
        """What the state says of places, in the new buffer."""
        self.state[COUNT] = self.context + kept
        self.state[CURSOR] += shift
        self.state[IDLE_CURSOR] = -1
        if self.state[LOOKED_INSIDE] != NEVER:
            self.state[LOOKED_INSIDE] = -1
        gtid_row = int(self.state[GTID_ROW])
        if gtid_row >= count:
            self.state[GTID_ROW] = gtid_row - count + self.context
        elif gtid_row >= 0:
            # The open transaction's GTID event came over as context, right behind the format.
            self.state[GTID_ROW] = 1 if self.context > 1 else -1
        self.state[BOUNDARY_COUNT] = self.context

    def _open(self, capacity: int, context: Sequence[bytes]) -> None:
        self.data, self._slot = self._pool.lend(capacity)
        # Two take turns, as the one before is needed a little longer: fresh memory would have to be cleared.
        self.index, self._other_index = self._other_index, self.index
        rows = capacity // _SMALLEST_EVENT + len(context) + 2
        if len(self.index) < rows:
            self.index = np.empty((rows, 2), np.uint32)
        self.filled = 0
        for row, event in enumerate(context):
            self.data[self.filled : self.filled + len(event)] = np.frombuffer(event, np.uint8)
            self.index[row] = (self.filled, event[4])
            self.filled += len(event)
        self.context = len(context)

    def _bytes_at(self, start: int) -> bytes:
        size = int.from_bytes(self.data[start + 9 : start + 13].tobytes(), "little")
        return self.data[start : start + size].tobytes()
