"""Column kernels: compiled functions that build the Arrow array of one column in the memory of an arena.

All of them have the signature `COLUMN`, so that the kernel that builds whole tables can call any of them by
its address (`engine.decode.tables.table_kernel`): no Python runs between the columns of a batch. Cells are at
least as wide as their codec says and lie inside the batch (the row walk has checked this), so a kernel may
read up to eight bytes that end where a cell's bytes end, wherever the batch has eight bytes before that
offset.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import types

from engine.kernels.kernel import Int64s
from engine.kernels.memory import PADDING, address_of, copy_padded, little_endian
from engine.kernels.typed import CELLS, DATA, OUT, Kernel

NUMBERS = types.Array(types.int64, 1, "C", readonly=True)

COLUMN = types.int64(DATA, CELLS, NUMBERS, DATA, OUT, types.int64, types.int64[::1], types.int64[::1])
"""`(data, cells, form, constants, memory, at, parts, notes) -> end`.

`data` is the batch and `cells` the column's, as in `Codec`; `form` and `constants` are the codec's. The
array's buffers go into `memory` from `at` on, each at a multiple of `ALIGNMENT`, the first of them at `at`;
the result is the end of the last one, or one of the statuses below. `parts` receives for each node of the
array, parents first, its length and its number of nulls, then for each buffer its offset in `memory` and its
size, 0 and 0 if there is none. `notes` is a vector of the numbers below.
"""

FULL, TOO_LARGE, BROKEN, LEFT = -1, -2, -3, -4
"""There is no room for `notes[SIZE]` bytes; a buffer of `notes[SIZE]` bytes is more than an array can have;
the cell at `notes[PLACE]` of `data` is broken; some cells are left to Python (`Codec.in_python`)."""

SIZE, PLACE, LARGEST, ZERO_DATES, INVALID_CHARACTERS, UNNAMED_MEMBERS, NOTES = range(7)
"""The numbers in `notes`, and how many they are. `LARGEST` is the most bytes of content that an array can
have; what is counted is added to the last ones."""
COUNTERS = {
    "zero_dates": ZERO_DATES,
    "invalid_characters": INVALID_CHARACTERS,
    "unnamed_members": UNNAMED_MEMBERS,
}
"""By the names of `engine.decode.arrow.codec.Counters`."""

MOST_PARTS = 32
"""The most numbers in `parts`; the array with the most parts, of a GEOMETRY, has 18."""
LARGEST_CONTENT = 2**31 - 1
"""The most bytes that Arrow's 32-bit offsets can address."""


def new_notes() -> Int64s:
    """A vector of notes for a kernel, in which nothing is counted."""
    notes = np.zeros(NOTES, np.int64)
    notes[LARGEST] = LARGEST_CONTENT
    return notes


def column_kernel(function: Callable[..., Any]) -> Kernel:
    """Decorator: a column kernel."""
    return Kernel(function, COLUMN)


@numba.njit(inline="always")
def aligned(offset: int) -> Any:
    """The first multiple of `ALIGNMENT` that is not below `offset`."""
    return (offset + 7) & ~7


@numba.njit(inline="always")
def has_room(memory: Any, at: int, size: int, notes: Any) -> Any:
    """Whether `size` bytes and the `PADDING` after them fit; `size` is noted."""
    notes[SIZE] = size
    return at + size + PADDING <= memory.size


@numba.njit(inline="always")
def buffer_at(memory: Any, at: int, size: int) -> Any:
    """The memory of a buffer of `size` bytes for which there is room, and the padding after it."""
    return memory[at : at + size + PADDING]


@numba.njit(inline="always")
def offsets_at(memory: Any, at: int, count: int) -> Any:
    """The memory of the offsets of `count` variable values, for which there is room."""
    return memory[at : at + 4 * (count + 1)].view(np.int32)


@numba.njit(inline="always")
def content_at(memory: Any, at: int, notes: Any) -> Any:
    """All the memory from `at` on, but no more than an array's content can have, and the padding after it."""
    return memory[at : min(memory.size, at + notes[LARGEST] + PADDING)]


@numba.njit
def put_validity(cells: Any, nulls: int, memory: Any, at: int, parts: Any, place: int, notes: Any) -> Any:
    """Build the validity bitmap of an array with `nulls` nulls, if there are any; `parts[place]` describes
    it.

    Returns its end, or `FULL`.
    """
    parts[place] = 0
    parts[place + 1] = 0
    if nulls == 0:
        return at
    count = cells.size
    size = (count + 7) >> 3
    if not has_room(memory, at, size, notes):
        return FULL
    for byte in range(size):
        bits = 0
        for bit in range(min(8, count - 8 * byte)):
            bits |= (cells[8 * byte + bit] >= 0) << bit
        memory[at + byte] = bits
    parts[place] = at
    parts[place + 1] = size
    return aligned(at + size)


@numba.njit
def finish_fixed(cells: Any, nulls: int, memory: Any, values: int, size: int, parts: Any, notes: Any) -> Any:
    """Finish an array whose values take the `size` bytes at `values`; returns what a column kernel does."""
    parts[0] = cells.size
    parts[1] = nulls
    parts[4] = values
    parts[5] = size
    return put_validity(cells, nulls, memory, aligned(values + size), parts, 2, notes)


@numba.njit
def finish_variable(
    cells: Any, nulls: int, memory: Any, offsets: int, content: int, size: int, parts: Any, notes: Any
) -> Any:
    """Finish an array of strings or bytes; returns what a column kernel does.

    `offsets` and `content` say where the two buffers are, `size` is that of the content.
    """
    if size > notes[LARGEST]:
        notes[SIZE] = size
        return TOO_LARGE
    parts[0] = cells.size
    parts[1] = nulls
    parts[4] = offsets
    parts[5] = 4 * (cells.size + 1)
    parts[6] = content
    parts[7] = size
    return put_validity(cells, nulls, memory, aligned(content + size), parts, 2, notes)


@numba.njit
def count_nulls(cells: Any) -> Any:
    """How many cells have no value."""
    nulls = 0
    for index in range(cells.size):
        nulls += cells[index] < 0
    return nulls


@numba.njit
def content_size(data: Any, cells: Any, prefix: int) -> Any:
    """The sum of all lengths, which are prefixes of `prefix` bytes."""
    batch = address_of(data)
    total = np.int64(0)
    for index in range(cells.size):
        cell = np.int64(cells[index])
        if cell >= 0:
            total += np.int64(little_endian(batch, cell, prefix))
    return total


@numba.njit
def refuse_content(data: Any, cells: Any, prefix: int, notes: Any) -> Any:
    """The status for content that did not fit: `TOO_LARGE` if no array holds it, else `FULL`."""
    notes[SIZE] = content_size(data, cells, prefix)
    return TOO_LARGE if notes[SIZE] > notes[LARGEST] else FULL


@numba.njit
def copy_content(data: Any, cells: Any, prefix: int, skipped: int, offsets: Any, out: Any) -> Any:
    """Copy each cell's content without its first `skipped` bytes.

    Returns the content's size in bytes, or `FULL`, and the number of nulls.
    """
    batch, content = address_of(data), address_of(out)
    capacity = out.size - PADDING
    nulls = 0
    to = np.int64(0)
    offsets[0] = 0
    for index in range(cells.size):
        cell = np.int64(cells[index])
        if cell < 0:
            nulls += 1
        else:
            length = np.int64(little_endian(batch, cell, prefix))
            before = min(np.int64(skipped), length)
            size = length - before
            if size > capacity - to:
                return np.int64(FULL), nulls
            copy_padded(content, to, batch, cell + prefix + before, size, data.size)
            to += size
        offsets[index + 1] = to
    return to, nulls
