"""The state of a stream of events: what the receive kernel and the batcher know between two calls.

The state is one vector of 64-bit integers, because kernels cannot use Python objects. `StreamState` owns it.
In Python only its methods write to it, each named after the change that it makes; the kernels of this folder
write to it through `StreamState.array`. `transaction_state` has the rules for transactions.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from engine.kernels.kernel import Int64s
from engine.net.batching.transaction_state import INSIDE, OUTSIDE, PENDING


class Field(IntEnum):
    """Indexes into the state vector. Offsets are byte offsets in the buffer, positions those in the file."""

    CURSOR = 0
    """Offset of the next packet (or event of a file)."""
    COUNT = 1
    """Rows in the index."""
    TRANSACTION = 2
    """A `Transaction`."""
    BOUNDARY_COUNT = 3
    """COUNT after the last transaction end, or number of context rows where the buffer has none."""
    BOUNDARY_CURSOR = 4
    """CURSOR after the last transaction end."""
    BOUNDARY_POSITION = 5
    """POSITION after the last transaction end."""
    POSITION = 6
    """Position after the last event."""
    NEEDED = 7
    """Bytes from CURSOR on that the next event takes, as far as known."""
    GTID_ROW = 8
    """Row of the open transaction's GTID event in the index; -1 without one."""
    EVENT_START = 9
    """Offset of the event at the cursor."""
    EVENT_SIZE = 10
    """Bytes of the event at the cursor."""
    EVENT_NEXT = 11
    """Offset after the event at the cursor, the value of CURSOR for the next one."""
    IDLE_CURSOR = 12
    """CURSOR after the last heartbeat which said that the server has nothing more; -1 before one."""
    INDEXED_POSITION = 13
    """POSITION as the index implies it, which lacks the dropped events."""
    TABLE_IDS = 14
    """Ids in the filter's table of table ids."""
    PAYLOAD_CURSOR = 15
    """CURSOR of the compressed transaction that was opened; -1 before one."""
    STOP_POSITION = 16
    """Position from which on every event stops the kernel; or NO_STOP."""
    STATEMENT_CURSOR = 17
    """CURSOR of the statement that Python has read; -1 before one."""
    JOINED_CURSOR = 18
    """CURSOR of the event whose packets were joined in the buffer; -1 before one."""
    EXPANDED = 19
    """Bytes that a decoder needs for what is compressed, and for incomplete rows, in the index."""
    POSITION_AFTER = 20
    """Position after the compressed transaction whose last event comes next; -1 before its other events, and
    0 outside of one."""
    PAYLOAD_NEEDS = 21
    """Bytes that a decoder needs for the transaction at PAYLOAD_CURSOR."""
    OPENED_FROM = 22
    """Size from which on compressed transactions are opened."""
    HAS_PREPARED = 23
    """1 after the first XA PREPARE."""


(
    CURSOR,
    COUNT,
    TRANSACTION,
    BOUNDARY_COUNT,
    BOUNDARY_CURSOR,
    BOUNDARY_POSITION,
    POSITION,
    NEEDED,
    GTID_ROW,
    EVENT_START,
    EVENT_SIZE,
    EVENT_NEXT,
    IDLE_CURSOR,
    INDEXED_POSITION,
    TABLE_IDS,
    PAYLOAD_CURSOR,
    STOP_POSITION,
    STATEMENT_CURSOR,
    JOINED_CURSOR,
    EXPANDED,
    POSITION_AFTER,
    PAYLOAD_NEEDS,
    OPENED_FROM,
    HAS_PREPARED,
) = map(int, Field)
"""The same as plain integers, since numba indexes arrays by nothing else."""

NO_STOP = (1 << 63) - 1
"""STOP_POSITION: no event stops the kernel."""
_ALL, _LARGER, _NONE = 0, 1 << 16, 1 << 62
"""OPENED_FROM: all are opened, or those of 64 KB, which decoders have much more work with, or none."""


class Boundary(NamedTuple):
    """The end of the last finished transaction."""

    rows: int
    """Rows of the index up to there."""
    cursor: int
    position: int


class StreamState:
    """The state of one stream, which starts at `position` in its file.

    `opens_payloads`: whether the table maps of compressed transactions must be known, and what they need.
    `has_prepared`: whether XA transactions are prepared there.
    """

    def __init__(self, position: int, *, opens_payloads: bool, has_prepared: bool = False) -> None:
        self._state: Int64s = np.zeros(len(Field), np.int64)
        self._state[POSITION] = self._state[INDEXED_POSITION] = position
        self._state[GTID_ROW] = self._state[IDLE_CURSOR] = -1
        self._opens_payloads = opens_payloads
        self._state[PAYLOAD_CURSOR] = -1
        self._state[OPENED_FROM] = _ALL if opens_payloads else _NONE
        self._state[STOP_POSITION] = NO_STOP
        self._state[HAS_PREPARED] = has_prepared
        self._state[STATEMENT_CURSOR] = self._state[JOINED_CURSOR] = -1

    @property
    def array(self) -> Int64s:
        """The vector, for kernels."""
        return self._state

    # -- reading --------------------------------------------------------------------------------------------

    @property
    def cursor(self) -> int:
        """Offset of the next event, or of the packet that it is in."""
        return int(self._state[CURSOR])

    @property
    def next_cursor(self) -> int:
        """Offset after the event at the cursor."""
        return int(self._state[EVENT_NEXT])

    @property
    def event(self) -> slice:
        """The bytes of the event at the cursor, at which the kernel stopped."""
        start = int(self._state[EVENT_START])
        return slice(start, start + int(self._state[EVENT_SIZE]))

    @property
    def count(self) -> int:
        """Rows in the index, the context included."""
        return int(self._state[COUNT])

    @property
    def position(self) -> int:
        """The file position after the last event."""
        return int(self._state[POSITION])

    @property
    def needed(self) -> int:
        """Bytes from the cursor on that the next event takes, as far as known."""
        return int(self._state[NEEDED])

    @property
    def needed_end(self) -> int:
        """Offset after the next event, as far as known."""
        return int(self._state[CURSOR] + self._state[NEEDED])

    @property
    def boundary(self) -> Boundary:
        """The end of the last finished transaction."""
        cursor, position = self._state[BOUNDARY_CURSOR], self._state[BOUNDARY_POSITION]
        return Boundary(self.boundary_rows, int(cursor), int(position))

    @property
    def boundary_rows(self) -> int:
        """Rows of the index up to the end of the last finished transaction."""
        return int(self._state[BOUNDARY_COUNT])

    @property
    def gtid_row(self) -> int | None:
        """Row of the open transaction's GTID event in the index; None without one."""
        row = int(self._state[GTID_ROW])
        return None if row < 0 else row

    @property
    def idle_cursor(self) -> int:
        """Offset after the last heartbeat which said that the server has nothing more; -1 before one."""
        return int(self._state[IDLE_CURSOR])

    @property
    def is_outside(self) -> bool:
        """Whether the stream is between transactions, with no context of a statement before it either."""
        return int(self._state[TRANSACTION]) == OUTSIDE

    @property
    def inside_transaction(self) -> bool:
        """Whether the stream is inside a transaction that has not ended; its GTID alone begins one."""
        transaction = int(self._state[TRANSACTION])
        return transaction == INSIDE or (transaction == PENDING and self.gtid_row is not None)

    @property
    def has_prepared(self) -> bool:
        """Whether XA transactions of the stream may be prepared."""
        return bool(self._state[HAS_PREPARED])

    @property
    def has_begun(self) -> bool:
        """Whether the stream is inside a transaction whose BEGIN it has passed."""
        return int(self._state[TRANSACTION]) == INSIDE

    # -- the event at the cursor ----------------------------------------------------------------------------

    def index_event(self) -> None:
        """The event at the cursor has a row in the index; the next event follows."""
        self._state[COUNT] += 1
        self.pass_event()

    def pass_event(self) -> None:
        """The next event is the one after the event at the cursor."""
        self._state[CURSOR] = self._state[EVENT_NEXT]

    def pass_bytes(self, size: int) -> None:
        """The next event is `size` bytes after the cursor."""
        self._state[CURSOR] += size

    def require(self, size: int) -> None:
        """The batcher needs that many bytes from the cursor on to continue."""
        self._state[NEEDED] = size

    def open_payload(self, needs: int) -> None:
        """The table maps in the compressed transaction at the cursor, and what it `needs`, are known."""
        self._state[PAYLOAD_CURSOR] = self._state[CURSOR]
        self._state[PAYLOAD_NEEDS] = needs

    def keep_small_payloads_closed(self) -> None:
        """Small compressed transactions need not be opened any more in this file."""
        self._state[OPENED_FROM] = _LARGER

    def take_event_out(self) -> None:
        """The event at the cursor, and all that was received after it, are not in the buffer any more."""
        self._state[NEEDED] = 0
        self._state[JOINED_CURSOR] = -1

    @property
    def awaits_end(self) -> bool:
        """Whether the last event of a compressed transaction has not come yet."""
        return int(self._state[POSITION_AFTER]) != 0

    def begin_inner_events(self, position_after: int | None) -> None:
        """The next events are in a compressed transaction: the last one of it, or others (None)."""
        self._state[POSITION_AFTER] = -1 if position_after is None else position_after

    def read_statement(self) -> None:
        """The statement at the cursor was read: the kernel indexes it next, and stops after it."""
        self._state[STATEMENT_CURSOR] = self._state[CURSOR]

    # -- positions ------------------------------------------------------------------------------------------

    def enter_file(self, position: int) -> None:
        """The next event is at `position` of another file, between transactions."""
        self.skip_to(position)
        self.leave_transaction()
        if self._opens_payloads:
            self._state[OPENED_FROM] = _ALL

    def skip_to(self, position: int) -> None:
        """The next event is at `position` of the file."""
        self._state[POSITION] = position

    def advance(self, size: int) -> None:
        """The last event takes `size` bytes of the file."""
        self._state[POSITION] += size

    def advance_to(self, next_position: int) -> None:
        """The last event's header contains `next_position`: the low 32 bits of the position after it."""
        self._state[POSITION] += (next_position - self._state[POSITION]) & 0xFFFFFFFF

    def begin_batch(self) -> None:
        """The next batch begins at the present position."""
        self._state[INDEXED_POSITION] = self._state[POSITION]

    def abandon_file(self, filled: int, size: int) -> None:
        """The `filled` bytes of the buffer are dropped, with all others of a file of `size` bytes."""
        self._state[CURSOR] = filled
        self._state[POSITION] = size

    def stop_at(self, position: int) -> None:
        """The kernel stops at every event at `position` or after it."""
        self._state[STOP_POSITION] = position

    # -- transactions ---------------------------------------------------------------------------------------

    def mark_boundary(self) -> None:
        """The last event ends a transaction."""
        self._state[BOUNDARY_COUNT] = self._state[COUNT]
        self._state[BOUNDARY_CURSOR] = self._state[CURSOR]
        self._state[BOUNDARY_POSITION] = self._state[POSITION]

    def leave_transaction(self) -> None:
        """The stream is between transactions."""
        self._state[TRANSACTION] = OUTSIDE
        self._state[GTID_ROW] = -1
        self._state[POSITION_AFTER] = 0

    def drop_events(self, context: int) -> None:
        """Only the first `context` rows of the index remain; the open transaction is dropped."""
        self._state[COUNT] = self._state[BOUNDARY_COUNT] = context
        self.leave_transaction()

    def end_idle(self) -> None:
        """The heartbeat which said that the server has nothing more was reported."""
        self._state[IDLE_CURSOR] = -1

    # -- buffers --------------------------------------------------------------------------------------------

    def change_buffer(self, *, context: int, first: int, kept: int, shift: int) -> None:
        """Bytes and rows moved to another buffer.

        Its index begins with `context` rows that repeat earlier events, then `kept` rows follow that were
        those from `first` on. Offsets of the bytes that moved grew by `shift`.
        """
        self._state[COUNT] = context + kept
        joined = self._state[JOINED_CURSOR] == self._state[CURSOR]
        self._state[CURSOR] += shift
        self._state[JOINED_CURSOR] = self._state[CURSOR] if joined else -1
        self._state[STATEMENT_CURSOR] = -1
        self._state[EXPANDED] = 0
        self.end_idle()
        self._state[PAYLOAD_CURSOR] = -1
        row = self._state[GTID_ROW]
        if row >= first:
            self._state[GTID_ROW] = row - first + context
        elif row >= 0:
            # The open transaction's GTID event is part of the context, directly after the format.
            self._state[GTID_ROW] = 1 if context > 1 else -1
        self._state[BOUNDARY_COUNT] = context
