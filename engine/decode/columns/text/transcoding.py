"""The shared part of the codecs of all character sets other than UTF-8: one pass into a large enough buffer.

The size of the UTF-8 text is only known once it is written, so the buffer is sized for the worst case; pages
that are never written to take no memory.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from engine.decode.arrow.column_kernel import (
    FULL,
    INVALID_CHARACTERS,
    aligned,
    content_size,
    count_nulls,
    finish_variable,
    has_room,
)
from engine.decode.columns.text.utf8_check import is_ascii
from engine.kernels.memory import copy_padded, store_word

REPLACEMENT = 0xBDBFEF
"""U+FFFD as packed UTF-8."""
LARGEST_CHARACTER = 3
"""The most bytes of UTF-8 per stored byte, in any character set."""


@numba.njit
def text_room(data: Any, cells: Any, prefix: int, memory: Any, at: int, notes: Any) -> Any:
    """Where the texts that follow lengths of `prefix` bytes go, after their offsets, and the most bytes they
    take.

    The place is `FULL` if there is no room for them.
    """
    content = aligned(at + 4 * (cells.size + 1))
    size = LARGEST_CHARACTER * content_size(data, cells, prefix)
    if not has_room(memory, at, content - at + size, notes):
        return np.int64(FULL), size
    return content, size


@numba.njit
def finish_texts(
    cells: Any, size: int, invalid: int, memory: Any, at: int, content: int, parts: Any, notes: Any
) -> Any:
    """Finish the array of texts of `size` bytes, of which `invalid` characters have no Unicode equivalent."""
    notes[INVALID_CHARACTERS] += invalid
    return finish_variable(cells, count_nulls(cells), memory, at, content, size, parts, notes)


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
