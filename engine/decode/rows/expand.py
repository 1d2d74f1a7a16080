"""Replaces compressed events: MySQL's compressed transactions and MariaDB's compressed rows.

The events inside replace the compressed event in the event table, at its position in the file, as if the
server had not compressed them. All of them are expanded into one array, after the batch's plain events, and a
kernel finds where each event starts. All later steps see plain events only.
"""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import NDArray

from engine.binlog import event_types as types
from engine.binlog.event_headers import open_event
from engine.binlog.event_table import LARGEST_DATA, TOO_LARGE, EventTable
from engine.binlog.event_types import HEADER_LENGTH, SIZE_AT
from engine.binlog.events.decoding import decode_event
from engine.binlog.events.payload import ENDS_INSIDE, LARGEST_WHOLE, TransactionPayload, expand_into
from engine.binlog.events.rows import RowsHeader
from engine.binlog.format_description import FormatDescription
from engine.decode.rows.plain_rows import plain_rows_event
from engine.errors import EventError, UnsupportedError
from engine.kernels.kernel import Bytes, Int64s, kernel, read_u32

_COMPRESSED_ROWS = (code for code, kind in types.ROWS_EVENTS.items() if kind.compressed)
_COMPRESSED = frozenset((types.TRANSACTION_PAYLOAD_EVENT, *_COMPRESSED_ROWS))
_IS_COMPRESSED = np.zeros(256, np.bool_)
_IS_COMPRESSED[list(_COMPRESSED)] = True

_Spans = NDArray[np.int64]
"""[compressed event]: start and end offset of its expanded content in the data."""


def expand_compressed(events: EventTable, description: FormatDescription) -> EventTable:
    """The same events with compressed ones replaced by their content; without any, `events` itself.

    Raises `EventTableError` for a compressed event that is damaged, or claims a size above the limit.
    """
    if events.codes.isdisjoint(_COMPRESSED):
        return events
    compressed = _IS_COMPRESSED[events.types]
    indexes, kept = np.flatnonzero(compressed), np.flatnonzero(~compressed)
    plain_starts, plain_ends = events.starts[kept], events.ends[kept]
    data, spans = _expanded(events, indexes, int((plain_ends - plain_starts).sum()), description)
    _close_up(events.data, plain_starts, plain_ends, data)
    counts = np.zeros(len(indexes), np.int64)
    broken = _count_events(data, spans, counts)
    if broken >= 0:
        raise events.error(int(indexes[broken]), ENDS_INSIDE)
    starts, ends, codes = (np.empty(int(counts.sum()), np.int64) for _ in range(3))
    _find_events(data, spans, starts, ends, codes)
    inside = np.repeat(indexes, counts)
    # A stable sort by index puts the events from a compressed one where that one was.
    order = np.argsort(np.concatenate([kept, inside]), kind="stable")
    last = np.append(inside[1:] != inside[:-1], True) if len(inside) else np.zeros(0, np.bool_)
    return EventTable(
        file=events.file,
        data=data,
        starts=np.concatenate([plain_starts, starts])[order],
        ends=np.concatenate([plain_ends, ends])[order],
        types=np.concatenate([events.types[kept], codes])[order],
        positions=np.concatenate([events.positions[kept], events.positions[inside]])[order],
        transaction_ends=np.concatenate(
            [events.transaction_ends[kept], events.transaction_ends[inside] & last]
        )[order],
        batch_indexes=np.concatenate([events.batch_indexes[kept], events.batch_indexes[inside]])[order],
        context=events.context,
    )


def _expanded(
    events: EventTable, indexes: Int64s, room: int, description: FormatDescription
) -> tuple[Bytes, _Spans]:
    """An array with `room` unused bytes and then the compressed events' content, and the spans of that."""
    contents: list[TransactionPayload | bytes] = []
    spans = np.empty((len(indexes), 2), np.int64)
    end = room
    for number, index in enumerate(indexes):
        try:
            content = _content(events, index, description)
            size = len(content) if isinstance(content, bytes) else content.claimed_size(LARGEST_WHOLE)
            if end + size > LARGEST_DATA:
                raise UnsupportedError(TOO_LARGE)
        except EventError as error:
            raise events.error(int(index), str(error), error.corrupt) from error
        contents.append(content)
        spans[number] = end, end + size
        end += size
    data = np.empty(end, np.uint8)
    for index, content, span in zip(indexes, contents, spans, strict=True):
        out = data[span[0] : span[1]]
        if isinstance(content, bytes):
            out[:] = np.frombuffer(content, np.uint8)
            continue
        try:
            span[1] = span[0] + expand_into(content, out.data)
        except EventError as error:
            raise events.error(int(index), str(error), error.corrupt) from error
    return data, spans


def _content(
    events: EventTable, index: np.signedinteger, description: FormatDescription
) -> TransactionPayload | bytes:
    """The content of a compressed event: many events, not yet expanded, or one."""
    event = events.event(index)
    if events.types[index] == types.TRANSACTION_PAYLOAD_EVENT:
        # Not copied, since such events may be most of the batch; a memoryview slices like bytes.
        header, reader = open_event(cast(bytes, event.data), description)
        return TransactionPayload.decode(reader, header, description)
    body = decode_event(event.tobytes(), description).body
    assert isinstance(body, RowsHeader)
    return plain_rows_event(event.tobytes(), body, body.rows)


@kernel
def _close_up(data: Bytes, starts: Int64s, ends: Int64s, out: Bytes) -> None:
    """Put events next to each other at the start of `out`; updates `starts` and `ends` to match."""
    to = 0
    for event in range(len(starts)):
        start, size = starts[event], ends[event] - starts[event]
        out[to : to + size] = data[start : start + size]
        starts[event] = to
        to += size
        ends[event] = to


@kernel
def _count_events(data: Bytes, spans: _Spans, counts: Int64s) -> int:
    """Count the events in each span; returns the first span that does not end with an event, or -1."""
    for number in range(spans.shape[0]):
        at = spans[number, 0]
        end = spans[number, 1]
        while at < end:
            size = read_u32(data, at + SIZE_AT) if at + HEADER_LENGTH <= end else 0
            if size < HEADER_LENGTH or size > end - at:
                return number
            at += size
            counts[number] += 1
    return -1


@kernel
def _find_events(data: Bytes, spans: _Spans, starts: Int64s, ends: Int64s, type_codes: Int64s) -> None:
    """Fill in the starts, ends and types of the events in all spans."""
    count = 0
    for number in range(spans.shape[0]):
        at = spans[number, 0]
        while at < spans[number, 1]:
            starts[count] = at
            type_codes[count] = data[at + 4]
            at += read_u32(data, at + SIZE_AT)
            ends[count] = at
            count += 1
