"""Kernels for one row image: the columns that its bitmap lists, and where each of its cells starts.

An image consists of a bitmap of NULLs and the cells of the present columns that are not NULL, one after the
other. A cell has a fixed number of bytes, or a length before its content; every length is checked against the
end of the event.
"""

from __future__ import annotations

import numpy as np

from engine.decode.arrow.codec import ABSENT_CELL, NULL_CELL
from engine.kernels.kernel import Bytes, Int32s, Int64s, inlined, kernel, read_u16, read_u24, read_u32

BEYOND = -1
"""Returned instead of an end offset: the cell or row would end after its event."""
_BITMAPS_COMPARED = 64
"""Only the latest so many bitmaps are compared, which bounds the time; a bitmap may get several numbers."""


@kernel
def bitmap_number(data: Bytes, at: int, size: int, bitmaps: Int64s, known: int) -> int:
    """The number of an equal bitmap among the latest known ones; if there is none, it becomes `known` + 1."""
    for b in range(max(0, known - _BITMAPS_COMPARED), known):
        same = True
        for k in range(size):
            if data[bitmaps[b] + k] != data[at + k]:
                same = False
                break
        if same:
            return b + 1
    bitmaps[known] = at
    return known + 1


@inlined
def has_null(data: Bytes, at: int, columns: int) -> bool:
    """Whether a bitmap of `columns` columns has a bit set."""
    bits = np.int64(0)
    last = at + (columns >> 3)
    for offset in range(at, last):
        bits |= data[offset]
    if columns & 7:
        bits |= data[last] & ((1 << (columns & 7)) - 1)
    return bits != 0


@inlined
def _content_end(data: Bytes, at: int, end: int, width: int) -> int:
    """The end offset of a cell with a length of -`width` bytes, or `BEYOND` if the length is after `end`."""
    if at - width > end:
        return BEYOND
    if width == -1:
        return at + 1 + int(data[np.uint64(at)])
    if width == -2:
        return at + 2 + read_u16(data, at)
    if width == -3:
        return at + 3 + read_u24(data, at)
    return at + 4 + read_u32(data, at)


@inlined
def walk_full_image(
    data: Bytes, at: int, end: int, widths: Int32s, cells: Int32s, index: int, stride: int
) -> int:
    """Walk a row image that has every column and no NULL; returns its end offset, or `BEYOND`.

    The offset of its first cell goes to `cells[index]`, that of each next column `stride` further.
    """
    # Unsigned indexes cannot count from the end of an array, so numba omits the check for that.
    for c in range(len(widths)):
        cells[np.uint64(index)] = at
        index += stride
        width = int(widths[np.uint64(c)])
        if width > 0:
            at += width
        else:
            at = _content_end(data, at, end, width)
            if at == BEYOND:
                return BEYOND
    return at if at <= end else BEYOND


@kernel
def walk_image(
    data: Bytes,
    at: int,
    end: int,
    widths: Int32s,
    cells: Int32s,
    index: int,
    stride: int,
    bitmap: int,
    present: int,
    nulls: int,
) -> int:
    """`walk_full_image` for any row image, which has the `present` columns in `bitmap`; `nulls`: its NULLs.

    A separate kernel, since inlined into the caller it would slow down the loop over full images.
    """
    bit = np.uint64(0)
    for c in range(len(widths)):
        cell = at
        if present < len(widths) and not (data[bitmap + (c >> 3)] >> (c & 7)) & 1:
            cell = ABSENT_CELL
        elif (data[np.uint64(nulls) + (bit >> np.uint64(3))] >> (bit & np.uint64(7))) & np.uint64(1):
            cell = NULL_CELL
            bit += np.uint64(1)
        else:
            bit += np.uint64(1)
            width = int(widths[np.uint64(c)])
            if width > 0:
                at += width
            else:
                at = _content_end(data, at, end, width)
                if at == BEYOND:
                    return BEYOND
        cells[np.uint64(index)] = cell
        index += stride
    return at if at <= end else BEYOND
