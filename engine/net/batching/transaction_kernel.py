"""The state machine of `transaction_state` for kernels: the step that an event is, and what it changes.

The receive kernel follows the stream with it, the search for table maps a copy of the stream's state.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.binlog import event_types as types
from engine.binlog import statements
from engine.binlog.event_index import TRANSACTION_END
from engine.binlog.event_roles import MARIADB_GTID, QUERY
from engine.binlog.event_types import HEADER_LENGTH, SIZE_AT
from engine.kernels.kernel import Bytes, Int64s, inlined, kernel, read_u32
from engine.net.batching.stream_state import COUNT, GTID_ROW, TRANSACTION
from engine.net.batching.transaction_state import (
    ENDS,
    EVENT_STEPS,
    GTID,
    GTID_BEGIN,
    IDENTIFIES,
    NEXT_STATE,
    STATEMENT_STEPS,
    TRANSITION_CODES,
)

_MARIADB_STANDALONE = 1


@inlined
def transaction_step(data: Bytes, start: int, end: int, role: int, kind: int, query_header: int) -> int:
    """The `Step` of the event data[start:end]; -1 for a query event whose lengths do not fit."""
    if role == QUERY:
        text = statements.statement_start(data, start, end, query_header)
        return STATEMENT_STEPS[statements.statement_kind(data, text, end)] if text >= 0 else -1
    if role == MARIADB_GTID:
        standalone = (
            end - start > HEADER_LENGTH + 12 and data[start + HEADER_LENGTH + 12] & _MARIADB_STANDALONE
        )
        return GTID if standalone else GTID_BEGIN
    return EVENT_STEPS[kind]


@inlined
def transition_code(state: Int64s, step: int) -> int:
    """The code of the transition for one event."""
    # Unsigned, so that the compiled code need not check for negative indexes.
    return TRANSITION_CODES[np.uint64(state[TRANSACTION]), np.uint64(step)]


@inlined
def take_transition(state: Int64s, code: int) -> None:
    """Change the transaction's state by one event, whose transition has that code."""
    if code != state[TRANSACTION]:
        state[TRANSACTION] = code & NEXT_STATE
        if code & ENDS:
            state[GTID_ROW] = -1
        elif code & IDENTIFIES:
            state[GTID_ROW] = state[COUNT]


@kernel
def first_rolls_back(data: Bytes, index: NDArray[np.uint32], query_header: int, checksum_size: int) -> bool:
    """Whether the first transaction end of an index is a ROLLBACK."""
    for i in range(index.shape[0]):
        if index[i, 1] & TRANSACTION_END:
            if index[i, 1] != types.QUERY_EVENT | TRANSACTION_END:
                return False
            start = np.int64(index[i, 0])
            end = start + read_u32(data, start + SIZE_AT) - checksum_size
            text = statements.statement_start(data, start, end, query_header)
            return text >= 0 and statements.statement_kind(data, text, end) == statements.ROLLBACK
    return False
