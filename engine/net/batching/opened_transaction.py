"""What the network process reads of a compressed transaction before a decoder gets it as a whole.

Its table maps and statements, and what a decoder needs for its rows: that may be far more than the size to
which it expands (`expanded_size`), which only its rows events say.
"""

from __future__ import annotations

import numpy as np

from engine.binlog.event_headers import open_event
from engine.binlog.event_roles import EVENT_ROLES, IS_UPDATE, ROWS
from engine.binlog.event_types import HEADER_LENGTH, QUERY_EVENT, SIZE_AT, TABLE_MAP_EVENT
from engine.binlog.events.payload import ENDS_INSIDE, LARGEST_WHOLE, TransactionPayload, expand_into
from engine.binlog.format_description import FormatDescription
from engine.binlog.statements import statement_kind, statement_start
from engine.dataclass import dataclass
from engine.errors import EventError
from engine.kernels.kernel import Bytes, Int64s, kernel, read_u32
from engine.net.batching.expanded_size import expanded_rows
from engine.net.batching.transaction_state import DEFINES, INSIDE, STATEMENT_STEPS, TRANSITION_CODES

_CODES_INSIDE = TRANSITION_CODES[INSIDE]
"""Codes of the transitions of a stream that is inside a transaction, by `Step`."""


@dataclass(frozen=True, slots=True)
class OpenedTransaction:
    """A compressed transaction that was expanded."""

    definitions: list[bytes]
    """Its table maps, and statements that may define a table or change rows, without checksums."""
    needed: int
    """Bytes that a decoder needs for it, about."""
    has_whole_images: bool
    """It has updates, and no rows event lacks columns: so the server writes all columns (`binlog_row_image`
    FULL). Inserts have all columns with any setting."""


def open_transaction(event: bytes, description: FormatDescription) -> OpenedTransaction:
    """Open a TRANSACTION_PAYLOAD_EVENT. Raises `EventError` if it is damaged, or not small."""
    header, reader = open_event(event, description)
    body = TransactionPayload.decode(reader, header, description)
    events = np.empty(body.claimed_size(LARGEST_WHOLE), np.uint8)
    events = events[: expand_into(body, events.data)]
    found = np.empty((len(events) // HEADER_LENGTH, 2), np.int64)
    query_header = description.post_header_length(QUERY_EVENT)
    count, needed, updates, lacking = _survey(events, query_header, found)
    if count < 0:
        raise EventError(ENDS_INSIDE)
    return OpenedTransaction(
        definitions=[events[start:end].tobytes() for start, end in found[:count].tolist()],
        needed=len(events) + needed,
        has_whole_images=updates > 0 and lacking == 0,
    )


@kernel
def _defines(events: Bytes, start: int, end: int, kind: int, query_header: int) -> bool:
    """Whether an event is a table map, or a statement that may define a table or change rows.

    Also true for a damaged statement.
    """
    if kind != QUERY_EVENT:
        return kind == TABLE_MAP_EVENT
    text = statement_start(events, start, end, query_header)
    if text < 0:
        return True
    return _CODES_INSIDE[STATEMENT_STEPS[statement_kind(events, text, end)]] & DEFINES != 0


@kernel
def _survey(events: Bytes, query_header: int, found: Int64s) -> tuple[int, int, int, int]:
    """Write start and end of each event that `_defines` to `found`.

    Returns their number, what a decoder needs for rows that lack columns, and the numbers of events with
    updates and of those with such rows. The first is -1 if the last event is not complete.
    """
    count = 0
    needed = 0
    updates = 0
    lacking = 0
    start = 0
    while start < len(events):
        size = read_u32(events, start + SIZE_AT) if start + HEADER_LENGTH <= len(events) else 0
        if size < HEADER_LENGTH or size > len(events) - start:
            return -1, 0, 0, 0
        end = start + size
        kind = np.int64(events[start + 4])
        if _defines(events, start, end, kind, query_header):
            found[count, 0] = start
            found[count, 1] = end
            count += 1
        elif EVENT_ROLES[kind] == ROWS:
            rows = expanded_rows(events, start, end, kind)
            needed += rows
            lacking += rows > 0
            updates += IS_UPDATE[kind]
        start = end
    return count, needed, updates, lacking
