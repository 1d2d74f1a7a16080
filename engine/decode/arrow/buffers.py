"""The buffers of Arrow arrays that the kernels of all column families build: validity, offsets, content.

A kernel is compiled for exactly one signature, when it is first needed, and cached on disk: a machine
compiles it once, and a process loads only the families that its tables use. Cells are at least as wide as
their codec says and lie inside the batch (the row walk has checked this), so a kernel may read up to eight
bytes that end where a cell's bytes end, wherever the batch has eight bytes before that offset.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
from numba import types

from engine.decode.arrow.arena import NO_BUFFER, Arena, ArenaFull, ArrayParts
from engine.errors import EngineError
from engine.kernels.kernel import Bytes, Int32s
from engine.kernels.memory import PADDING, address_of, copy_padded, little_endian
from engine.kernels.typed import CELLS, DATA, OFFSETS, OUT, kernel

# Helpers take the address of an array instead of the array: numba counts references to arrays at every call
# that it does not inline, which would take longer than most of these helpers.


@kernel(types.void, CELLS, OUT)
def _fill_validity(cells: Any, bitmap: Any) -> None:
    size = cells.size
    for byte in range((size + 7) >> 3):
        bits = 0
        for bit in range(min(8, size - 8 * byte)):
            bits |= (cells[8 * byte + bit] >= 0) << bit
        bitmap[byte] = bits


def validity(arena: Arena, cells: Int32s, nulls: int) -> tuple[int, int]:
    """The validity bitmap of an array with `nulls` nulls: a bit per cell, set if the cell has a value."""
    if not nulls:
        return NO_BUFFER
    size = (cells.size + 7) // 8
    _fill_validity(cells, arena.reserve(size))
    return arena.keep(size)


def fixed(arena: Arena, cells: Int32s, size: int, nulls: int) -> ArrayParts:
    """An array of fixed-size values (of `size` bytes each), which the arena reserved last."""
    values = arena.keep(cells.size * size)
    return ArrayParts((cells.size, nulls), (*validity(arena, cells, nulls), *values))


def variable(arena: Arena, cells: Int32s, offsets: tuple[int, int], size: int, nulls: int) -> ArrayParts:
    """A string or binary array: `offsets` is a finished buffer; the arena reserved the content last.

    `size` is the content's size in bytes. Raises `EngineError` for more content than an Arrow array holds.
    """
    check_content_size(size)
    content = arena.keep(size)
    return ArrayParts((cells.size, nulls), (*validity(arena, cells, nulls), *offsets, *content))


def texts(arena: Arena, cells: Int32s, values: Sequence[bytes]) -> ArrayParts:
    """A string or binary array of the given values, one per cell."""
    content = b"".join(values)
    check_content_size(len(content))
    offset_buffer, offsets = arena.allocate_offsets(cells.size)
    offsets[0] = 0
    offsets[1:] = np.cumsum([len(value) for value in values])
    arena.reserve(len(content))[: len(content)] = np.frombuffer(content, np.uint8)
    return variable(arena, cells, offset_buffer, len(content), count_nulls(cells))


@kernel(types.int64, CELLS)
def count_nulls(cells: Any) -> Any:
    """How many cells have no value."""
    nulls = 0
    for index in range(cells.size):
        nulls += cells[index] < 0
    return nulls


@kernel(types.int64, DATA, CELLS, types.int64, OFFSETS)
def content_offsets(data: Any, cells: Any, prefix: int, offsets: Any) -> Any:
    """Fill `offsets` from the length prefixes (of `prefix` bytes); return the sum of all lengths."""
    batch = address_of(data)
    total = np.int64(0)
    offsets[0] = 0
    for index in range(cells.size):
        cell = np.int64(cells[index])
        if cell >= 0:
            total += np.int64(little_endian(batch, cell, prefix))
        offsets[index + 1] = total
    return total


SIZE_AND_NULLS = types.UniTuple(types.int64, 2)
"""What a kernel that concatenates content returns: the content's size in bytes and the number of nulls."""
FULL = -1
"""Returned instead of the size if the content does not fit."""


@kernel(SIZE_AND_NULLS, DATA, CELLS, types.int64, types.int64, OFFSETS, OUT)
def copy_content(data: Any, cells: Any, prefix: int, skipped: int, offsets: Any, out: Any) -> Any:
    """Copy each cell's content without its first `skipped` bytes; returns `SIZE_AND_NULLS`."""
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
            size = max(np.int64(0), np.int64(little_endian(batch, cell, prefix)) - skipped)
            if size > capacity - to:
                return FULL, nulls
            copy_padded(content, to, batch, cell + prefix + skipped, size, data.size)
            to += size
        offsets[index + 1] = to
    return to, nulls


def refuse_content(data: Bytes, cells: Int32s, prefix: int, arena: Arena) -> NoReturn:
    """Raise the error for content that does not fit: `EngineError` if no array holds it, else `ArenaFull`."""
    size = content_offsets(data, cells, prefix, np.empty(cells.size + 1, np.int32))
    check_content_size(size)
    raise ArenaFull(size)


LARGEST_CONTENT = 2**31 - 1
"""The most bytes that Arrow's 32-bit offsets can address."""


def check_content_size(size: int) -> None:
    """Raise `EngineError` for more bytes of content than an Arrow array holds."""
    if size > LARGEST_CONTENT:
        raise EngineError(
            f"its values in one batch take {size} bytes, but an Arrow array holds at most "
            f"{LARGEST_CONTENT}: exclude the table with --exclude-tables"
        )


def reserve_content(arena: Arena) -> Bytes:
    """All the arena's remaining memory, up to the most bytes that an array can hold."""
    return arena.reserve_rest(LARGEST_CONTENT)
