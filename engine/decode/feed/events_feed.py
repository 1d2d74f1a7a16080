"""The events feed of a batch: its events that are not row changes, as one record batch.

The readable decoders of `engine.binlog.events` turn each event into a row, one by one: there are few of them.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from engine.binlog.event_table import EventTable
from engine.binlog.events.decoding import decode_event, feed_entry
from engine.binlog.format_description import FormatDescription
from engine.binlog.gtid_events import SplitTaggedGtid
from engine.decode.arrow.arena import Arena
from engine.decode.arrow.record_message import MessageTemplate, write_batch
from engine.decode.feed.statement_tables import StatementChanges, concerned_tables
from engine.decode.rows.event_groups import EventGroups
from engine.decode.tables.assemble import TableMessage
from engine.decode.tables.gtid_texts import gtid_texts
from engine.errors import EventError
from engine.kernels.kernel import Int64s
from engine.output.change_schema import EVENT_FEED_SCHEMA, UTC_MICROSECONDS
from engine.pipeline.messages import StatementFacts

_SCHEMA_BYTES = EVENT_FEED_SCHEMA.serialize().to_pybytes()
_TEMPLATE = MessageTemplate(EVENT_FEED_SCHEMA)
_SEQUENCE = EVENT_FEED_SCHEMA.get_field_index("_seq")


def feed_batch(
    events: EventTable,
    groups: EventGroups,
    before: Int64s,
    description: FormatDescription,
    tagged: SplitTaggedGtid,
    changes: StatementChanges,
) -> pa.RecordBatch:
    """One entry per event of `groups.feed_events`. Raises `EventTableError` for a malformed event.

    `before`: per event the number of rows and feed entries of the batch before it. The entries of statements
    among the `changes` have the tables that they concern.
    """
    indexes, transactions = groups.feed_events, groups.feed_transactions
    entries = []
    for index in indexes:
        try:
            event = decode_event(events.event(index).tobytes(), description)
            change = changes.find(int(events.positions[index]), getattr(event.body, "statement", None))
            tables = [] if change is None else concerned_tables(change)
            entries.append(feed_entry(event, tables=tables) if tables else feed_entry(event))
        except EventError as error:
            raise events.error(int(index), str(error), error.corrupt) from error
    inside = transactions >= 0
    known = np.where(inside, transactions, 0)
    commit_times = np.where(inside, groups.transaction_times[known], 0) if inside.any() else 0 * indexes
    gtid_events = np.where(inside, groups.transaction_gtids[known], -1) if inside.any() else -1 + 0 * indexes
    times = event_times(events, indexes, commit_times)
    names, databases, statements, texts = zip(*entries, strict=True)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(before[indexes] + 1),
            pa.array([events.file] * len(indexes)),
            pa.array(events.positions[indexes]),
            gtid_texts(events, gtid_events, tagged).array(),
            pa.array(times, UTC_MICROSECONDS),
            pa.array(names, pa.string()),
            pa.array(databases, pa.string()),
            pa.array(statements, pa.string()),
            pa.array(texts, pa.string()),
        ],
        schema=EVENT_FEED_SCHEMA,
    )


def feed_message(batch: pa.RecordBatch, first_time: int, last_time: int, arena: Arena) -> TableMessage:
    """Entries of the feed as a message; `first_time`, `last_time`: of commits (µs). Raises `ArenaFull`."""
    message, offsets = write_batch(arena, _TEMPLATE, batch)
    sequence = offsets[_SEQUENCE]
    return TableMessage("", "", _SCHEMA_BYTES, message, sequence, first_time, last_time)


def closing_statement(
    entries: pa.RecordBatch, events: EventTable, groups: EventGroups, changes: StatementChanges
) -> StatementFacts | None:
    """The facts of the batch's last event, if that is one of the statements among the `changes`."""
    if groups.feed_events[-1] != len(events) - 1:
        return None
    last = {name: entries.column(name)[-1] for name in ("_pos", "_gtid", "_commit_timestamp", "statement")}
    if changes.find(last["_pos"].as_py(), last["statement"].as_py()) is None:
        return None
    return StatementFacts(last["_gtid"].as_py(), last["_commit_timestamp"].value)


def event_times(events: EventTable, indexes: Int64s, commit_times: Int64s) -> Int64s:
    """Commit times in µs; if a transaction has none, the event's own time."""
    without_time = np.flatnonzero(commit_times <= 0)
    if not len(without_time):
        return commit_times
    starts = events.starts[indexes[without_time]]
    seconds = np.zeros(len(starts), np.int64)
    for byte in range(4):
        seconds |= events.data[starts + byte].astype(np.int64) << (8 * byte)
    times = commit_times.copy()
    times[without_time] = seconds * 1_000_000
    return times
