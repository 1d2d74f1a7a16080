"""The statement kernel: finds the statements in received bytes that may define, drop or empty a table.

It goes from header to header and reads no more of the events between: neither their table maps nor their
checksums.
"""

from __future__ import annotations

import numpy as np

from engine.binlog import statements
from engine.binlog.event_positions import length_in_file, start_position
from engine.binlog.event_roles import EVENT_ROLES, FORMAT, HEARTBEAT, QUERY, ROTATE
from engine.binlog.event_types import HEADER_LENGTH, QUERY_COMPRESSED_EVENT
from engine.kernels.kernel import Bytes, Int64s, kernel
from engine.net.batching.event_location import LOCATED, locate_packet
from engine.net.batching.kernel_status import BAD_QUERY, BAD_SIZE, NEEDS_PYTHON, NO_FORMAT
from engine.net.batching.stream_format import UNKNOWN_FORMAT
from engine.net.batching.stream_state import CURSOR, EVENT_NEXT, EVENT_SIZE, EVENT_START, POSITION

_MARKER = 1
"""Bytes between a packet's header and its event."""


@kernel
def next_statement(data: Bytes, filled: int, state: Int64s, query_header: int, checksum_size: int) -> int:
    """Pass the events in data[:filled] from the cursor on; returns the reason why it stops.

    A compressed statement counts as one that may define a table; MySQL's CREATE TABLE … SELECT, which makes a
    new one, does not. `query_header`, `checksum_size`: from the format description.
    """
    while True:
        status = locate_packet(data, filled, state, _MARKER)
        if status != LOCATED:
            return status
        start, size = state[EVENT_START], state[EVENT_SIZE]
        if size < HEADER_LENGTH + checksum_size:
            return BAD_SIZE
        kind = np.int64(data[start + 4])
        role = EVENT_ROLES[kind]
        if role in (FORMAT, ROTATE, HEARTBEAT):
            return NEEDS_PYTHON
        if query_header == UNKNOWN_FORMAT:
            return NO_FORMAT
        if kind == QUERY_COMPRESSED_EVENT:
            return NEEDS_PYTHON
        if role == QUERY:
            end = start + size - checksum_size
            text = statements.statement_start(data, start, end, query_header)
            if text < 0:
                return BAD_QUERY
            if statements.statement_kind(data, text, end) == statements.DEFINITION:
                return NEEDS_PYTHON
        position = start_position(data, start, size, state[POSITION])
        state[POSITION] = position + length_in_file(data, start, size)
        state[CURSOR] = state[EVENT_NEXT]
