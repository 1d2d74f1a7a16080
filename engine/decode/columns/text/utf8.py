"""Text that is already UTF-8 (utf8mb4, utf8mb3, ascii): copied and checked.

Many short cells are checked at once: if their concatenation is valid and each cell begins with a character's
first byte, each cell is valid. Arrow strings must be valid UTF-8, so invalid bytes become U+FFFD, counted as
`invalid_characters`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numba
import numpy as np
import pyarrow as pa
from numba import types

from engine.decode.arrow.arena import Arena, ArrayParts
from engine.decode.arrow.buffers import FULL, refuse_content, reserve_content, texts, variable
from engine.decode.arrow.codec import Counters
from engine.decode.columns.text.utf8_check import copy_utf8, is_utf8
from engine.kernels.kernel import Bytes, Int32s
from engine.kernels.memory import PADDING, address_of, copy_padded, little_endian, load_byte
from engine.kernels.typed import CELLS, DATA, OFFSETS, OUT, kernel

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


@kernel(types.UniTuple(types.int64, 3), DATA, CELLS, types.int64, OFFSETS, OUT)
def _copy_text(data: Any, cells: Any, prefix: int, offsets: Any, out: Any) -> Any:
    """Copy each cell's content; returns `SIZE_AND_NULLS` and the number of cells that are not valid UTF-8."""
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
                return FULL, nulls, invalid
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


@dataclass(frozen=True, slots=True)
class Utf8Codec:
    """Length-prefixed text in UTF-8."""

    arrow_type: pa.DataType
    width: int

    def build(self, data: Bytes, cells: Int32s, arena: Arena, counters: Counters) -> ArrayParts:
        """See `Codec.build`."""
        offset_buffer, offsets = arena.allocate_offsets(cells.size)
        content = reserve_content(arena)
        size, nulls, invalid = _copy_text(data, cells, -self.width, offsets, content)
        if size == FULL:
            refuse_content(data, cells, -self.width, arena)
        if invalid:
            return texts(arena, cells, _repaired(offsets, content, counters))
        return variable(arena, cells, offset_buffer, size, nulls)


def _repaired(offsets: Int32s, content: Bytes, counters: Counters) -> list[bytes]:
    """The same text with U+FFFD in place of invalid bytes; slow, but rarely needed."""
    repaired = []
    for start, end in pairwise(offsets.tolist()):
        raw = content[start:end].tobytes()
        text = raw.decode("utf-8", "replace")
        counters.add("invalid_characters", text.count("\ufffd") - raw.count(b"\xef\xbf\xbd"))
        repaired.append(text.encode())
    return repaired
