"""Text that is UTF-8 already (utf8mb4, utf8mb3, ascii): checked and copied.

A cell of plain ASCII costs a copy and a test of each word's high bits; only others are checked byte by byte.
Bytes that are no UTF-8 become U+FFFD, counted as `invalid_characters`: Arrow strings are always valid.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import pyarrow as pa
from numba import types
from numpy.typing import NDArray

from engine.decode.columns.base import Counters
from engine.decode.columns.kernels import (
    CELLS,
    DATA,
    OFFSETS,
    OUT,
    PADDING,
    content_buffer,
    content_offsets,
    copy,
    count_nulls,
    kernel,
    load_word,
    store_word,
    variable,
)

_HIGH_BITS = 0x8080808080808080


@numba.njit
def _is_continuation(byte: Any) -> Any:
    return byte & 0xC0 == 0x80


@numba.njit
def character_size(text: Any, at: int, end: int) -> Any:
    """Bytes (1 to 4) of the UTF-8 character at `at`, 0 where no valid one stands there before `end`."""
    lead = text[at]
    if lead < 0x80:
        return 1
    left = end - at
    if lead < 0xC2 or left < 2 or not _is_continuation(text[at + 1]):
        return 0
    second = text[at + 1]
    if lead < 0xE0:
        return 2
    if left < 3 or not _is_continuation(text[at + 2]):
        return 0
    if lead < 0xF0:
        overlong = lead == 0xE0 and second < 0xA0
        surrogate = lead == 0xED and second >= 0xA0
        return 0 if overlong or surrogate else 3
    if left < 4 or not _is_continuation(text[at + 3]):
        return 0
    if lead == 0xF0:
        return 4 if second >= 0x90 else 0
    if lead == 0xF4:
        return 4 if second < 0x90 else 0
    return 4 if lead < 0xF4 else 0


@numba.njit
def is_ascii(text: Any, start: int, end: int) -> Any:
    """Whether all bytes are below 0x80."""
    high = np.uint64(0)
    at = start
    while at + 8 <= end:
        high |= load_word(text, at)
        at += 8
    while at < end:
        high |= np.uint64(text[at])
        at += 1
    return high & np.uint64(_HIGH_BITS) == 0


@numba.njit
def is_utf8(text: Any, start: int, end: int) -> Any:
    """Whether the bytes are valid UTF-8."""
    at = start
    while at < end:
        if at + 8 <= end and load_word(text, at) & np.uint64(_HIGH_BITS) == 0:
            at += 8
            continue
        size = character_size(text, at, end)
        if size == 0:
            return False
        at += size
    return True


@kernel(types.int64, DATA, CELLS, types.int64, OFFSETS, OUT)
def _copy_text(data: Any, cells: Any, prefix: int, offsets: Any, out: Any) -> Any:
    """Copy each cell's content to its place; how many cells are not valid UTF-8."""
    invalid = 0
    reach = data.size - PADDING
    for index in range(cells.size):
        start = np.int64(cells[index]) + prefix
        if start < prefix:
            continue
        to = np.int64(offsets[index])
        size = np.int64(offsets[index + 1]) - to
        if size <= PADDING and start <= reach:
            first, second = load_word(data, start), load_word(data, start + 8)
            store_word(out, to, first)
            store_word(out, to + 8, second)
            # Shifting by half the distance twice never shifts by a whole word, which would be undefined.
            if size <= 8:
                first = first << np.uint64(4 * (8 - size)) << np.uint64(4 * (8 - size))
                second = np.uint64(0)
            else:
                second = second << np.uint64(4 * (16 - size)) << np.uint64(4 * (16 - size))
            if (first | second) & np.uint64(_HIGH_BITS) == 0:
                continue
        else:
            copy(out, to, data, start, size)
            if is_ascii(out, to, to + size):
                continue
        invalid += not is_utf8(out, to, to + size)
    return invalid


@dataclass(frozen=True, slots=True)
class Utf8Codec:
    """Length-prefixed text in UTF-8."""

    arrow_type: pa.DataType
    width: int

    def build(self, data: NDArray[np.uint8], cells: NDArray[np.int32], counters: Counters) -> pa.Array:
        """See `Codec.build`."""
        prefix = -self.width
        offsets = np.empty(cells.size + 1, np.int32)
        content = content_buffer(content_offsets(data, cells, prefix, offsets))
        if _copy_text(data, cells, prefix, offsets, content):
            return _repair(offsets, content, cells, counters)
        return variable(self.arrow_type, cells, offsets, content, count_nulls(cells))


def _repair(
    offsets: NDArray[np.int32], content: NDArray[np.uint8], cells: NDArray[np.int32], counters: Counters
) -> pa.Array:
    """The same text with U+FFFD for what is not valid; slow, and rare enough to be."""
    texts: list[str | None] = []
    for index, cell in enumerate(cells.tolist()):
        raw = content[offsets[index] : offsets[index + 1]].tobytes()
        texts.append(raw.decode("utf-8", "replace") if cell >= 0 else None)
        counters.add("invalid_characters", (texts[-1] or "").count("\ufffd") - raw.count(b"\xef\xbf\xbd"))
    return pa.array(texts, pa.string())
