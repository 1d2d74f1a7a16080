"""The filter of a stream: leaves out rows events of unwanted tables before they cross a process border.

The receive kernel looks up by type what to do with an event, and by table id whether the last table map with
that id was of a wanted table. Dropped events have no row in the index; where that makes a batch much smaller,
its bytes are compacted.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from engine.binlog import event_types as types
from engine.binlog.event_index import LEFT_OUT
from engine.binlog.event_types import SIZE_AT
from engine.config.decode_options import DecodeOptions
from engine.kernels.kernel import Bytes, Int64s, kernel, read_u32
from engine.kernels.memory import address_of, copy
from engine.schema.changes import SchemaChange, TableName

KEEP, LEAVE_OUT, LEAVE_OUT_UNWANTED = range(3)
"""What to do with the events of a type. LEAVE_OUT_UNWANTED: leave out those whose table is not wanted."""

_PACKET_HEADER = 7
"""Most bytes between two events that follow each other: a packet header, and a marker of up to 3 bytes."""
FIRST_TABLE_IDS = 1024
"""Slots in a new table of ids; it grows where a transaction has table maps of more than half as many."""


def event_actions(options: DecodeOptions) -> NDArray[np.uint8]:
    """Per type code what to do with its events: those that decoders with these options ignore are left out.

    If every table is wanted all events are kept, so that a stream without a filter costs nothing.
    """
    table = np.full(256, KEEP, np.uint8)
    if options.tables.wants_all:
        return table
    table[list(types.ROWS_EVENTS)] = LEAVE_OUT_UNWANTED
    if not options.bookkeeping_events:
        table[types.TABLE_MAP_EVENT] = LEAVE_OUT_UNWANTED
        # The text of the statement comes before its table maps, so that its tables are not known yet.
        table[[types.ROWS_QUERY_LOG_EVENT, types.ANNOTATE_ROWS_EVENT]] = LEAVE_OUT
    return table


class EventFilter:
    """Which tables one stream's decoders want, and by type what the receive kernel does with events."""

    def __init__(self, options: DecodeOptions) -> None:
        self._tables = options.tables
        self.event_actions = event_actions(options)
        """Type code → action."""
        self.table_ids = new_table_ids(FIRST_TABLE_IDS if self.leaves_out else 0)
        """The kernel's table of ids."""

    @property
    def leaves_out(self) -> bool:
        """Whether the index may lack events."""
        return not self._tables.wants_all

    def wants(self, database: str, table: str) -> bool:
        """Whether the table is wanted."""
        return self._tables.wants(database, table)

    def of_wanted(self, change: SchemaChange) -> SchemaChange:
        """The change with the rows of wanted tables only; all definitions stay, since tables are renamed."""
        has_outside = any(table.outside for table in change.tables)
        if not (self.leaves_out or change.changes_rows or has_outside):
            # Nothing is left out, as with the hundreds of definitions that a stream may begin with.
            return change
        emptied = (name for name in change.emptied if not name.table or self._is_wanted(name))
        rewritten = {name for name in change.rewritten if self._is_wanted(name)}
        tables = []
        for table in change.tables:
            is_wanted = self._is_wanted(table.name)
            tables.append(replace(table, outside=not is_wanted))
            if is_wanted and table.renamed_from is not None and not self._is_wanted(table.renamed_from):
                # Its rows are not in the output.
                rewritten.add(table.name)
        return replace(
            change,
            tables=tuple(tables),
            emptied=tuple(emptied),
            rewritten=tuple(sorted(rewritten, key=str)),
        )

    def _is_wanted(self, name: TableName) -> bool:
        return self.wants(name.database, name.table)

    def grow(self) -> None:
        """Make room for as many table ids again."""
        self.table_ids = larger_table_ids(self.table_ids)


def new_table_ids(room: int) -> Int64s:
    """An empty table of ids for the functions below: open-addressed, [slots, (table id, wanted)].

    Without slots where every table is wanted.
    """
    table_ids = np.zeros((room, 2), np.int64)
    table_ids[:, 0] = -1
    return table_ids


@kernel
def _find_id(table_ids: Int64s, table_id: int) -> int:
    """The slot of an id, or the free slot for it. The search ends because half of the table is empty."""
    mask = table_ids.shape[0] - 1
    slot = (table_id * 0x9E3779B1) & mask
    while table_ids[slot, 0] != -1 and table_ids[slot, 0] != table_id:
        slot = (slot + 1) & mask
    return slot


@kernel
def note_table(table_ids: Int64s, table_id: int, wanted: bool) -> int:
    """From now on the id means a table that is wanted or not; returns 1 for a new id, else 0."""
    slot = _find_id(table_ids, table_id)
    new = 1 if table_ids[slot, 0] == -1 else 0
    table_ids[slot, 0] = table_id
    table_ids[slot, 1] = 1 if wanted else 0
    return new


@kernel
def is_unwanted(table_ids: Int64s, table_id: int) -> bool:
    """Whether the id means an unwanted table; false without a table map, which decoders report."""
    slot = _find_id(table_ids, table_id)
    return bool(table_ids[slot, 0] == table_id and table_ids[slot, 1] == 0)


def larger_table_ids(table_ids: Int64s) -> Int64s:
    """The same ids with twice as many slots."""
    larger = new_table_ids(2 * len(table_ids))
    _copy_ids(table_ids, larger)
    return larger


@kernel
def _copy_ids(table_ids: Int64s, larger: Int64s) -> None:
    for slot in range(table_ids.shape[0]):
        if table_ids[slot, 0] != -1:
            note_table(larger, table_ids[slot, 0], table_ids[slot, 1] != 0)


@kernel
def _size_of_events(data: Bytes, index: NDArray[np.uint32]) -> int:
    size = 0
    for i in range(index.shape[0]):
        if index[i, 1] & LEFT_OUT == 0:
            size += read_u32(data, np.int64(index[i, 0]) + SIZE_AT)
    return size


@kernel
def _copy_events(data: Bytes, index: NDArray[np.uint32], target: Bytes) -> int:
    """Copy the events, adjacent ones in one piece; returns the bytes that they take."""
    source, to = address_of(data), address_of(target)
    at = run_start = run_end = np.int64(0)
    for i in range(index.shape[0]):
        if index[i, 1] & LEFT_OUT != 0:
            continue
        start = np.int64(index[i, 0])
        if start - run_end > _PACKET_HEADER:
            copy(to, at, source, run_start, run_end - run_start)
            at += run_end - run_start
            run_start = start
        index[i, 0] = at + start - run_start
        run_end = start + read_u32(data, start + SIZE_AT)
    copy(to, at, source, run_start, run_end - run_start)
    return int(at + run_end - run_start)


def compacted(data: Bytes, index: NDArray[np.uint32]) -> Bytes:
    """`data` without the dropped events, if that saves a quarter or more; then `index` is changed to match.

    The index must be one that the receive kernel made: its events are within `data`.
    """
    size = _size_of_events(data, index)
    if 4 * size > 3 * len(data):
        return data
    target = np.empty(size + _PACKET_HEADER * len(index), np.uint8)
    return target[: _copy_events(data, index, target)]
