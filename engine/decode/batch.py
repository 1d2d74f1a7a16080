"""Decodes one batch: the steps in order, and the result if an event is broken.

The steps: open the events (checksums), expand compressed ones, group them, walk each table's rows, build its
record batch, describe events that are not row changes for the events feed. If a step finds a broken event,
everything up to the last transaction end before it is decoded again, and the result contains the failure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.binlog import event_types as types
from engine.binlog.event_index import LEFT_OUT
from engine.binlog.event_table import EventTable, EventTableError, open_events
from engine.binlog.events import decode_event
from engine.binlog.events.mariadb import GtidList
from engine.binlog.events.transactions import PreviousGtids
from engine.binlog.fingerprint import fingerprint
from engine.binlog.format_description import FormatDescription
from engine.binlog.gtid_events import gtid_ranges
from engine.binlog.position import BinlogPosition
from engine.config.decode_options import DecodeOptions
from engine.config.table_filter import EVERY_TABLE
from engine.decode.arrow.arena import Arena, ArenaFull, Built, in_own_arena
from engine.decode.arrow.codec import Counters, Options
from engine.decode.feed.dropped import dropped_entry
from engine.decode.feed.events_feed import closing_statement, event_times, feed_batch, feed_message
from engine.decode.feed.statement_tables import StatementChanges
from engine.decode.rows.event_groups import EventGroups, feed_table, group_events, rows_by_slot
from engine.decode.rows.expand import expand_compressed
from engine.decode.rows.rollbacks import drop_rolled_back_rows
from engine.decode.rows.tagged_gtids import TaggedGtids
from engine.decode.rows.walk import walk_tables
from engine.decode.tables.assemble import TableMessage, assemble
from engine.decode.tables.gtid_texts import gtid_texts
from engine.decode.tables.metadata_columns import TableRows, Transactions
from engine.decode.tables.partial_updates import JsonUpdate, flag_differences, plain_updates
from engine.decode.tables.table_decoder import TableDecoder, TableDecoders
from engine.errors import EngineError, EventError
from engine.kernels.kernel import Bytes, Int64s, read_u32
from engine.output.change_schema import SNAPSHOT
from engine.pipeline.messages import (
    SKIPPED,
    Batch,
    Corruption,
    Dropped,
    Failure,
    GtidRange,
    Result,
    StatementFacts,
    TableResult,
)

_SMALL_ROOM = 1 << 16
_FORMATS_KEPT = 16
_SIZE_AT = 9
"""Offset of the size in an event's header."""
_STATE_EVENTS = (types.PREVIOUS_GTIDS_LOG_EVENT, types.GTID_LIST_EVENT)


class PlacedTable(NamedTuple):
    """A table's message, and its offset and length in the arena; None if the arena was too small for it."""

    table: TableMessage
    span: tuple[int, int] | None

    @classmethod
    def of(cls, table: TableMessage, fits: bool) -> PlacedTable:
        """With the message's span, if it `fits` into the arena."""
        message = table.message
        return cls(table, (message.start, len(message.content)) if fits else None)


@dataclass(frozen=True, slots=True)
class _Content:
    tables: list[PlacedTable]
    ordinals: int
    gtids: list[GtidRange]
    gtid_set: str | None
    counters: dict[str, int]
    doubtful_gtids: Sequence[GtidRange] = ()
    statement: StatementFacts | None = None


@dataclass(frozen=True, slots=True)
class _Walked:
    events: EventTable
    """Expanded; what `groups` refers to."""
    groups: EventGroups
    tagged: TaggedGtids
    tables: list[tuple[TableDecoder, TableRows]]
    before: Int64s
    """Per event the number of entries before it in the batch; the last item is the number of all."""


@dataclass(frozen=True, slots=True)
class BatchEntries:
    """What a batch contains, as far as that is known without decoding a value."""

    tables: Sequence[TableDecoder]
    """Those with rows."""
    number: int
    """Rows and entries of the feed: `Result.ordinals`."""
    statement: StatementFacts | None
    """As in `Result`."""


class BatchDecoder:
    """Decodes batches; between them it keeps only caches."""

    def __init__(self, options: DecodeOptions) -> None:
        self._tables = TableDecoders(Options(options.temporal_text), options.tables, options.names_needed)
        self._snapshot_tables = TableDecoders(Options(options.temporal_text, json_text=True), EVERY_TABLE)
        self._feed = feed_table(options.bookkeeping_events)
        self._formats: dict[bytes, FormatDescription] = {}

    def decode(
        self, batch: Batch, index: NDArray[np.uint32], data: Bytes, memory: Bytes
    ) -> tuple[Result, list[Bytes]]:
        """The result's header, and its tables' messages, in `memory` as far as there is room.

        Damage is a failure in the header, not an exception.
        """
        description = self._format(batch, index, data)
        events, error = open_events(
            batch.file,
            data,
            index,
            batch.context_events,
            batch.position,
            description.checksum_length if description else 0,
        )
        whole = events
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
            end = BinlogPosition(batch.file, _end_position(events, batch.position))
            status = replace(
                status,
                resume=end,
                schema_changes=tuple(change for change in status.schema_changes if change.position < end),
                ends_transaction=len(events) > events.context,
                failure=Failure(str(error), corruption=corruption_at(error, index, data)),
            )
        tables = [placed.table for placed in content.tables]
        header = Result(
            sequence=batch.sequence,
            status=status,
            tables=[
                TableResult(
                    table.database,
                    table.table,
                    table.schema,
                    table.message.rows,
                    table.min_timestamp,
                    table.max_timestamp,
                    table.sequence,
                )
                for table in tables
            ],
            spans=[placed.span for placed in content.tables],
            ordinals=content.ordinals,
            transactions=int(np.count_nonzero(events.transaction_ends[events.context :])),
            source_bytes=len(data),
            gtids=content.gtids,
            gtid_set=content.gtid_set,
            last_timestamp=_last_timestamp(whole),
            counters=content.counters,
            file_created=_file_created(batch, index, data) if status.resume.file == batch.file else 0,
            gtid_set_lost=batch.dropped is not None and batch.dropped.gtid_set_lost,
            doubtful_gtids=list(content.doubtful_gtids),
            statement=content.statement,
            chunk=batch.chunk,
        )
        return header, [table.message.content for table in tables]

    def entries(self, batch: Batch, index: NDArray[np.uint32], data: Bytes) -> BatchEntries:
        """What `decode` would find, without decoding values. Raises `EventTableError` for a broken event."""
        if batch.dropped is not None:
            return BatchEntries((), 1, None)
        description = self._format(batch, index, data)
        checksum_length = description.checksum_length if description else 0
        events, error = open_events(
            batch.file, data, index, batch.context_events, batch.position, checksum_length
        )
        if error is not None:
            raise error
        if description is None or len(events) <= events.context:
            return BatchEntries((), 0, None)
        description = description.without_checksums()
        found = self._walked(events, description, batch, Counters())
        statement = None
        if len(found.groups.feed_events) and batch.status.schema_changes:
            changes = StatementChanges(batch.status.schema_changes)
            entries = feed_batch(
                found.events, found.groups, found.before, description, found.tagged.split, changes
            )
            statement = closing_statement(entries, found.events, found.groups, changes)
        return BatchEntries([decoder for decoder, _ in found.tables], int(found.before[-1]), statement)

    def _format(self, batch: Batch, index: NDArray[np.uint32], data: Bytes) -> FormatDescription | None:
        if not batch.context_events:
            return None
        event = _bytes_at(data, int(index[0, 0])).tobytes()
        if event not in self._formats:
            if len(self._formats) == _FORMATS_KEPT:
                # Each binlog file has one; however many there are, they must not fill the memory.
                self._formats.clear()
            self._formats[event] = FormatDescription.parse(event)
        return self._formats[event]

    def _content(
        self, events: EventTable, description: FormatDescription, batch: Batch, arena: Arena
    ) -> _Content:
        counters = Counters()
        # From here on no event has a checksum: it was removed, or (in a compressed transaction) never there.
        description = description.without_checksums()
        found = self._walked(events, description, batch, counters)
        events, groups, tagged, before = found.events, found.groups, found.tagged, found.before
        gtids = gtid_texts(events, groups.transaction_gtids, tagged.split)
        transactions = Transactions(groups.transaction_times, gtids)
        tables = [
            self._table(events, decoder, rows, transactions, before, arena, counters)
            for decoder, rows in found.tables
        ]
        statement = None
        if len(groups.feed_events):
            changes = StatementChanges(batch.status.schema_changes)
            entries = feed_batch(events, groups, before, description, tagged.split, changes)
            statement = closing_statement(entries, events, groups, changes)
            times = entries.column("_commit_timestamp").cast(pa.int64()).to_numpy()
            message = partial(feed_message, entries, int(times.min()), int(times.max()))
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
        )

    def _walked(
        self, events: EventTable, description: FormatDescription, batch: Batch, counters: Counters
    ) -> _Walked:
        """The rows and the entries of the feed, before any value is decoded."""
        events = expand_compressed(events, description)
        groups = group_events(events, description.post_header_length(types.QUERY_EVENT), self._feed)
        tagged = TaggedGtids(description)
        tagged.fill_commit_times(events, groups)
        groups, beyond = drop_rolled_back_rows(events, groups, description)
        counters.add("rollbacks_beyond_batch", beyond)
        decoders = self._decoders(events, groups, description, batch)
        events, differences = plain_updates(
            events, groups.rows_events, groups.rows_slots, decoders, description
        )
        counters.add("json_differences", sum(map(len, differences.values())))
        walked = _walk_tables(events, groups, decoders, differences)
        if batch.chunk is not None:
            for _, found in walked:
                found.rows.change_types.fill(SNAPSHOT)
        counts = np.zeros(len(events) + 1, np.int64)
        for _, rows in walked:
            counts[rows.events] = rows.rows.counts
        counts[groups.feed_events] = 1
        before = np.cumsum(counts) - counts
        return _Walked(events, groups, tagged, walked, before)

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
        tagged = TaggedGtids(description)
        try:
            groups = group_events(events, description.post_header_length(types.QUERY_EVENT), self._feed)
            tagged.fill_commit_times(events, groups)
        except EventTableError:
            # The GTID event is broken too, so the GTID is not known.
            events = events.head(1)
            groups = group_events(events, description.post_header_length(types.QUERY_EVENT), self._feed)
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

    def _decoders(
        self,
        events: EventTable,
        groups: EventGroups,
        description: FormatDescription,
        batch: Batch,
    ) -> list[TableDecoder | None]:
        """Per slot its decoder; None for tables without rows in the batch, and for unwanted ones."""
        tables = self._tables if batch.chunk is None else self._snapshot_tables
        used = np.bincount(groups.rows_slots, minlength=len(groups.table_maps))
        decoders: list[TableDecoder | None] = []
        for slot, index in enumerate(groups.table_maps):
            decoder = None
            if used[slot]:
                try:
                    decoder = tables.find(events.event(index).tobytes(), description, batch.catalog)
                except EngineError as error:
                    raise events.error(int(index), _reason(error), error.corrupt) from error
            decoders.append(decoder)
        return decoders

    def _table(
        self,
        events: EventTable,
        decoder: TableDecoder,
        rows: TableRows,
        transactions: Transactions,
        before: Int64s,
        arena: Arena,
        counters: Counters,
    ) -> PlacedTable:
        def build(arena: Arena) -> tuple[TableMessage, Counters]:
            # A second attempt counts from zero.
            counted = Counters()
            return assemble(events, decoder, rows, transactions, before, arena, counted), counted

        name = f"{decoder.database}.{decoder.table}"
        try:
            (message, counted), fits = _built(build, arena)
        except EventError as error:
            inside = (events.starts <= error.offset) & (error.offset < events.ends)
            at = int(np.flatnonzero(inside)[0]) if inside.any() else int(rows.events[0])
            raise events.error(at, f"in a row of {name}, {error.reason}", error.corrupt) from error
        except EngineError as error:
            raise events.error(int(rows.events[0]), f"in rows of {name}, {error}", error.corrupt) from error
        counters.add_all(counted)
        return PlacedTable.of(message, fits)


def _built(build: Callable[[Arena], Built], arena: Arena) -> tuple[Built, bool]:
    """What `build` returns, and whether it is in `arena`; if that is too small, it is in separate memory."""
    start = arena.end
    try:
        built = build(arena)
    except ArenaFull as full:
        arena.end = start
        return in_own_arena(2 * (full.size + _SMALL_ROOM), build), False
    return built, True


def _placed(build: Callable[[Arena], TableMessage], arena: Arena) -> PlacedTable:
    return PlacedTable.of(*_built(build, arena))


def _reason(error: EngineError) -> str:
    return error.reason if isinstance(error, EventError) else str(error)


def _sound_part(events: EventTable, broken: int) -> EventTable:
    """The events up to the last transaction end before event `broken`; always fewer than there were."""
    ends = np.flatnonzero(events.transaction_ends[: min(broken, len(events) - 1)])
    return events.head(int(ends[-1]) + 1 if len(ends) else min(events.context, len(events)))


def _end_position(events: EventTable, position: int) -> int:
    """The file position after the last of the events."""
    if len(events) <= events.context:
        return position
    return int(events.positions[-1]) + int(read_u32(events.data, int(events.starts[-1]) + 9))


def _file_created(batch: Batch, index: NDArray[np.uint32], data: Bytes) -> int:
    """The time of the file's format description, which is the first of the context; 0 without context."""
    if not batch.context_events:
        return 0
    return int.from_bytes(_bytes_at(data, int(index[0, 0]))[:4].tobytes(), "little")


def _last_timestamp(events: EventTable) -> int:
    return int(read_u32(events.data, int(events.starts[-1]))) if len(events) > events.context else 0


def corruption_at(error: EventTableError, index: NDArray[np.uint32], data: Bytes) -> Corruption | None:
    """What the next run needs in order to skip the event; None if its bytes are not the cause."""
    if not error.corrupt:
        return None
    start = int(index[(index[:, 1] & LEFT_OUT) == 0][error.event, 0])
    event = _bytes_at(data, start)
    return Corruption(error.file, error.position, error.reason, fingerprint(event.data))


def _bytes_at(data: Bytes, start: int) -> Bytes:
    """The event at an offset, as far as it is inside of `data`: the index is not checked yet."""
    size = int.from_bytes(data[start + _SIZE_AT : start + _SIZE_AT + 4].tobytes(), "little")
    return data[start : start + size]


def _walk_tables(
    events: EventTable,
    groups: EventGroups,
    decoders: Sequence[TableDecoder | None],
    differences: Mapping[int, Sequence[JsonUpdate]],
) -> list[tuple[TableDecoder, TableRows]]:
    """The rows of every wanted table, tables in the order of their first table maps.

    `differences`: by event the JSON cells that only list what changed.
    """
    order, bounds = rows_by_slot(groups, [decoder is not None for decoder in decoders])
    found = [(decoder, *bounds[slot]) for slot in bounds if (decoder := decoders[slot]) is not None]
    if not found:
        return []
    places, transactions = groups.rows_events[order], groups.rows_transactions[order]
    ends = [end for _, _, end in found]
    walked = walk_tables(events, places, ends, [decoder.layout for decoder, _, _ in found])
    tables = []
    for (decoder, start, end), rows in zip(found, walked, strict=True):
        if differences:
            rows = flag_differences(rows, places[start:end], differences)
        if len(rows.images):
            tables.append((decoder, TableRows(rows, places[start:end], transactions[start:end])))
    return tables


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
