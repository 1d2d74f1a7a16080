"""The row walk: finds where each cell of each row of a table starts, and that it ends inside its event.

The walk uses only the number of bytes that a column's cells have (`Codec.width`); the column families decode
the values. Every length is checked here against the event's end, so that the families need no checks. The
result is a matrix of offsets, stored column by column, which is the order in which the families read it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.binlog import event_types as types
from engine.binlog.event_roles import HAS_EXTRA_INFO, IS_UPDATE
from engine.binlog.event_table import LARGEST_DATA, TOO_LARGE, EventTable
from engine.binlog.event_types import HEADER_LENGTH
from engine.decode.rows.row_image import (
    BEYOND,
    bitmap_number,
    has_null,
    walk_full_image,
    walk_image,
)
from engine.decode.rows.walked_tables import RowLayout, Rows, WalkedTables
from engine.kernels.bitmaps import count_bits
from engine.kernels.kernel import Bytes, Int32s, Int64s, inlined, kernel, read_u16
from engine.kernels.memory import address_of, prefetch
from engine.output.change_schema import DELETE, INSERT, UPDATE_POSTIMAGE, UPDATE_PREIMAGE

_OK, _FULL, _TRUNCATED, _COLUMN_COUNT, _CELL, _NO_PROGRESS = range(6)
_REASONS = {
    _TRUNCATED: "the rows event ends in the middle of its column bitmaps or of a row",
    _COLUMN_COUNT: "the rows event has a different number of columns than its table map",
    _CELL: "a value ends after the end of the rows event",
    _NO_PROGRESS: "the rows event has bytes left after a row image without columns",
}

_FIRST_IMAGE = np.full(256, INSERT, np.int8)
_IS_PLAIN = np.zeros(256, np.bool_)
for _code, _kind in types.ROWS_EVENTS.items():
    _FIRST_IMAGE[_code] = {"write": INSERT, "update": UPDATE_PREIMAGE, "delete": DELETE}[_kind.change]
    _IS_PLAIN[_code] = _kind.version > 0 and not (_kind.compressed or _kind.partial_json)

_NOT_PLAIN = frozenset(code for code in types.ROWS_EVENTS if not _IS_PLAIN[code])

VERSION_0 = (
    "rows events of MySQL before 5.1.18 cannot be decoded: their table maps contain neither the lengths nor "
    "the nullability of the columns"
)
"""Why a rows event of version 0 yields no rows."""

_MOST_CELLS = 2**31 - 1
"""Of one batch: so many rows can be counted by Arrow's run ends, which have 32 bits."""
_TOO_MANY_CELLS = (
    "the rows of one batch may have more than 2,147,483,647 values: leave this table out (--tables), or "
    "start after the transaction"
)


_AHEAD, _FETCHED = 4, 1024
"""So many events before it is walked, and up to so many bytes of it, an event is fetched into the cache:
those of one table may be far apart."""


@inlined
def _find_bitmaps(data: Bytes, start: int, end: int, kind: int, columns: int) -> tuple[int, int]:
    """A status, and where the column bitmaps of a rows event start: after its table id, flags, extra
    information and number of columns."""
    at = start + HEADER_LENGTH + 8
    if HAS_EXTRA_INFO[kind]:
        if at + 2 > end:
            return _TRUNCATED, at
        extra = read_u16(data, at)
        if extra < 2:
            return _TRUNCATED, at
        at += extra
    if at >= end:
        return _TRUNCATED, at
    count = np.int64(data[at])
    at += 1
    if count == 0xFC:
        if at + 2 > end:
            return _TRUNCATED, at
        count = read_u16(data, at)
        at += 2
    elif count > 250:
        return _COLUMN_COUNT, at
    return _OK if count == columns else _COLUMN_COUNT, at


@kernel
def _walk_table(
    data: Bytes,
    starts: Int64s,
    ends: Int64s,
    type_codes: Int64s,
    first_event: int,
    last_event: int,
    widths: Int32s,
    cells: Int32s,
    change_types: NDArray[np.int8],
    images: Int32s,
    counts: Int64s,
    bitmaps: Int64s,
) -> tuple[int, int, int, int]:
    """Walk the events of one table; returns a status, its event, and the numbers of rows and bitmaps.

    The arrays of events are those of all tables, the other arrays this table's; `cells` is stored column by
    column.
    """
    columns = len(widths)
    bitmap_size = (columns + 7) >> 3
    capacity = len(images)
    row = 0
    known = 0
    batch = address_of(data)
    for e in range(first_event, last_event):
        if e + _AHEAD < last_event:
            ahead = starts[e + _AHEAD]
            prefetch(batch, ahead, min(ends[e + _AHEAD], ahead + _FETCHED))
        end = ends[e]
        kind = type_codes[e]
        status, first_bitmap = _find_bitmaps(data, starts[e], end, kind, columns)
        if status != _OK:
            return status, e, row, known
        update = IS_UPDATE[kind]
        second_bitmap = first_bitmap + bitmap_size if update else first_bitmap
        at = second_bitmap + bitmap_size
        if at > end:
            return _TRUNCATED, e, row, known
        first_present = count_bits(data, first_bitmap, columns)
        second_present = count_bits(data, second_bitmap, columns)
        first_number = 0
        second_number = 0
        if first_present < columns:
            first_number = bitmap_number(data, first_bitmap, bitmap_size, bitmaps, known)
            known = max(known, first_number)
        if second_present < columns:
            second_number = bitmap_number(data, second_bitmap, bitmap_size, bitmaps, known)
            known = max(known, second_number)

        # An image without columns takes no bytes, so an event with such images contains one row.
        empty = first_present == 0 and (not update or second_present == 0)
        if empty and at < end:
            return _NO_PROGRESS, e, row, known
        first_row = row
        second = False
        while at < end or (second and second_present == 0) or (row == first_row and first_present == 0):
            if row >= capacity:
                return _FULL, e, row, known
            present = second_present if second else first_present
            bitmap = second_bitmap if second else first_bitmap
            nulls = at
            at += (present + 7) >> 3
            if at > end:
                return _TRUNCATED, e, row, known
            if present == columns and not has_null(data, nulls, columns):
                at = walk_full_image(data, at, end, widths, cells, row, capacity)
            else:
                at = walk_image(data, at, end, widths, cells, row, capacity, bitmap, present, nulls)
            if at == BEYOND:
                return _CELL, e, row, known
            images[row] = second_number if second else first_number
            if update:
                change_types[row] = UPDATE_POSTIMAGE if second else UPDATE_PREIMAGE
                second = not second
            else:
                change_types[row] = _FIRST_IMAGE[kind]
            row += 1
        if second:
            return _TRUNCATED, e, row, known
        counts[e] = row - first_row
    return _OK, last_event, row, known


@kernel
def _walk(
    data: Bytes,
    starts: Int64s,
    ends: Int64s,
    type_codes: Int64s,
    bounds: Int64s,
    all_widths: Int32s,
    all_cells: Int32s,
    all_change_types: NDArray[np.int8],
    all_images: Int32s,
    counts: Int64s,
    all_bitmaps: Int64s,
    found: Int64s,
) -> tuple[int, int]:
    """Walk table by table; returns a status and its event.

    `bounds` has a row per table and one more at the end: the first index of its events, columns, rows and
    cells. `found` receives each table's numbers of rows and bitmaps.
    """
    for table in range(len(found)):
        first_event, first_column, first_row, first_cell = bounds[table]
        last_event, last_column, last_row, last_cell = bounds[table + 1]
        status, event, rows, bitmaps = _walk_table(
            data,
            starts,
            ends,
            type_codes,
            first_event,
            last_event,
            all_widths[first_column:last_column],
            all_cells[first_cell:last_cell],
            all_change_types[first_row:last_row],
            all_images[first_row:last_row],
            counts,
            all_bitmaps[2 * first_event : 2 * last_event],
        )
        if status != _OK:
            return status, event
        found[table, 0] = rows
        found[table, 1] = bitmaps
    return _OK, 0


def walk_rows(events: EventTable, rows_events: Int64s, layout: RowLayout) -> Rows:
    """Find the cells of all rows in `rows_events` (indexes into `events`), all of one table.

    Compressed rows and partial updates must have been made plain. Raises `EventTableError` for a malformed
    event, for one of version 0, and for events too large for offsets of 32 bits.
    """
    return walk_tables(events, rows_events, [len(rows_events)], [layout]).rows(0)


def walk_tables(
    events: EventTable, rows_events: Int64s, table_ends: Sequence[int], layouts: Sequence[RowLayout]
) -> WalkedTables:
    """`walk_rows` for any number of tables, whose rows events follow each other; `table_ends`: the end of
    each."""
    if not layouts:
        return WalkedTables.none()
    starts, ends, type_codes = events.starts[rows_events], events.ends[rows_events], events.types[rows_events]
    _check_plain(events, rows_events, type_codes)
    if ends.max(initial=0) > LARGEST_DATA:
        raise events.error(int(rows_events[ends.argmax()]), TOO_LARGE, corrupt=False)
    columns = np.array([len(layout.widths) for layout in layouts])
    # Exact for rows without NULLs and with empty strings; if there are more rows, the arrays are enlarged.
    smallest = np.array([layout.smallest for layout in layouts])
    capacities = np.add.reduceat(ends - starts, [0, *table_ends[:-1]]) // smallest + 2
    all_widths = np.concatenate([layout.widths for layout in layouts])
    counts = np.zeros(len(starts), np.int64)
    bitmaps = np.empty(2 * len(starts), np.int64)
    found = np.empty((len(layouts), 2), np.int64)
    bounds = np.zeros((len(layouts) + 1, 4), np.int64)
    bounds[1:, 0], bounds[1:, 1] = table_ends, np.cumsum(columns)
    status = _FULL
    while status == _FULL:
        bounds[1:, 2], bounds[1:, 3] = np.cumsum(capacities), np.cumsum(capacities * columns)
        if bounds[-1, 3] > _MOST_CELLS:
            largest = int((capacities * columns).argmax())
            raise events.error(int(rows_events[bounds[largest, 0]]), _TOO_MANY_CELLS, corrupt=False)
        change_types, images = np.empty(bounds[-1, 2], np.int8), np.empty(bounds[-1, 2], np.int32)
        cells = np.empty(bounds[-1, 3], np.int32)
        status, event = _walk(
            events.data,
            starts,
            ends,
            type_codes,
            bounds,
            all_widths,
            cells,
            change_types,
            images,
            counts,
            bitmaps,
            found,
        )
        capacities *= 2
    if status != _OK:
        raise events.error(int(rows_events[event]), _REASONS[status])
    lacking = [
        _bitmaps(events, bitmaps[2 * bounds[table, 0] :][: found[table, 1]], int(columns[table]))
        for table in np.flatnonzero(found[:, 1])
    ]
    return WalkedTables(
        bounds=bounds,
        found=found,
        events=rows_events,
        counts=counts,
        cells=cells,
        change_types=change_types,
        images=images,
        bitmaps=np.concatenate([table.reshape(-1) for table in lacking])
        if lacking
        else np.empty(0, np.uint8),
    )


def _bitmaps(events: EventTable, starts: Int64s, columns: int) -> Bytes:
    """The bitmaps that start at these offsets, one per row."""
    return events.data[starts[:, None] + np.arange((columns + 7) // 8)]


def _check_plain(events: EventTable, rows_events: Int64s, type_codes: Int64s) -> None:
    if events.codes.isdisjoint(_NOT_PLAIN):
        return
    not_plain = np.flatnonzero(~_IS_PLAIN[type_codes])
    if len(not_plain):
        index = int(rows_events[not_plain].min())
        kind = types.ROWS_EVENTS[int(events.types[index])]
        if kind.version:
            raise events.error(index, "the rows event is not plain")
        raise events.error(index, VERSION_0, corrupt=False)
