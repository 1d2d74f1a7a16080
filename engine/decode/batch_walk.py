"""What is in a batch before any value is decoded: its events, grouped, and where the rows of each table are.

The steps: open the events (checksums), expand compressed ones, group them, drop the rows that were rolled
back, find the decoder of each table, and walk its rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from engine.binlog import event_types as types
from engine.binlog.event_index import LEFT_OUT
from engine.binlog.event_table import EventTable, EventTableError, open_events
from engine.binlog.event_types import SIZE_AT
from engine.binlog.fingerprint import fingerprint
from engine.binlog.format_description import FormatDescription
from engine.config.decode_options import DecodeOptions
from engine.config.table_filter import EVERY_TABLE
from engine.dataclass import dataclass
from engine.decode.arrow.codec import Counters, Options
from engine.decode.rows.event_groups import EventGroups, feed_table, group_events
from engine.decode.rows.expand import expand_compressed
from engine.decode.rows.rollbacks import drop_rolled_back_rows
from engine.decode.rows.rows_by_slot import rows_by_slot
from engine.decode.rows.tagged_gtids import TaggedGtids
from engine.decode.rows.walk import walk_tables
from engine.decode.tables.assemble import TableRows
from engine.decode.tables.partial_updates import JsonUpdate, flag_differences, plain_updates
from engine.decode.tables.table_decoder import TableDecoder, TableDecoders
from engine.errors import EngineError, EventError
from engine.kernels.kernel import Bytes, Int64s
from engine.output.change_schema import SNAPSHOT
from engine.pipeline.messages import Batch, Corruption

_FORMATS_KEPT = 16


@dataclass(frozen=True, slots=True)
class OpenBatch:
    """The events of a batch."""

    events: EventTable
    """All of them, or those before the broken one."""
    error: EventTableError | None
    """Why an event is broken; None if none is."""
    description: FormatDescription | None
    """Of the events; None for a batch that has none."""


@dataclass(frozen=True, slots=True)
class GroupedBatch:
    """The tables of a batch whose rows were not walked."""

    events: EventTable
    """Expanded; what `groups` refers to."""
    groups: EventGroups
    decoders: list[TableDecoder]


@dataclass(frozen=True, slots=True)
class WalkedBatch:
    """The rows and the entries of the events feed of a batch."""

    events: EventTable
    """Expanded; what `groups` refers to."""
    groups: EventGroups
    tagged: TaggedGtids
    rows: TableRows
    before: Int64s
    """Per event the number of entries before it in the batch; the last item is the number of all."""


class BatchWalk:
    """Walks batches; between them it keeps only caches."""

    def __init__(self, options: DecodeOptions) -> None:
        self._tables = TableDecoders(Options(options.temporal_text), options.tables, options.names_needed)
        self._snapshot_tables = TableDecoders(Options(options.temporal_text, json_text=True), EVERY_TABLE)
        self._feed = feed_table(options.bookkeeping_events)
        self._formats: dict[bytes, FormatDescription] = {}

    def open(self, batch: Batch, index: NDArray[np.uint32], data: Bytes) -> OpenBatch:
        """The events in `data`. Damage is an error in the result, not an exception."""
        description = self._format(batch, index, data)
        checksum_length = description.checksum_length if description else 0
        events, error = open_events(
            batch.file, data, index, batch.context_events, batch.position, checksum_length
        )
        return OpenBatch(events, error, description)

    def group(self, events: EventTable, description: FormatDescription) -> tuple[EventGroups, TaggedGtids]:
        """The events by what they are for, with all commit times. Raises `EventTableError`."""
        groups = group_events(events, description.post_header_length(types.QUERY_EVENT), self._feed)
        tagged = TaggedGtids(description)
        tagged.fill_commit_times(events, groups)
        return groups, tagged

    def tables(self, events: EventTable, description: FormatDescription, batch: Batch) -> GroupedBatch:
        """The wanted tables with rows, also rolled back ones. Raises `EventTableError`.

        `description`: without checksums, which `events` do not have any more.
        """
        events = expand_compressed(events, description)
        groups, _ = self.group(events, description)
        decoders = self._decoders(events, groups, description, batch)
        return GroupedBatch(events, groups, [decoder for decoder in decoders if decoder is not None])

    def walk(
        self, events: EventTable, description: FormatDescription, batch: Batch, counters: Counters
    ) -> WalkedBatch:
        """Find the rows of every wanted table. Raises like `tables`, with the same `description`."""
        events = expand_compressed(events, description)
        groups, tagged = self.group(events, description)
        groups = drop_rolled_back_rows(events, groups, description, counters)
        decoders = self._decoders(events, groups, description, batch)
        events, differences = plain_updates(
            events, groups.rows_events, groups.rows_slots, decoders, description
        )
        counters.add("json_differences", sum(map(len, differences.values())))
        rows = _walk_tables(events, groups, decoders, differences)
        counts = np.zeros(len(events) + 1, np.int64)
        counts[rows.walked.events] = rows.walked.counts
        if batch.chunk is not None:
            rows.walked.change_types.fill(SNAPSHOT)
        counts[groups.feed_events] = 1
        before = np.cumsum(counts) - counts
        return WalkedBatch(events, groups, tagged, rows, before)

    def _format(self, batch: Batch, index: NDArray[np.uint32], data: Bytes) -> FormatDescription | None:
        if not batch.context_events:
            return None
        event = event_at(data, int(index[0, 0])).tobytes()
        if event not in self._formats:
            if len(self._formats) == _FORMATS_KEPT:
                # Each binlog file has one; however many there are, they must not fill the memory.
                self._formats.clear()
            self._formats[event] = FormatDescription.parse(event)
        return self._formats[event]

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
                    decoder = tables.find(events.event(index).tobytes(), description, batch.packed_columns)
                except EngineError as error:
                    raise events.error(int(index), _reason(error), error.corrupt) from error
            decoders.append(decoder)
        return decoders


def corruption_at(error: EventTableError, index: NDArray[np.uint32], data: Bytes) -> Corruption | None:
    """What the next run needs in order to skip the event; None if its bytes are not the cause."""
    if not error.corrupt:
        return None
    start = int(index[(index[:, 1] & LEFT_OUT) == 0][error.event, 0])
    event = event_at(data, start)
    return Corruption(error.file, error.position, error.reason, fingerprint(event.data))


def event_at(data: Bytes, start: int) -> Bytes:
    """The event at an offset, as far as it is inside of `data`: the index is not checked yet."""
    size = int.from_bytes(data[start + SIZE_AT : start + SIZE_AT + 4].tobytes(), "little")
    return data[start : start + size]


def _walk_tables(
    events: EventTable,
    groups: EventGroups,
    decoders: Sequence[TableDecoder | None],
    differences: Mapping[int, Sequence[JsonUpdate]],
) -> TableRows:
    """The rows of every wanted table, tables in the order of their first table maps.

    `differences`: by event the JSON cells that only list what changed.
    """
    order, bounds = rows_by_slot(groups, [decoder is not None for decoder in decoders])
    found = [(decoder, end) for slot, (_, end) in bounds.items() if (decoder := decoders[slot]) is not None]
    wanted = [decoder for decoder, _ in found]
    places, transactions = groups.rows_events[order], groups.rows_transactions[order]
    walked = walk_tables(events, places, [end for _, end in found], [decoder.layout for decoder in wanted])
    if differences:
        tables = {table: walked.rows(table) for table in range(len(wanted))}
        walked = walked.with_images(
            {
                table: flag_differences(
                    rows, places[slice(*walked.bounds[table : table + 2, 0])], differences
                )
                for table, rows in tables.items()
            }
        )
    return TableRows(wanted, walked, transactions)


def _reason(error: EngineError) -> str:
    return error.reason if isinstance(error, EventError) else str(error)
