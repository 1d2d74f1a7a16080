"""Compressed events, opened: MySQL's compressed transactions and MariaDB's compressed rows.

What is inside takes the compressed event's place in the event table, with its position in the file, as if
the server had never compressed it. Everything that comes after this step knows plain events only.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from engine.decode import event_types as types
from engine.decode.event_table import LARGEST_DATA, TOO_LARGE, EventTable
from engine.decode.events import decode_event
from engine.decode.events.payload import TransactionPayload, inner_events
from engine.decode.events.rows import RowsHeader
from engine.decode.format_description import FormatDescription
from engine.decode.plain_rows import plain_rows_event
from engine.errors import EventError

MAX_EXPANDED = 1 << 30
"""Bytes that one compressed event may expand to."""

_COMPRESSED_ROWS = (code for code, kind in types.ROWS_EVENTS.items() if kind.compressed)
_EXPANDABLE = (types.TRANSACTION_PAYLOAD_EVENT, *_COMPRESSED_ROWS)


def expand_compressed(events: EventTable, description: FormatDescription) -> EventTable:
    """The same events with compressed ones replaced by what they hold; most batches come back as they are.

    Raises `EventTableError` for a compressed event that is damaged or claims too much.
    """
    places = np.flatnonzero(np.isin(events.types, _EXPANDABLE))
    if not len(places):
        return events
    content = bytearray()
    starts, ends, codes, outer = [], [], [], []
    for place in places:
        try:
            for event in _inner(events.event(place).tobytes(), description):
                starts.append(len(events.data) + len(content))
                content += event
                if len(events.data) + len(content) > LARGEST_DATA:
                    raise EventError(TOO_LARGE)
                ends.append(len(events.data) + len(content))
                codes.append(event[4])
                outer.append(place)
        except EventError as error:
            raise events.error(int(place), str(error)) from error
    inside = np.array(outer, np.int64)
    # A stable sort by place puts what came out of an event where the event was.
    kept = np.setdiff1d(np.arange(len(events)), places)
    order = np.argsort(np.concatenate([kept, inside]), kind="stable")
    last = np.append(inside[1:] != inside[:-1], True) if len(inside) else np.zeros(0, np.bool_)
    return EventTable(
        file=events.file,
        data=np.concatenate([events.data, np.frombuffer(content, np.uint8)]),
        starts=np.concatenate([events.starts[kept], np.array(starts, np.int64)])[order],
        ends=np.concatenate([events.ends[kept], np.array(ends, np.int64)])[order],
        types=np.concatenate([events.types[kept], np.array(codes, np.int64)])[order],
        positions=np.concatenate([events.positions[kept], events.positions[inside]])[order],
        transaction_ends=np.concatenate(
            [events.transaction_ends[kept], events.transaction_ends[inside] & last]
        )[order],
        places=np.concatenate([events.places[kept], events.places[inside]])[order],
        context=events.context,
    )


def _inner(event: bytes, description: FormatDescription) -> Iterator[bytes]:
    body = decode_event(event, description).body
    if isinstance(body, TransactionPayload):
        yield from inner_events(body, MAX_EXPANDED)
    elif isinstance(body, RowsHeader):
        yield plain_rows_event(event, body, body.rows)
