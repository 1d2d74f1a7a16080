"""Text that is already UTF-8 (utf8mb4, utf8mb3, ascii): copied and checked.

Many short cells are checked at once: if their concatenation is valid and each cell begins with a character's
first byte, each cell is valid. Arrow strings must be valid UTF-8, so invalid bytes become U+FFFD, counted as
`invalid_characters`.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pyarrow as pa

from engine.decode.arrow.arena import Arena, ArrayParts
from engine.decode.arrow.buffers import texts
from engine.decode.arrow.codec import Codec, Counters
from engine.decode.arrow.column_kernel import (
    FULL,
    LEFT,
    aligned,
    column_kernel,
    content_at,
    finish_variable,
    has_room,
    offsets_at,
    refuse_content,
)
from engine.decode.columns.text.utf8_check import copy_utf8, is_utf8
from engine.kernels.kernel import Bytes, Int32s
from engine.kernels.memory import PADDING, address_of, copy_padded, little_endian, load_byte

_STRETCH = 1 << 13
"""Bytes of text, of any number of cells, checked at once while they are in the processor's cache."""

_LONG = 512
"""Bytes of a cell from which it is checked alone, while it is copied: the processor checks bytes while it
waits for others. For shorter cells, the beginning and the end of each check take longer than that saves."""


@numba.njit
def _count_invalid(text: int, offsets: Any, first: int, last: int, is_cut: bool) -> Any:
    """The number of invalid cells from `first` up to, but not including, `last`.

    `is_cut`: whether one of them begins inside a character.
    """
    if not is_cut and is_utf8(text, np.int64(offsets[first]), np.int64(offsets[last])):
        return 0
    invalid = 0
    for index in range(first, last):
        invalid += not is_utf8(text, np.int64(offsets[index]), np.int64(offsets[index + 1]))
    return invalid


@numba.njit
def _copy_text(data: Any, cells: Any, prefix: int, offsets: Any, out: Any) -> Any:
    """Copy each cell's content.

    Returns its size in bytes, or `FULL`; the number of nulls; and that of cells that are not valid UTF-8.
    """
    batch, text = address_of(data), address_of(out)
    capacity = out.size - PADDING
    nulls = 0
    invalid = 0
    to = np.int64(0)
    offsets[0] = 0
    first = 0
    looked_at = np.int64(0)
    is_cut = False
    for index in range(cells.size):
        cell = np.int64(cells[index])
        if cell < 0:
            nulls += 1
        else:
            size = np.int64(little_endian(batch, cell, prefix))
            if size > capacity - to:
                return np.int64(FULL), nulls, invalid
            start = cell + prefix
            if size >= _LONG:
                invalid += _count_invalid(text, offsets, first, index, is_cut)
                invalid += not copy_utf8(text, to, batch, start, start + size)
                first, looked_at = index + 1, to + size
                is_cut = False
            else:
                copy_padded(text, to, batch, start, size, data.size)
                # For an empty cell, this reads a byte of its length, which is 0.
                is_cut |= load_byte(batch, start - (size == 0)) & 0xC0 == 0x80
            to += size
        offsets[index + 1] = to
        if to - looked_at >= _STRETCH or index == cells.size - 1:
            invalid += _count_invalid(text, offsets, first, index + 1, is_cut)
            first, looked_at = index + 1, to
            is_cut = False
    return to, nulls, invalid


@column_kernel
def _texts(
    data: Any, cells: Any, form: Any, constants: Any, memory: Any, at: int, parts: Any, notes: Any
) -> Any:
    """Copy each cell's content, which follows a length of `form[0]` bytes."""
    content = aligned(at + 4 * (cells.size + 1))
    if not has_room(memory, at, content - at, notes):
        return FULL
    offsets = offsets_at(memory, at, cells.size)
    size, nulls, invalid = _copy_text(data, cells, form[0], offsets, content_at(memory, content, notes))
    if size == FULL:
        return refuse_content(data, cells, form[0], notes)
    if invalid:
        return LEFT
    return finish_variable(cells, nulls, memory, at, content, size, parts, notes)


def utf8_codec(width: int) -> Codec:
    """The codec of length-prefixed text in UTF-8; `width` as in `Codec`."""

    def repair(data: Bytes, cells: Int32s, arena: Arena, counters: Counters) -> ArrayParts:
        """Slow, but rarely needed."""
        return texts(arena, cells, [_repaired(data, cell, -width, counters) for cell in cells.tolist()])

    return Codec(pa.string(), width, _texts, (-width,), in_python=repair)


def _repaired(data: Bytes, cell: int, prefix: int, counters: Counters) -> bytes:
    """The text of a cell, with U+FFFD in place of invalid bytes."""
    if cell < 0:
        return b""
    start = cell + prefix
    size = int.from_bytes(data[cell:start].tobytes(), "little")
    raw = data[start : start + size].tobytes()
    text = raw.decode("utf-8", "replace")
    counters.add("invalid_characters", text.count("\ufffd") - raw.count(b"\xef\xbf\xbd"))
    return text.encode()
