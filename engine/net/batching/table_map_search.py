"""The kernel that searches received bytes for unknown table maps, so that one question describes many
tables."""

from __future__ import annotations

import numpy as np

from engine.binlog.event_roles import EVENT_ROLES, FORMAT, ROTATE, TABLE_MAP
from engine.binlog.event_types import HEADER_LENGTH
from engine.kernels.kernel import Bytes, Int64s, kernel, read_u24
from engine.net.batching.definition_table import find_definition, table_map_hash
from engine.net.batching.event_location import LOCATED, MAX_PACKET, locate_bare, locate_packet
from engine.net.batching.stream_state import CURSOR, EVENT_NEXT, EVENT_SIZE, EVENT_START
from engine.net.batching.transaction_kernel import take_transition, transaction_step, transition_code
from engine.net.batching.transaction_state import DEFINES

_SEARCHED_SLOTS = 2
"""Of the hash table for each table map that a search may find."""


@kernel
def search_table_maps(
    data: Bytes,
    filled: int,
    state: Int64s,
    definitions: Int64s,
    marker: int,
    query_header: int,
    checksum_size: int,
    found: Int64s,
) -> int:
    """Search the bytes from the cursor on for unknown table maps; write offset and size of each to `found`.

    Returns their number; equal ones count once. The search ends at a statement that may define a table or
    change rows, at an event of several packets, and at a rotation or format description. Arguments as for
    `index_events`, but `state` does not change. The number of rows of `found` is a power of two.
    """
    ahead = state.copy()
    seen = np.full((_SEARCHED_SLOTS * found.shape[0], 3), -1, np.int64)
    count = 0
    while count < found.shape[0]:
        cursor = ahead[CURSOR]
        if marker >= 0:
            if filled - cursor < 5 or read_u24(data, cursor) == MAX_PACKET:
                break
            status = locate_packet(data, filled, ahead, marker)
        else:
            status = locate_bare(data, filled, ahead)
        start, size = ahead[EVENT_START], ahead[EVENT_SIZE]
        if status != LOCATED or size < HEADER_LENGTH + checksum_size:
            break
        end = start + size - checksum_size
        kind = np.int64(data[start + 4])
        role = EVENT_ROLES[kind]
        if role in (FORMAT, ROTATE):
            break
        if role == TABLE_MAP:
            if size < HEADER_LENGTH + 8 + checksum_size:
                break
            value = table_map_hash(data, start, end)
            slot = find_definition(seen, value)
            if seen[slot, 1] == -1 and definitions[find_definition(definitions, value), 1] == -1:
                seen[slot, 0] = value
                seen[slot, 1] = count
                found[count, 0] = start
                found[count, 1] = size
                count += 1
        else:
            step = transaction_step(data, start, end, role, kind, query_header)
            if step < 0:
                break
            transition = transition_code(ahead, step)
            if transition & DEFINES:
                break
            take_transition(ahead, transition)
        ahead[CURSOR] = ahead[EVENT_NEXT]
    return count
