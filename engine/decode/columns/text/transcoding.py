"""The shared part of the codecs of all character sets other than UTF-8: one pass into a large enough buffer.

The size of the UTF-8 text is only known once it is written, so the buffer is sized for the worst case; pages
that are never written to take no memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import pyarrow as pa
from numba import types

from engine.decode.arrow.arena import Arena, ArrayParts
from engine.decode.arrow.buffers import content_offsets, count_nulls, variable
from engine.decode.arrow.codec import Counters
from engine.decode.columns.text.utf8_check import is_ascii
from engine.kernels.kernel import Bytes, Int32s
from engine.kernels.memory import copy_padded, store_word

TRANSCODED = types.UniTuple(types.int64, 2)
"""What a transcoding kernel returns: bytes written, and characters that have no Unicode equivalent."""

REPLACEMENT = 0xBDBFEF
"""U+FFFD as packed UTF-8."""


@dataclass(frozen=True, slots=True, eq=False)
class TranscodingCodec:
    """Length-prefixed text in any character set.

    `transcode(data, cells, prefix, offsets, out)` fills offsets and content, and returns `TRANSCODED`.
    """

    arrow_type: pa.DataType
    width: int
    transcode: Callable[..., tuple[int, int]]
    growth: int
    """The most bytes of UTF-8 per stored byte."""

    def build(self, data: Bytes, cells: Int32s, arena: Arena, counters: Counters) -> ArrayParts:
        """See `Codec.build`."""
        offset_buffer, offsets = arena.allocate_offsets(cells.size)
        stored = content_offsets(data, cells, -self.width, offsets)
        content = arena.reserve(stored * self.growth)
        size, invalid = self.transcode(data, cells, -self.width, offsets, content)
        counters.add("invalid_characters", invalid)
        return variable(arena, cells, offset_buffer, size, count_nulls(cells))


@numba.njit(inline="always")
def copy_ascii(text: int, to: int, batch: int, start: int, size: int, batch_size: int) -> Any:
    """Copy `size` bytes, as `copy_padded` does; return whether all of them are ASCII."""
    copy_padded(text, to, batch, start, size, batch_size)
    return is_ascii(text, to, to + size)


def packed_utf8(character: str) -> int:
    """A character's UTF-8 as a little-endian number, which can be stored as a word."""
    return int.from_bytes(character.encode(), "little")


@numba.njit(inline="always")
def write_packed(text: int, to: int, packed: Any) -> Any:
    """Write a character's packed UTF-8 (uint64); return the end offset."""
    store_word(text, to, packed)
    return to + 1 + (packed > 0xFF) + (packed > 0xFFFF) + (packed > 0xFFFFFF)


@numba.njit
def write_code_point(text: int, to: int, code_point: int) -> Any:
    """Write a code point (int64) that is not a surrogate as UTF-8; return the end offset."""
    if code_point < 0x80:
        store_word(text, to, np.uint64(code_point))
        return to + 1
    last = 0x80 | code_point & 0x3F
    if code_point < 0x800:
        store_word(text, to, np.uint64(0xC0 | code_point >> 6 | last << 8))
        return to + 2
    third = 0x80 | code_point >> 6 & 0x3F
    if code_point < 0x10000:
        store_word(text, to, np.uint64(0xE0 | code_point >> 12 | third << 8 | last << 16))
        return to + 3
    second = 0x80 | code_point >> 12 & 0x3F
    store_word(text, to, np.uint64(0xF0 | code_point >> 18 | second << 8 | third << 16 | last << 24))
    return to + 4
