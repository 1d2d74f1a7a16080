"""The row walk: where each cell of each row of one table starts, and that it lies inside its event.

The walk knows of a column only how many bytes a cell takes (`Codec.width`); what they mean is the column
families' affair. Every length is checked here against the event's end, so that the families may read
without fear. The result is a matrix of offsets, one line per row image.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from engine.change_schema import DELETE, INSERT, UPDATE_POSTIMAGE, UPDATE_PREIMAGE
from engine.decode import event_types as types
from engine.decode.columns.base import ABSENT_CELL, NULL_CELL
from engine.decode.event_table import EventTable
from engine.kernels import Bytes, Int32s, Int64s, kernel, read_u16, read_u24, read_u32

_OK, _FULL, _TRUNCATED, _COLUMN_COUNT, _CELL, _NO_PROGRESS = range(6)
_REASONS = {
    _TRUNCATED: "the rows event ends in the middle of its column bitmaps or of a row",
    _COLUMN_COUNT: "the rows event has another number of columns than its table map",
    _CELL: "a value's length goes beyond the rows event",
    _NO_PROGRESS: "the rows event has bytes left after a row image without columns",
}

_FIRST_IMAGE = np.full(256, INSERT, np.int8)
_BITMAPS_COMPARED = 64
"""A bitmap may have several numbers, so that looking for one stays quick however many there are."""
_IS_UPDATE = np.zeros(256, np.bool_)
_HAS_EXTRA = np.zeros(256, np.bool_)
_IS_PLAIN = np.zeros(256, np.bool_)
for _code, _kind in types.ROWS_EVENTS.items():
    _FIRST_IMAGE[_code] = {"write": INSERT, "update": UPDATE_PREIMAGE, "delete": DELETE}[_kind.change]
    _IS_UPDATE[_code] = _kind.change == "update"
    _HAS_EXTRA[_code] = _kind.version == 2
    _IS_PLAIN[_code] = _kind.version > 0 and not (_kind.compressed or _kind.partial_json)

VERSION_0 = (
    "rows events of MySQL before 5.1.18 cannot be decoded: their table maps tell neither the lengths of the "
    "columns nor which of them can be NULL"
)
"""Why there are no rows of a rows event of version 0."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The row images of one table in a run of rows events."""

    cells: NDArray[np.int32]
    """[row, column]: offset of the cell in the data, or `NULL_CELL` or `ABSENT_CELL`."""
    change_types: NDArray[np.int8]
    """Per row its transit code of `_change_type`."""
    counts: Int64s
    """Per rows event its number of row images."""
    images: Int32s
    """Per row the number of its column bitmap; 0 where the image has every column."""
    bitmaps: Bytes
    """[number - 1, byte]: the distinct column bitmaps that leave columns out, numbers 1, 2…"""

    def with_counts(self, counts: Int64s) -> Rows:
        """The same rows, for rows events of which some were left out."""
        return replace(self, counts=counts)


@kernel
def _count_bits(data: Bytes, at: int, columns: int) -> int:
    count = 0
    for c in range(columns):
        count += (data[at + (c >> 3)] >> (c & 7)) & 1
    return count


@kernel
def _bitmap_number(data: Bytes, at: int, size: int, bitmaps: Int64s, known: int) -> int:
    """The number of the bitmap at `at` among the latest known ones, else the next number (= known + 1)."""
    for b in range(max(0, known - _BITMAPS_COMPARED), known):
        same = True
        for k in range(size):
            if data[bitmaps[b] + k] != data[at + k]:
                same = False
                break
        if same:
            return b + 1
    return known + 1


@kernel
def _walk(
    data: Bytes,
    starts: Int64s,
    ends: Int64s,
    type_codes: Int64s,
    widths: Int32s,
    cells: NDArray[np.int32],
    change_types: NDArray[np.int8],
    images: Int32s,
    counts: Int64s,
    bitmaps: Int64s,
    progress: Int64s,
) -> int:
    """Walk on from `progress` = [event, row, known bitmaps]; _FULL: `cells` is too short for that event."""
    columns = len(widths)
    bitmap_size = (columns + 7) >> 3
    row = progress[1]
    known = progress[2]
    for e in range(progress[0], len(starts)):
        progress[0] = e
        progress[1] = row
        progress[2] = known
        end = ends[e]
        kind = type_codes[e]
        at = starts[e] + 19 + 8
        if _HAS_EXTRA[kind]:
            if at + 2 > end:
                return _TRUNCATED
            extra = read_u16(data, at)
            if extra < 2:
                return _TRUNCATED
            at += extra
        if at >= end:
            return _TRUNCATED
        count = np.int64(data[at])
        at += 1
        if count == 0xFC:
            if at + 2 > end:
                return _TRUNCATED
            count = read_u16(data, at)
            at += 2
        if count != columns:
            return _COLUMN_COUNT
        update = _IS_UPDATE[kind]
        first_bitmap = at
        second_bitmap = at + bitmap_size if update else at
        at = second_bitmap + bitmap_size
        if at > end:
            return _TRUNCATED
        first_present = _count_bits(data, first_bitmap, columns)
        second_present = _count_bits(data, second_bitmap, columns)
        first_number = 0
        second_number = 0
        if first_present < columns:
            first_number = _bitmap_number(data, first_bitmap, bitmap_size, bitmaps, known)
            if first_number > known:
                bitmaps[known] = first_bitmap
                known += 1
        if second_present < columns:
            second_number = _bitmap_number(data, second_bitmap, bitmap_size, bitmaps, known)
            if second_number > known:
                bitmaps[known] = second_bitmap
                known += 1

        # A row without any column in its images has no bytes at all: such an event holds one row.
        empty = first_present == 0 and (not update or second_present == 0)
        if empty and at < end:
            return _NO_PROGRESS
        first_row = row
        second = False
        while at < end or (second and second_present == 0) or (row == first_row and first_present == 0):
            if row >= cells.shape[0]:
                return _FULL
            present = second_present if second else first_present
            bitmap = second_bitmap if second else first_bitmap
            nulls = at
            at += (present + 7) >> 3
            if at > end:
                return _TRUNCATED
            bit = 0
            for c in range(columns):
                if present < columns and not (data[bitmap + (c >> 3)] >> (c & 7)) & 1:
                    cells[row, c] = ABSENT_CELL
                    continue
                if (data[nulls + (bit >> 3)] >> (bit & 7)) & 1:
                    cells[row, c] = NULL_CELL
                    bit += 1
                    continue
                bit += 1
                cells[row, c] = at
                width = widths[c]
                if width > 0:
                    at += width
                else:
                    if at - width > end:
                        return _CELL
                    if width == -1:
                        at += 1 + np.int64(data[at])
                    elif width == -2:
                        at += 2 + read_u16(data, at)
                    elif width == -3:
                        at += 3 + read_u24(data, at)
                    else:
                        at += 4 + read_u32(data, at)
                # Checked cell by cell: the next one's length prefix must not be read beyond the end.
                if at > end:
                    return _CELL
            images[row] = second_number if second else first_number
            if update:
                change_types[row] = UPDATE_POSTIMAGE if second else UPDATE_PREIMAGE
                second = not second
            else:
                change_types[row] = _FIRST_IMAGE[kind]
            row += 1
        if second:
            return _TRUNCATED
        counts[e] = row - first_row
    progress[0] = len(starts)
    progress[1] = row
    progress[2] = known
    return _OK


def walk_rows(events: EventTable, rows_events: Int64s, widths: Int32s) -> Rows:
    """Find the cells of all rows in `rows_events` (indexes into `events`), all of one table.

    `widths` holds `Codec.width` per column. Compressed rows and partial updates must have been made plain.
    Raises `EventTableError` for an event that does not add up, and for one of version 0.
    """
    starts, ends, type_codes = events.starts[rows_events], events.ends[rows_events], events.types[rows_events]
    not_plain = np.flatnonzero(~_IS_PLAIN[type_codes])
    if len(not_plain):
        place = int(rows_events[not_plain[0]])
        kind = types.ROWS_EVENTS[int(events.types[place])]
        if kind.version:
            raise events.error(place, "the rows event is not plain")
        raise events.error(place, VERSION_0, corrupt=False)
    columns = len(widths)
    # Exact for rows without NULLs and with empty strings; where there are more rows, the matrix grows.
    smallest = (columns + 7) // 8 + int(np.where(widths > 0, widths, -widths).sum())
    capacity = max(16, int((ends - starts).sum()) // max(1, smallest) + 2)
    cells = np.empty((capacity, columns), np.int32)
    change_types = np.empty(capacity, np.int8)
    images = np.empty(capacity, np.int32)
    counts = np.zeros(len(starts), np.int64)
    bitmaps = np.empty(2 * len(starts), np.int64)
    progress = np.zeros(3, np.int64)
    while True:
        status = _walk(
            events.data,
            starts,
            ends,
            type_codes,
            widths,
            cells,
            change_types,
            images,
            counts,
            bitmaps,
            progress,
        )
        if status != _FULL:
            break
        capacity *= 2
        cells = np.resize(cells, (capacity, columns))
        change_types = np.resize(change_types, capacity)
        images = np.resize(images, capacity)
    if status != _OK:
        raise events.error(int(rows_events[progress[0]]), _REASONS[status])
    total, distinct = int(progress[1]), bitmaps[: int(progress[2])]
    absent = events.data[distinct[:, None] + np.arange((columns + 7) // 8)]
    return Rows(cells[:total], change_types[:total], counts, images[:total], absent)
