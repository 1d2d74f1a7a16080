"""Text that is UTF-8 already (utf8mb4, utf8mb3, ascii): copied and checked.

Cells are checked many at a time: what is valid all together is valid cell by cell, if every cell begins with
a character's first byte.
Bytes that are no UTF-8 become U+FFFD, counted as `invalid_characters`: Arrow strings are always valid.
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
from engine.decode.arrow.buffers import FULL, open_content, refuse_content, texts, variable
from engine.decode.arrow.codec import Counters
from engine.decode.columns.text.utf8_check import is_utf8
from engine.kernels.kernel import Bytes, Int32s
from engine.kernels.memory import PADDING, address_of, copy_padded, little_endian, load_byte
from engine.kernels.typed import CELLS, DATA, OFFSETS, OUT, kernel

_STRETCH = 1 << 13
"""So many bytes of text, of however many cells, are checked at once, while they are in the cache."""


@numba.njit
def _count_invalid(text: int, offsets: Any, first: int, last: int, is_cut: bool) -> Any:
    """How many of the cells from `first` to `last`, that one left out, are not valid.

    `is_cut`: one of them begins inside a character.
    """
    if not is_cut and is_utf8(text, np.int64(offsets[first]), np.int64(offsets[last])):
        return 0
    invalid = 0
    for index in range(first, last):
        invalid += not is_utf8(text, np.int64(offsets[index]), np.int64(offsets[index + 1]))
    return invalid


@kernel(types.UniTuple(types.int64, 3), DATA, CELLS, types.int64, OFFSETS, OUT)
def _copy_text(data: Any, cells: Any, prefix: int, offsets: Any, out: Any) -> Any:
    """Copy each cell's content; `SIZE_AND_NULLS`, and how many cells are not valid UTF-8."""
    batch, text = address_of(data), address_of(out)
    room = out.size - PADDING
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
            if size > room - to:
                return FULL, nulls, invalid
            copy_padded(text, to, batch, cell + prefix, size, data.size)
            # Of an empty cell that is a byte of its length, which is 0.
            is_cut |= load_byte(batch, cell + prefix - (size == 0)) & 0xC0 == 0x80
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
        place, offsets = arena.take_offsets(cells.size)
        content = open_content(arena)
        size, nulls, invalid = _copy_text(data, cells, -self.width, offsets, content)
        if size == FULL:
            refuse_content(data, cells, -self.width, arena)
        if invalid:
            return texts(arena, cells, _repaired(offsets, content, counters))
        return variable(arena, cells, place, size, nulls)


def _repaired(offsets: Int32s, content: Bytes, counters: Counters) -> list[bytes]:
    """The same text with U+FFFD for what is not valid; slow, and rare enough to be."""
    repaired = []
    for start, end in pairwise(offsets.tolist()):
        raw = content[start:end].tobytes()
        text = raw.decode("utf-8", "replace")
        counters.add("invalid_characters", text.count("\ufffd") - raw.count(b"\xef\xbf\xbd"))
        repaired.append(text.encode())
    return repaired
