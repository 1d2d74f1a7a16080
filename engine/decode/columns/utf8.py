"""Text that is UTF-8 already (utf8mb4, utf8mb3, ascii): checked and copied.

A cell of plain ASCII costs a copy and a test of each word's high bits; only others are checked byte by byte.
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
from numpy.typing import NDArray

from engine.decode.columns.base import Counters
from engine.decode.columns.kernels import (
    CELLS,
    DATA,
    FULL,
    OFFSETS,
    OUT,
    address_of,
    copy,
    kernel,
    little_endian,
    load_byte,
    load_word,
    open_content,
    refuse_content,
    store_word,
    texts,
    variable,
)
from engine.decode.room import PADDING, ArrayParts, Room
from engine.kernels import Bytes, Int32s

_HIGH_BITS = 0x8080808080808080

_HIGH_BITS_OF = np.array([_HIGH_BITS & ((1 << 8 * min(max(n - 8, 0), 8)) - 1) for n in range(25)], np.uint64)
"""For a size plus 8: the high bits of that many bytes of a word; none below 8, all from 16 on."""

_WORTH_A_CALL = 256
"""Bytes from which on memcpy is faster than a loop over words."""

_START, _BROKEN, _ONE_MORE, _TWO_MORE, _THREE_MORE, _AFTER_E0, _AFTER_ED, _AFTER_F0, _AFTER_F4 = (
    6 * state for state in range(9)
)
"""How far a character has come: states of an automaton, each a number of bits to shift a word by."""

_TRANSITIONS = (
    (_START, 0x00, 0x7F, _START),
    (_START, 0xC2, 0xDF, _ONE_MORE),
    (_START, 0xE0, 0xE0, _AFTER_E0),
    (_START, 0xE1, 0xEC, _TWO_MORE),
    (_START, 0xED, 0xED, _AFTER_ED),
    (_START, 0xEE, 0xEF, _TWO_MORE),
    (_START, 0xF0, 0xF0, _AFTER_F0),
    (_START, 0xF1, 0xF3, _THREE_MORE),
    (_START, 0xF4, 0xF4, _AFTER_F4),
    (_ONE_MORE, 0x80, 0xBF, _START),
    (_TWO_MORE, 0x80, 0xBF, _ONE_MORE),
    (_THREE_MORE, 0x80, 0xBF, _TWO_MORE),
    (_AFTER_E0, 0xA0, 0xBF, _ONE_MORE),
    (_AFTER_ED, 0x80, 0x9F, _ONE_MORE),
    (_AFTER_F0, 0x90, 0xBF, _TWO_MORE),
    (_AFTER_F4, 0x80, 0x8F, _TWO_MORE),
)
"""From which state, over which bytes, to which state; any other byte breaks it (Unicode, table 3-7)."""


def _automaton() -> NDArray[np.uint64]:
    """A word per byte; shifted right by a state, its lowest six bits are the next state."""
    words = [sum(_BROKEN << state for state in range(0, 54, 6))] * 256
    for state, first, last, following in _TRANSITIONS:
        for byte in range(first, last + 1):
            words[byte] += (following - _BROKEN) << state
    return np.array(words, np.uint64)


_AUTOMATON = _automaton()


@numba.njit(inline="always")
def _four_words(text: int, at: int) -> Any:
    """What bits are set in the words of 32 bytes."""
    first = load_word(text, at) | load_word(text, at + 8)
    return first | load_word(text, at + 16) | load_word(text, at + 24)


@numba.njit
def is_utf8(text: int, start: int, end: int) -> Any:
    """Whether the bytes are valid UTF-8."""
    state = np.uint64(_START)
    at = start
    while at + 8 <= end:
        if state == _START:
            # Most text is ASCII for the most part: four words a step.
            while at + 32 <= end and _four_words(text, at) & np.uint64(_HIGH_BITS) == 0:
                at += 32
            while at + 8 <= end and load_word(text, at) & np.uint64(_HIGH_BITS) == 0:
                at += 8
            if at + 8 > end:
                break
        for place in range(8):
            state = (_AUTOMATON[load_byte(text, at + place)] >> state) & np.uint64(63)
        at += 8
    while at < end:
        state = (_AUTOMATON[load_byte(text, at)] >> state) & np.uint64(63)
        at += 1
    return state == _START


@numba.njit
def is_ascii(text: int, start: int, end: int) -> Any:
    """Whether all bytes are below 0x80."""
    high = np.uint64(0)
    at = start
    while at + 8 <= end:
        high |= load_word(text, at)
        at += 8
    while at < end:
        high |= np.uint64(load_byte(text, at))
        at += 1
    return high & np.uint64(_HIGH_BITS) == 0


@numba.njit(inline="always")
def copy_ascii(text: int, to: int, batch: int, start: int, size: int, batch_size: int) -> Any:
    """Copy `size` bytes, and some more into the padding of `text`; whether all are below 0x80."""
    if start + size + PADDING > batch_size or size > _WORTH_A_CALL:
        copy(text, to, batch, start, size)
        return is_ascii(text, to, to + size)
    if size <= PADDING:
        first, second = load_word(batch, start), load_word(batch, start + 8)
        store_word(text, to, first)
        store_word(text, to + 8, second)
        return first & _HIGH_BITS_OF[size + 8] | second & _HIGH_BITS_OF[size] == 0
    high = np.uint64(0)
    at = 0
    while at + 8 <= size:
        word = load_word(batch, start + at)
        store_word(text, to + at, word)
        high |= word
        at += 8
    word = load_word(batch, start + at)
    store_word(text, to + at, word)
    return high & np.uint64(_HIGH_BITS) | word & _HIGH_BITS_OF[size - at + 8] == 0


@kernel(types.UniTuple(types.int64, 3), DATA, CELLS, types.int64, OFFSETS, OUT)
def _copy_text(data: Any, cells: Any, prefix: int, offsets: Any, out: Any) -> Any:
    """Copy each cell's content; `SIZE_AND_NULLS`, and how many cells are not valid UTF-8."""
    batch, text = address_of(data), address_of(out)
    room = out.size - PADDING
    nulls = 0
    invalid = 0
    to = np.int64(0)
    offsets[0] = 0
    for index in range(cells.size):
        cell = np.int64(cells[index])
        if cell < 0:
            nulls += 1
        else:
            size = np.int64(little_endian(batch, cell, prefix))
            if size > room - to:
                return FULL, nulls, invalid
            if not copy_ascii(text, to, batch, cell + prefix, size, data.size):
                invalid += not is_utf8(text, to, to + size)
            to += size
        offsets[index + 1] = to
    return to, nulls, invalid


@dataclass(frozen=True, slots=True)
class Utf8Codec:
    """Length-prefixed text in UTF-8."""

    arrow_type: pa.DataType
    width: int

    def build(self, data: Bytes, cells: Int32s, room: Room, counters: Counters) -> ArrayParts:
        """See `Codec.build`."""
        place, offsets = room.take_offsets(cells.size)
        content = open_content(room)
        size, nulls, invalid = _copy_text(data, cells, -self.width, offsets, content)
        if size == FULL:
            refuse_content(data, cells, -self.width, room)
        if invalid:
            return texts(room, cells, _repaired(offsets, content, counters))
        return variable(room, cells, place, size, nulls)


def _repaired(offsets: Int32s, content: Bytes, counters: Counters) -> list[bytes]:
    """The same text with U+FFFD for what is not valid; slow, and rare enough to be."""
    repaired = []
    for start, end in pairwise(offsets.tolist()):
        raw = content[start:end].tobytes()
        text = raw.decode("utf-8", "replace")
        counters.add("invalid_characters", text.count("\ufffd") - raw.count(b"\xef\xbf\xbd"))
        repaired.append(text.encode())
    return repaired
