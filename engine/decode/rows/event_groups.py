"""Event groups: one pass over a batch's events that groups them, without reading any row.

It finds the transaction of each event, the table map of each rows event (equal table maps share one slot,
however often the server repeats them), and the events for the events feed. One kernel does all of it, since
a stream of one-row transactions has five events for every row.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.binlog import event_types as types
from engine.binlog.event_roles import (
    ANONYMOUS_GTID,
    EVENT_ROLES,
    FORMAT,
    MANAGEMENT,
    MARIADB_GTID,
    MYSQL_GTID,
    QUERY,
    ROTATE,
    ROWS,
    TABLE_MAP,
    TAGGED_GTID,
)
from engine.binlog.event_table import EventTable
from engine.binlog.event_types import HEADER_LENGTH
from engine.binlog.statements import BEGIN, COMMIT, statement_kind, statement_start
from engine.dataclass import dataclass
from engine.kernels.kernel import Bytes, Int64s, inlined, kernel, load_word, read_u48, read_u64

_OK, _BAD_QUERY, _BAD_TABLE_MAP, _BAD_ROWS, _NO_TABLE_MAP, _BAD_GTID, _BAD_NUMBER, _FRAGMENT = range(8)
_REASONS = {
    _BAD_QUERY: "the query event's lengths do not fit into the event",
    _BAD_TABLE_MAP: "the table map event is shorter than its fixed part",
    _BAD_ROWS: "the rows event is shorter than its fixed part",
    _NO_TABLE_MAP: "the rows event refers to a table that no table map event announced",
    _BAD_GTID: "the GTID event is shorter than its fixed part",
    _BAD_NUMBER: "the GTID event's number is out of range",
    _FRAGMENT: "the rows event is split into fragments, which the engine does not join: set "
    "binlog_row_event_fragment_threshold on the server to a value above the size of its largest rows",
}

_BOOKKEEPING_TYPES = (
    types.XID_EVENT,
    types.TABLE_MAP_EVENT,
    types.GTID_LOG_EVENT,
    types.ANONYMOUS_GTID_LOG_EVENT,
    types.GTID_TAGGED_LOG_EVENT,
    types.GTID_EVENT,
    types.FORMAT_DESCRIPTION_EVENT,
    types.START_EVENT_V3,
    types.STOP_EVENT,
    types.PREVIOUS_GTIDS_LOG_EVENT,
    types.GTID_LIST_EVENT,
    types.BINLOG_CHECKPOINT_EVENT,
    types.ROWS_QUERY_LOG_EVENT,
    types.ANNOTATE_ROWS_EVENT,
)


def feed_table(bookkeeping: bool) -> NDArray[np.bool_]:
    """Per type code whether such events go to the events feed; rows events never do.

    `bookkeeping` adds the events that every transaction has: its GTID, BEGIN, table maps, XID and the like.
    """
    table = np.full(256, True)
    table[list(types.ROWS_EVENTS)] = False
    table[[types.HEARTBEAT_LOG_EVENT, types.HEARTBEAT_LOG_EVENT_V2]] = False
    table[list(_BOOKKEEPING_TYPES)] = bookkeeping
    return table


@dataclass(frozen=True, slots=True)
class EventGroups:
    """A batch's events by group. Arrays per transaction have one entry per transaction in the batch."""

    transaction_gtids: Int64s
    """The GTID event of each transaction (index into the event table), -1 if it has none."""
    transaction_times: Int64s
    """Commit time in µs since the epoch, 0 if the GTID event has none."""
    table_maps: Int64s
    """Slot → the first table map event with that content (index into the event table)."""
    rows_events: Int64s
    """The rows events, as indexes into the event table."""
    rows_slots: Int64s
    """The slot of each rows event's table map."""
    rows_transactions: Int64s
    """The transaction of each rows event."""
    feed_events: Int64s
    """Events for the feed, as indexes into the event table."""
    feed_transactions: Int64s
    """The transaction of each entry, -1 for events between transactions."""


_TABLE_ID, _SLOT = range(2)
"""A bucket of the hash of table ids, which leads from an id to the slot of its latest table map."""
_FREE = -1
"""The table id of a bucket that has none."""


@inlined
def _same_content(data: Bytes, a: int, a_end: int, b: int, b_end: int) -> bool:
    """Whether the bytes from `a` to `a_end` are those from `b` to `b_end`."""
    size = a_end - a
    same = size == b_end - b
    at = 0
    while at + 8 <= size and same:
        same = load_word(data, a + at) == load_word(data, b + at)
        at += 8
    while at < size and same:
        same = data[a + at] == data[b + at]
        at += 1
    return same


@inlined
def _gtid_fault(data: Bytes, body: int, end: int, role: int) -> int:
    """What is wrong with a GTID event, or `_OK`."""
    if role == MARIADB_GTID:
        if end - body < 13:
            return _BAD_GTID
        return _OK if read_u64(data, body) >= 0 else _BAD_NUMBER
    if end - body < 25:
        return _BAD_GTID
    return _OK if role != MYSQL_GTID or read_u64(data, body + 17) >= 1 else _BAD_NUMBER


@kernel
def _commit_time(data: Bytes, body: int, end: int) -> int:
    """Original commit time of a MySQL GTID event in µs, else the immediate one; 0 if the event has neither.

    Layout after the header: flags 1, source uuid 16, number 8, logical clock type 1, two timestamps 8 each,
    then (since 8.0.1) a 7-byte commit time whose top bit says that the original commit time follows.
    """
    if end - body < 49 or data[body + 25] != 2:
        return 0
    at = body + 42
    time = read_u48(data, at) | (np.int64(data[at + 6]) << 48)
    if time & (1 << 55):
        original = 0
        if end - body >= 56:
            original = read_u48(data, at + 7) | (np.int64(data[at + 13]) << 48)
        time &= (1 << 55) - 1
        if original != 0:
            return original
    return time


@inlined
def _bucket(table_hash: Int64s, table_id: int) -> int:
    """The bucket that has a table id, or the free one where it belongs."""
    mask = len(table_hash) - 1
    # The product's upper half depends on every bit of the id.
    bucket = ((table_id * -7046029254386353131) >> 32) & mask
    while table_hash[bucket, _TABLE_ID] != _FREE and table_hash[bucket, _TABLE_ID] != table_id:
        bucket = (bucket + 1) & mask
    return bucket


@kernel
def _group_events(
    data: Bytes,
    starts: Int64s,
    ends: Int64s,
    type_codes: Int64s,
    transaction_ends: NDArray[np.bool_],
    context: int,
    query_post_header: int,
    feed: NDArray[np.bool_],
    table_hash: Int64s,
    transaction_gtids: Int64s,
    transaction_times: Int64s,
    table_maps: Int64s,
    rows: Int64s,
    feed_rows: Int64s,
    counts: Int64s,
) -> tuple[int, int]:
    """Fill the arrays of `EventGroups`; returns a status and its event.

    `counts` receives the numbers of transactions, slots, rows events and feed events.
    """
    transactions = 0
    slots = 0
    row_count = 0
    feed_count = 0
    inside = False
    for i in range(len(starts)):
        start = starts[i]
        end = ends[i]
        body = start + HEADER_LENGTH
        kind = type_codes[i]
        role = EVENT_ROLES[kind]
        fed = feed[kind]
        if role == MYSQL_GTID or role == ANONYMOUS_GTID or role == MARIADB_GTID or role == TAGGED_GTID:
            fault = _gtid_fault(data, body, end, role)
            if fault != _OK:
                return fault, i
            mysql = role == MYSQL_GTID or role == ANONYMOUS_GTID
            transaction_times[transactions] = _commit_time(data, body, end) if mysql else 0
            transaction_gtids[transactions] = -1 if role == ANONYMOUS_GTID else i
            transactions += 1
            inside = True
        elif not inside and role != FORMAT and role != ROTATE and role != MANAGEMENT:
            transaction_gtids[transactions] = -1
            transaction_times[transactions] = 0
            transactions += 1
            inside = True

        if role == QUERY:
            text = statement_start(data, start, end, query_post_header)
            if text < 0:
                return _BAD_QUERY, i
            statement = statement_kind(data, text, end)
            if statement == BEGIN or statement == COMMIT:
                fed = feed[types.XID_EVENT]
        elif kind == types.PARTIAL_ROW_DATA_EVENT:
            return _FRAGMENT, i
        elif role == TABLE_MAP:
            if end - body < 8:
                return _BAD_TABLE_MAP, i
            table_id = read_u48(data, body)
            bucket = _bucket(table_hash, table_id)
            known = table_hash[bucket, _TABLE_ID] != _FREE
            if known:
                first = table_maps[table_hash[bucket, _SLOT]]
                known = _same_content(data, starts[first] + HEADER_LENGTH, ends[first], body, end)
            if not known:
                table_hash[bucket, _TABLE_ID] = table_id
                table_hash[bucket, _SLOT] = slots
                table_maps[slots] = i
                slots += 1
        elif role == ROWS:
            if end - body < 8:
                return _BAD_ROWS, i
            if i < context:
                continue
            table_id = read_u48(data, body)
            bucket = _bucket(table_hash, table_id)
            if table_hash[bucket, _TABLE_ID] != _FREE:
                rows[row_count, 0] = i
                rows[row_count, 1] = table_hash[bucket, _SLOT]
                rows[row_count, 2] = transactions - 1
                row_count += 1
            elif table_id != types.NO_TABLE:
                return _NO_TABLE_MAP, i
        if fed and i >= context:
            feed_rows[feed_count, 0] = i
            feed_rows[feed_count, 1] = transactions - 1 if inside else -1
            feed_count += 1
        if transaction_ends[i]:
            inside = False
    counts[0], counts[1], counts[2], counts[3] = transactions, slots, row_count, feed_count
    return _OK, 0


def group_events(events: EventTable, query_post_header: int, feed: NDArray[np.bool_]) -> EventGroups:
    """Group the events of a table. Raises `EventTableError` at the first malformed event.

    `query_post_header` is the format description's post header length of QUERY events (13, or 11 before
    binlog version 4); `feed` comes from `feed_table`. Compressed events must have been expanded before.
    """
    count = len(events)
    table_map_count = int(np.count_nonzero(events.types == types.TABLE_MAP_EVENT))
    hash_size = 16
    while hash_size < 2 * table_map_count + 2:
        hash_size *= 2
    table_hash = np.full((hash_size, 2), _FREE, np.int64)
    transaction_gtids = np.empty(count, np.int64)
    transaction_times = np.empty(count, np.int64)
    table_maps = np.empty(table_map_count, np.int64)
    rows = np.empty((count, 3), np.int64)
    feed_rows = np.empty((count, 2), np.int64)
    counts = np.zeros(4, np.int64)
    status, broken = _group_events(
        events.data,
        events.starts,
        events.ends,
        events.types,
        events.transaction_ends,
        events.context,
        query_post_header,
        feed,
        table_hash,
        transaction_gtids,
        transaction_times,
        table_maps,
        rows,
        feed_rows,
        counts,
    )
    if status != _OK:
        raise events.error(broken, _REASONS[status], corrupt=status != _FRAGMENT)
    transactions, slots, row_count, feed_count = counts
    return EventGroups(
        transaction_gtids=transaction_gtids[:transactions],
        transaction_times=transaction_times[:transactions],
        table_maps=table_maps[:slots],
        rows_events=rows[:row_count, 0].copy(),
        rows_slots=rows[:row_count, 1].copy(),
        rows_transactions=rows[:row_count, 2].copy(),
        feed_events=feed_rows[:feed_count, 0].copy(),
        feed_transactions=feed_rows[:feed_count, 1].copy(),
    )
