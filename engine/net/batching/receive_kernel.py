"""The receive kernel: finds the events in received bytes and the ends of transactions, and writes the index.

It works in the buffer that the socket fills: it copies nothing, the index contains the offset of each event.
`kernel_status` lists why it returns to Python; its state between two calls is described in `stream_state`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.binlog import event_types as types
from engine.binlog.crc32 import crc32
from engine.binlog.event_index import LEFT_OUT, TRANSACTION_END
from engine.binlog.event_positions import length_in_file, start_position
from engine.binlog.event_roles import (
    EVENT_ROLES,
    FORMAT,
    HEARTBEAT,
    IS_COMPRESSED,
    MANAGEMENT,
    PAYLOAD,
    ROTATE,
    ROWS,
    TABLE_MAP,
)
from engine.binlog.event_types import HEADER_LENGTH, NEXT_POSITION_AT
from engine.binlog.events.payload import LARGEST_WHOLE
from engine.kernels.kernel import Bytes, Int64s, inlined, kernel, read_u32, read_u48
from engine.net.batching.definition_table import find_definition, table_map_hash
from engine.net.batching.event_filter import KEEP, LEAVE_OUT, is_unwanted, note_table
from engine.net.batching.event_location import LOCATED, locate_bare, locate_packet
from engine.net.batching.expanded_size import MOST_EXPANDED, expanded_rows, expanded_transaction
from engine.net.batching.kernel_status import (
    AT_STOP,
    BAD_QUERY,
    BAD_SIZE,
    BATCH_FULL,
    DEFINED,
    ENCRYPTED,
    ENDS_EARLY,
    IDS_FULL,
    INDEX_FULL,
    LARGE_TRANSACTION,
    NEEDS_PYTHON,
    NO_FORMAT,
)
from engine.net.batching.stream_format import UNKNOWN_FORMAT
from engine.net.batching.stream_state import (
    BOUNDARY_COUNT,
    BOUNDARY_CURSOR,
    BOUNDARY_POSITION,
    COUNT,
    CURSOR,
    EVENT_NEXT,
    EVENT_SIZE,
    EVENT_START,
    EXPANDED,
    GTID_ROW,
    HAS_PREPARED,
    IDLE_CURSOR,
    INDEXED_POSITION,
    OPENED_FROM,
    PAYLOAD_CURSOR,
    PAYLOAD_NEEDS,
    POSITION,
    POSITION_AFTER,
    STATEMENT_CURSOR,
    STOP_POSITION,
    TABLE_IDS,
    TRANSACTION,
)
from engine.net.batching.transaction_kernel import take_transition, transaction_step, transition_code
from engine.net.batching.transaction_state import DEFINES, ENDS, OUTSIDE

_MOST_LEFT_OUT = (1 << 32) - 1
"""Bytes of events that were left out, as a row of the index can say it."""


@inlined
def _is_sound(data: Bytes, start: int, end: int, checksum_size: int) -> bool:
    """Whether the checksum at `end` is that of data[start:end]; true without checksums.

    Decoders check the events that they get. This is for the others: damage may have changed an event's type.
    """
    return checksum_size == 0 or read_u32(data, end) == crc32(data, start, end)


@kernel
def _take_heartbeat(data: Bytes, state: Int64s) -> None:
    """Pass a heartbeat. It contains our position when the server waits for new events.

    It contains a later one where the server does not send transactions that we have: the stream's position
    follows, as a replica's does.
    """
    state[CURSOR] = state[EVENT_NEXT]
    ahead = (read_u32(data, state[EVENT_START] + NEXT_POSITION_AT) - state[POSITION]) & 0xFFFFFFFF
    if state[TRANSACTION] == OUTSIDE:
        if ahead == 0:
            state[IDLE_CURSOR] = state[CURSOR]
        elif ahead < 0x80000000:
            state[POSITION] += ahead


@inlined
def _is_left_out(data: Bytes, start: int, end: int, action: int, table_ids: Int64s) -> bool:
    """Whether the filter leaves out an event of a type that has an action other than KEEP."""
    if action == LEAVE_OUT:
        return True
    # Decoders report an event that is too short for a table id.
    return end - start >= HEADER_LENGTH + 6 and is_unwanted(table_ids, read_u48(data, start + HEADER_LENGTH))


@inlined
def _needed_by(data: Bytes, start: int, end: int, state: Int64s) -> int:
    """What a decoder needs for a compressed transaction; negative if Python has to look at it first."""
    if state[PAYLOAD_CURSOR] == state[CURSOR]:
        return state[PAYLOAD_NEEDS]
    needed = expanded_transaction(data, start + HEADER_LENGTH, end)
    return -1 if state[OPENED_FROM] <= needed <= LARGEST_WHOLE else needed


@inlined
def _put_left_out(state: Int64s, index: NDArray[np.uint32], size: int) -> None:
    """Add a row for the bytes that were left out before the event, whose own row is the next one."""
    index[state[COUNT], 0] = size
    index[state[COUNT], 1] = LEFT_OUT
    state[GTID_ROW] += state[GTID_ROW] == state[COUNT]
    state[COUNT] += 1


@inlined
def _mark_boundary(state: Int64s, table_ids: Int64s) -> None:
    """Note that a transaction or an event between transactions ends at the cursor."""
    state[BOUNDARY_COUNT] = state[COUNT]
    state[BOUNDARY_CURSOR] = state[CURSOR]
    state[BOUNDARY_POSITION] = state[POSITION]
    if 4 * state[TABLE_IDS] > table_ids.shape[0]:
        # Table ids are valid within one transaction.
        table_ids[:, 0] = -1
        state[TABLE_IDS] = 0


@kernel
def index_events(
    data: Bytes,
    filled: int,
    state: Int64s,
    index: NDArray[np.uint32],
    definitions: Int64s,
    used: Int64s,
    table_ids: Int64s,
    event_actions: NDArray[np.uint8],
    stamp: int,
    marker: int,
    query_header: int,
    checksum_size: int,
) -> int:
    """Index the events in data[:filled] from the cursor on; returns the reason why it stops.

    `marker`: bytes between a packet's header and its event, or -1 for the bytes of a file. `definitions`: the
    known table maps (`definition_table`); the kernel sets `used` to `stamp` for those that it meets.
    `table_ids`, `event_actions`: see `event_filter`. `query_header`, `checksum_size`: from the format
    description.
    """
    while True:
        if state[COUNT] + 2 > index.shape[0]:
            return INDEX_FULL
        if marker >= 0:
            status = locate_packet(data, filled, state, marker)
        else:
            status = locate_bare(data, filled, state)
        if status != LOCATED:
            return status
        start = state[EVENT_START]
        size = state[EVENT_SIZE]
        if size < HEADER_LENGTH + checksum_size:
            return BAD_SIZE
        end = start + size - checksum_size
        kind = np.int64(data[start + 4])
        role = EVENT_ROLES[kind]
        if role == HEARTBEAT and marker >= 0:
            if not _is_sound(data, start, end, checksum_size):
                return NEEDS_PYTHON
            _take_heartbeat(data, state)
            continue
        expected = state[POSITION]
        if expected - state[INDEXED_POSITION] > _MOST_LEFT_OUT:
            return BATCH_FULL
        position = start_position(data, start, size, expected)
        if position >= state[STOP_POSITION]:
            return AT_STOP
        if role == FORMAT or role == ROTATE:
            return NEEDS_PYTHON
        if query_header == UNKNOWN_FORMAT:
            return NO_FORMAT
        if role == TABLE_MAP:
            if size < HEADER_LENGTH + 8 + checksum_size:
                return BAD_SIZE
            slot = find_definition(definitions, table_map_hash(data, start, end))
            number = definitions[slot, 1]
            if number == -1:
                return NEEDS_PYTHON
            used[number] = stamp
            if table_ids.shape[0] != 0:
                if 2 * state[TABLE_IDS] >= table_ids.shape[0]:
                    return IDS_FULL
                wanted = definitions[slot, 2] != 0
                state[TABLE_IDS] += note_table(table_ids, read_u48(data, start + HEADER_LENGTH), wanted)
        action = event_actions[kind]
        left_out = action != KEEP and _is_left_out(data, start, end, action, table_ids)
        needed = 0
        if role == PAYLOAD:
            needed = _needed_by(data, start, end, state)
            if needed < 0:
                return NEEDS_PYTHON
            if needed > LARGEST_WHOLE:
                return LARGE_TRANSACTION
        elif (role == ROWS or IS_COMPRESSED[kind]) and not left_out:
            needed = expanded_rows(data, start, end, kind)
        if needed != 0:
            if state[EXPANDED] != 0 and state[EXPANDED] + needed > MOST_EXPANDED:
                return BATCH_FULL
            state[EXPANDED] += needed
        if kind == types.START_ENCRYPTION_EVENT and marker < 0:
            return ENCRYPTED
        step = transaction_step(data, start, end, role, kind, query_header)
        if step < 0:
            return BAD_QUERY
        transition = transition_code(state, step)
        if transition & DEFINES and state[STATEMENT_CURSOR] != state[CURSOR]:
            return NEEDS_PYTHON
        if transition & ENDS and state[POSITION_AFTER] < 0:
            return ENDS_EARLY
        take_transition(state, transition)
        if kind == types.XA_PREPARE_LOG_EVENT:
            state[HAS_PREPARED] = 1
        state[POSITION] = position + length_in_file(data, start, size)
        # Decoders get damaged events, and report them.
        if left_out and _is_sound(data, start, end, checksum_size):
            state[CURSOR] = state[EVENT_NEXT]
            continue
        implied = state[INDEXED_POSITION]
        if implied != expected and start_position(data, start, size, implied) != position:
            _put_left_out(state, index, expected - implied)
        index[state[COUNT], 0] = start
        index[state[COUNT], 1] = kind | (TRANSACTION_END if transition & ENDS else 0)
        state[COUNT] += 1
        state[INDEXED_POSITION] = state[POSITION]
        state[CURSOR] = state[EVENT_NEXT]
        if transition & ENDS and state[POSITION_AFTER] > 0:
            state[POSITION] = state[POSITION_AFTER]
            state[POSITION_AFTER] = 0
        if transition & ENDS or (role == MANAGEMENT and state[TRANSACTION] == OUTSIDE):
            _mark_boundary(state, table_ids)
        if transition & DEFINES:
            return DEFINED
