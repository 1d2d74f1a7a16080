"""The column `_absent_columns`: the names of the columns that a row's image lacks.

Servers leave columns out with `binlog_row_image` MINIMAL and NOBLOB. Rows that follow each other mostly lack
the same columns, so the array is run-end encoded: a run per sequence of images with the same columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numba
import numpy as np

from engine.decode.arrow.column_kernel import FULL, LARGEST, SIZE, TOO_LARGE, aligned, has_room
from engine.decode.rows.walked_tables import Rows
from engine.decode.tables.message_parts import put_buffer, put_no_buffer, put_node, put_run_ends
from engine.kernels.memory import PADDING, address_of, copy


@numba.njit(inline="always")
def _begins_run(images: Any, row: int) -> Any:
    """Whether a row's image lacks other columns than that of the row before."""
    return row == 0 or images[row] != images[row - 1]


@numba.njit(inline="always")
def _is_absent(bitmaps: Any, number: Any, columns: int, column: int) -> Any:
    """Whether a column is absent according to the bitmap with that number, which counts from 1."""
    first = (np.int64(number) - 1) * ((columns + 7) >> 3)
    return not bitmaps[first + (column >> 3)] >> (column & 7) & 1


@numba.njit
def _count(images: Any, bitmaps: Any, name_ends: Any, columns: int) -> Any:
    """The numbers of runs, of runs that have a list, of names in all lists, and of the bytes of these."""
    runs = np.int64(0)
    lists = np.int64(0)
    children = np.int64(0)
    size = np.int64(0)
    for row in range(images.size):
        if _begins_run(images, row):
            runs += 1
            if images[row]:
                lists += 1
                for column in range(columns):
                    if _is_absent(bitmaps, images[row], columns, column):
                        children += 1
                        size += name_ends[column + 1] - name_ends[column]
    return runs, lists, children, size


@numba.njit
def build_absent_columns(
    images: Any, bitmaps: Any, names: Any, columns: int, memory: Any, at: int, message: Any, notes: Any
) -> Any:
    """Build the column of images of which some lack columns; returns its end, `FULL` or `TOO_LARGE`.

    `images`: per row the number of its bitmap; `bitmaps`: these, from number 1 on; `names`: as in a
    `TablePlan`, of `columns` columns.
    """
    name_ends = names[: 4 * (columns + 1)].view(np.int32)
    name_texts = names[4 * (columns + 1) :]
    runs, lists, children, size = _count(images, bitmaps, name_ends, columns)
    if size > notes[LARGEST]:
        notes[SIZE] = size
        return TOO_LARGE
    ends_at = at
    valid_at = aligned(ends_at + 4 * runs)
    list_at = aligned(valid_at + ((runs + 7) >> 3))
    offset_at = aligned(list_at + 4 * (runs + 1))
    text_at = aligned(offset_at + 4 * (children + 1))
    end = aligned(text_at + size)
    if not has_room(memory, at, end - at + PADDING, notes):
        return FULL
    memory[valid_at:list_at] = 0
    halves = memory.view(np.int32)
    content, texts = address_of(memory), address_of(name_texts)
    halves[list_at >> 2] = 0
    halves[offset_at >> 2] = 0
    run = np.int64(-1)
    child = np.int64(0)
    to = text_at
    for row in range(images.size):
        if _begins_run(images, row):
            run += 1
            if images[row]:
                memory[valid_at + (run >> 3)] |= 1 << (run & 7)
                for column in range(columns):
                    if _is_absent(bitmaps, images[row], columns, column):
                        start = np.int64(name_ends[column])
                        length = np.int64(name_ends[column + 1]) - start
                        copy(content, to, texts, start, length)
                        to += length
                        child += 1
                        halves[(offset_at >> 2) + child] = to - text_at
            halves[(list_at >> 2) + run + 1] = child
        halves[(ends_at >> 2) + run] = row + 1
    words = memory.view(np.int64)
    put_run_ends(words, message, images.size, runs, ends_at)
    put_node(words, message, runs, runs - lists)
    put_node(words, message, children, 0)
    put_buffer(words, message, valid_at, (runs + 7) >> 3)
    put_buffer(words, message, list_at, 4 * (runs + 1))
    put_no_buffer(words, message)
    put_buffer(words, message, offset_at, 4 * (children + 1))
    put_buffer(words, message, text_at, size)
    return end


@numba.njit
def build_nothing_absent(count: int, memory: Any, at: int, message: Any) -> Any:
    """Build the column of `count` complete images: one run without a list; returns its end.

    The caller has checked that there is room for `NOTHING_ABSENT` bytes.
    """
    words = memory.view(np.int64)
    words[at >> 3] = count
    words[(at >> 3) + 1] = 0
    words[(at >> 3) + 2] = 0
    put_run_ends(words, message, count, 1, at)
    put_node(words, message, 1, 1)
    put_node(words, message, 0, 0)
    put_buffer(words, message, at + 8, 1)
    put_buffer(words, message, at + 16, 8)
    put_no_buffer(words, message)
    put_buffer(words, message, at + 16, 4)
    put_no_buffer(words, message)
    return at + NOTHING_ABSENT


NOTHING_ABSENT = 24
"""Bytes of `build_nothing_absent`: the run's end, the validity of its list, and the offsets, which are 0."""


def absent_names(rows: Rows, names: Sequence[str]) -> list[list[str] | None]:
    """By bitmap number the names of the columns that it lacks; None for number 0, which lacks none."""
    lists: list[list[str] | None] = [None]
    for bitmap in rows.bitmaps:
        present = np.unpackbits(bitmap, bitorder="little")
        lists.append([name for name, bit in zip(names, present, strict=False) if not bit])
    return lists
