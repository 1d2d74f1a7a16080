"""Decodes one batch: the steps in order, and the result if an event is broken.

The steps: find the rows of each table (`batch_walk`), build its record batch, describe events that are not
row changes for the events feed. If a step finds a broken event, everything up to the last transaction end
before it is decoded again, and the result contains the failure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.binlog import event_types as types
from engine.binlog.event_table import EventTable, EventTableError
from engine.binlog.events.decoding import decode_event
from engine.binlog.events.mariadb import GtidList
from engine.binlog.events.transactions import PreviousGtids
from engine.binlog.format_description import FormatDescription
from engine.binlog.gtid_events import gtid_ranges
from engine.binlog.gtid_set import GtidRange
from engine.binlog.position import BinlogPosition
from engine.config.decode_options import DecodeOptions
from engine.dataclass import dataclass
from engine.decode.arrow.arena import SMALL_ROOM, Arena, ArenaFull, in_own_arena
from engine.decode.arrow.codec import Counters
from engine.decode.batch_walk import BatchWalk, corruption_at, event_at
from engine.decode.feed.dropped import dropped_entry
from engine.decode.feed.events_feed import closing_statement, event_times, feed_batch, feed_message
from engine.decode.feed.statement_tables import StatementChanges
from engine.decode.rows.prepared import xa_events, xa_facts
from engine.decode.tables.assemble import PlacedTable, TableMessage, build_messages
from engine.decode.tables.gtid_texts import gtid_texts
from engine.decode.tables.metadata_columns import Sources
from engine.errors import EventError
from engine.kernels.kernel import Bytes, read_u32
from engine.pipeline.messages import (
    SKIPPED,
    Batch,
    Dropped,
    Failure,
    Result,
    StatementFacts,
    StreamStatus,
    TableResult,
    XaFacts,
)

_STATE_EVENTS = (types.PREVIOUS_GTIDS_LOG_EVENT, types.GTID_LIST_EVENT)


@dataclass(frozen=True, slots=True)
class _Content:
    tables: list[PlacedTable]
    ordinals: int
    gtids: list[GtidRange]
    gtid_set: str | None
    counters: dict[str, int]
    doubtful_gtids: Sequence[GtidRange] = ()
    statement: StatementFacts | None = None
    xa: XaFacts | None = None


class BatchDecoder:
    """Decodes batches; between them it keeps only caches."""

    def __init__(self, options: DecodeOptions) -> None:
        self._walk = BatchWalk(options)

    def decode(
        self, batch: Batch, index: NDArray[np.uint32], data: Bytes, memory: Bytes
    ) -> tuple[Result, list[Bytes]]:
        """The result's header, and its tables' messages, in `memory` as far as there is room.

        Damage is a failure in the header, not an exception.
        """
        opened = self._walk.open(batch, index, data)
        events, error, description = opened.events, opened.error, opened.description
        content = _Content([], 0, [], None, {})
        if batch.dropped is not None:
            content = self._dropped(events, description, batch.file, batch.dropped, Arena(memory))
        while description is not None and len(events) > events.context:
            if error is not None:
                events = _sound_part(events, error.event)
            try:
                content = self._content(events, description, batch, Arena(memory))
                break
            except EventTableError as broken:
                error = broken
        status = batch.status
        if error is not None:
            failure = Failure(
                str(error), corruption=corruption_at(error, index, data), unproven=status.awaits_proof
            )
            status = _status_after(events, batch, failure)
        header = Result(
            sequence=batch.sequence,
            status=status,
            tables=[_table_result(placed.table) for placed in content.tables],
            spans=[placed.span for placed in content.tables],
            ordinals=content.ordinals,
            transactions=int(np.count_nonzero(events.transaction_ends[events.context :])),
            gtids=content.gtids,
            gtid_set=content.gtid_set,
            last_timestamp=_last_timestamp(opened.events),
            counters=content.counters,
            file_created=_file_created(batch, index, data) if status.resume.file == batch.file else 0,
            gtid_set_lost=batch.dropped is not None and batch.dropped.gtid_set_lost,
            doubtful_gtids=list(content.doubtful_gtids),
            statement=content.statement,
            xa=content.xa,
            chunk=batch.chunk,
        )
        return header, [placed.table.message.content for placed in content.tables]

    def _content(
        self, events: EventTable, description: FormatDescription, batch: Batch, arena: Arena
    ) -> _Content:
        counters = Counters()
        # From here on no event has a checksum: it was removed, or (in a compressed transaction) never there.
        description = description.without_checksums()
        found = self._walk.walk(events, description, batch, counters)
        events, groups, tagged, before = found.events, found.groups, found.tagged, found.before
        gtids = gtid_texts(events, groups.transaction_gtids, tagged.split)
        file = np.frombuffer(events.file.encode(), np.uint8)
        times = groups.transaction_times
        sources = Sources(
            events.starts, events.ends, events.positions, before, file, times, gtids.offsets, gtids.content
        )
        tables = build_messages(events, found.rows, sources, arena, counters)
        statement = None
        if len(groups.feed_events):
            changes = StatementChanges(batch.status.schema_changes)
            entries = feed_batch(events, groups, before, description, tagged.split, changes)
            statement = closing_statement(entries, events, groups, changes)
            entry_times = entries.column("_commit_timestamp").cast(pa.int64()).to_numpy()
            message = partial(feed_message, entries, int(entry_times.min()), int(entry_times.max()))
            tables.append(_placed(message, arena))
        # If a rollback drops the rows of earlier batches, their transaction's GTID is executed all the same.
        first = 0 if batch.status.aborts_transaction else events.context
        gtid_events = groups.transaction_gtids[groups.transaction_gtids >= first]
        return _Content(
            tables=tables,
            ordinals=int(before[-1]),
            gtids=gtid_ranges(events, gtid_events, tagged.split),
            gtid_set=_known_gtid_set(events, description),
            counters=counters.values,
            statement=statement,
            xa=xa_facts(xa_events(events, groups, description), before),
        )

    def _dropped(
        self,
        events: EventTable,
        description: FormatDescription | None,
        file: str,
        dropped: Dropped,
        arena: Arena,
    ) -> _Content:
        """The record of what was dropped, and its transaction's GTID, which is added to the executed set."""
        description = (description or FormatDescription.assumed()).without_checksums()
        try:
            groups, tagged = self._walk.group(events, description)
        except EventTableError:
            # The GTID event is broken too, so the GTID is not known.
            events = events.head(1)
            groups, tagged = self._walk.group(events, description)
        gtid_events = groups.transaction_gtids
        gtid, time = None, None
        if len(gtid_events):
            gtid = gtid_texts(events, gtid_events, tagged.split).array()[0].as_py()
            time = int(event_times(events, events.batch_indexes[-1:], groups.transaction_times)[0])
        sure = not dropped.gtid_is_doubtful
        entry = dropped_entry(file, dropped, gtid if sure else None, time if sure else None)
        ranges = gtid_ranges(events, gtid_events[gtid_events >= 0], tagged.split)
        # Without a transaction's time, the time of the file's format description is the lower bound.
        begun = int(read_u32(events.data, int(events.starts[0]))) * 1_000_000 if len(events) else 0
        extent = (sure and time) or begun
        return _Content(
            tables=[_placed(partial(feed_message, entry, extent, extent), arena)],
            ordinals=1,
            gtids=ranges if sure else [],
            gtid_set=None,
            counters={SKIPPED: 1},
            doubtful_gtids=[] if sure else ranges,
        )


def _placed(build: Callable[[Arena], TableMessage], arena: Arena) -> PlacedTable:
    """What `build` returns, in `arena`, or if that is too small, in memory of its own."""
    start = arena.end
    try:
        return PlacedTable.of(build(arena), True)
    except ArenaFull as full:
        arena.end = start
        return PlacedTable.of(in_own_arena(2 * (full.size + SMALL_ROOM), build), False)


def _table_result(table: TableMessage) -> TableResult:
    return TableResult(
        table.database,
        table.table,
        table.schema,
        table.message.rows,
        table.min_timestamp,
        table.max_timestamp,
        table.sequence,
    )


def _status_after(events: EventTable, batch: Batch, failure: Failure) -> StreamStatus:
    """The status of a batch of which only these events were decoded, because of the failure after them."""
    end = BinlogPosition(batch.file, _end_position(events, batch.position))
    return replace(
        batch.status,
        resume=end,
        schema_changes=tuple(change for change in batch.status.schema_changes if change.position < end),
        ends_transaction=len(events) > events.context,
        failure=failure,
    )


def _sound_part(events: EventTable, broken: int) -> EventTable:
    """The events up to the last transaction end before event `broken`; always fewer than there were."""
    ends = np.flatnonzero(events.transaction_ends[: min(broken, len(events) - 1)])
    return events.head(int(ends[-1]) + 1 if len(ends) else min(events.context, len(events)))


def _end_position(events: EventTable, position: int) -> int:
    """The file position after the last of the events."""
    if len(events) <= events.context:
        return position
    return int(events.positions[-1]) + int(read_u32(events.data, int(events.starts[-1]) + types.SIZE_AT))


def _file_created(batch: Batch, index: NDArray[np.uint32], data: Bytes) -> int:
    """The time of the file's format description, which is the first of the context; 0 without context."""
    if not batch.context_events:
        return 0
    return int.from_bytes(event_at(data, int(index[0, 0]))[:4].tobytes(), "little")


def _last_timestamp(events: EventTable) -> int:
    return int(read_u32(events.data, int(events.starts[-1]))) if len(events) > events.context else 0


def _known_gtid_set(events: EventTable, description: FormatDescription) -> str | None:
    """The executed GTID set that the events themselves state, at the beginning of a binlog file."""
    if events.codes.isdisjoint(_STATE_EVENTS):
        return None
    for index in np.flatnonzero(np.isin(events.types[events.context :], _STATE_EVENTS)) + events.context:
        try:
            body = decode_event(events.event(index).tobytes(), description).body
        except EventError as error:
            raise events.error(int(index), str(error), error.corrupt) from error
        if isinstance(body, PreviousGtids):
            return body.gtid_set
        if isinstance(body, GtidList):
            # The newest GTID of a domain comes last.
            return ",".join({gtid.split("-")[0]: gtid for gtid in body.gtids}.values())
    return None
