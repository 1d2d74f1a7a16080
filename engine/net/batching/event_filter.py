"""Leaving out what nobody wants: rows events of unwanted tables, before they cross a process border.

The receive kernel asks by type what to do with an event, and by table id whether the last table map of that
id was of a wanted table. It leaves unwanted events out of the index; when that makes a batch much smaller,
the events that are left are copied together. Kernels, but for the choice of types.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.binlog import event_types as types
from engine.binlog.event_index import LEFT_OUT
from engine.config.decode_options import DecodeOptions
from engine.kernels.kernel import Bytes, Int64s, kernel, read_u32
from engine.kernels.memory import address_of, copy

KEEP, DROP, DROP_UNWANTED = range(3)
"""What to do with the events of a type: DROP_UNWANTED those whose table nobody wants."""

_PACKET_HEADER = 7
"""What may stand between two events that came one after the other: 4 bytes, and up to 3 of a marker."""
FIRST_TABLE_IDS = 1024
"""Arena in a new table of ids; it grows where one transaction changes more tables than half of that."""


def treatments(options: DecodeOptions) -> NDArray[np.uint8]:
    """Per type code one of KEEP, DROP, DROP_UNWANTED: what decoders with these options would not look at.

    With every table wanted, all are kept, so that a stream without a filter pays nothing.
    """
    table = np.full(256, KEEP, np.uint8)
    if options.tables.wants_all:
        return table
    table[list(types.ROWS_EVENTS)] = DROP_UNWANTED
    if not options.bookkeeping_events:
        table[types.TABLE_MAP_EVENT] = DROP_UNWANTED
        # The statement's text stands before its table maps, so nobody knows yet whose it is; nor wants it.
        table[[types.ROWS_QUERY_LOG_EVENT, types.ANNOTATE_ROWS_EVENT]] = DROP
    return table


def new_table_ids(room: int) -> Int64s:
    """An empty table of ids for the functions below: open-addressed, [places, (table id, wanted)].

    No room at all, where every table is wanted and nobody asks.
    """
    table_ids = np.zeros((room, 2), np.int64)
    table_ids[:, 0] = -1
    return table_ids


@kernel
def _find_id(table_ids: Int64s, table_id: int) -> int:
    """The place of an id, or the free place for it. There always is one: the table is half empty."""
    mask = table_ids.shape[0] - 1
    place = (table_id * 0x9E3779B1) & mask
    while table_ids[place, 0] != -1 and table_ids[place, 0] != table_id:
        place = (place + 1) & mask
    return place


@kernel
def note_table(table_ids: Int64s, table_id: int, wanted: bool) -> int:
    """From now on the id means a table that is wanted or not; returns 1 for an id that is new, else 0."""
    place = _find_id(table_ids, table_id)
    new = 1 if table_ids[place, 0] == -1 else 0
    table_ids[place, 0] = table_id
    table_ids[place, 1] = 1 if wanted else 0
    return new


@kernel
def is_unwanted(table_ids: Int64s, table_id: int) -> bool:
    """Whether the id means an unwanted table; no, where no table map announced it: decoders refuse that."""
    place = _find_id(table_ids, table_id)
    return bool(table_ids[place, 0] == table_id and table_ids[place, 1] == 0)


def larger_table_ids(table_ids: Int64s) -> Int64s:
    """The same with twice the room."""
    larger = new_table_ids(2 * len(table_ids))
    _carry_over(table_ids, larger)
    return larger


@kernel
def _carry_over(table_ids: Int64s, larger: Int64s) -> None:
    for place in range(table_ids.shape[0]):
        if table_ids[place, 0] != -1:
            note_table(larger, table_ids[place, 0], table_ids[place, 1] != 0)


@kernel
def _size_of_events(data: Bytes, index: NDArray[np.uint32]) -> int:
    size = 0
    for i in range(index.shape[0]):
        if index[i, 1] & LEFT_OUT == 0:
            size += read_u32(data, np.int64(index[i, 0]) + 9)
    return size


@kernel
def _copy_events(data: Bytes, index: NDArray[np.uint32], target: Bytes) -> int:
    """Copy the events in runs of those that stand close together; returns the bytes that they take."""
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
        run_end = start + read_u32(data, start + 9)
    copy(to, at, source, run_start, run_end - run_start)
    return int(at + run_end - run_start)


def close_up(data: Bytes, index: NDArray[np.uint32]) -> Bytes:
    """`data` without what no row of `index` points to, if that saves much; then `index` is changed with it.

    The index must be one that the receive kernel made: its events lie within `data`.
    """
    size = _size_of_events(data, index)
    if 4 * size > 3 * len(data):
        return data
    target = np.empty(size + _PACKET_HEADER * len(index), np.uint8)
    return target[: _copy_events(data, index, target)]
