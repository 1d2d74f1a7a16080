"""Checks whether bytes are valid UTF-8: 32 bytes per step, and the few bytes at both ends with an automaton.

A step compares each byte with the three before it, which determine whether it must continue a character
(Unicode, table 3-7). It consists of LLVM vector operations, which LLVM compiles for each processor.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from engine.kernels.memory import VECTOR, VECTOR_SIZE, load_byte, load_vector, load_word

_HIGH_BITS = 0x8080808080808080

_START, _BROKEN, _ONE_MORE, _TWO_MORE, _THREE_MORE, _AFTER_E0, _AFTER_ED, _AFTER_F0, _AFTER_F4 = (
    6 * state for state in range(9)
)
"""The states of the automaton inside a character; each is the number of bits by which a word is shifted."""

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
"""State, first and last byte, next state; any other byte leads to `_BROKEN` (Unicode, table 3-7)."""


def _automaton() -> NDArray[np.uint64]:
    """A word per byte value; shifted right by a state, its lowest six bits are the next state."""
    words = [sum(_BROKEN << state for state in range(0, 54, 6))] * 256
    for state, first, last, following in _TRANSITIONS:
        for byte in range(first, last + 1):
            words[byte] += (following - _BROKEN) << state
    return np.array(words, np.uint64)


_AUTOMATON = _automaton()


def _breaks(builder: Any, byte: Any, first: Any, second: Any, third: Any) -> Any:
    """Generate code that marks the bytes that break UTF-8, given those one, two and three bytes before."""

    def constant(value: int) -> Any:
        return ir.Constant(VECTOR, [value] * VECTOR_SIZE)

    def compared(operator: str, vector: Any, value: int) -> Any:
        return builder.icmp_unsigned(operator, vector, constant(value))

    def after(lead: int, operator: str, value: int) -> Any:
        return builder.and_(compared("==", first, lead), compared(operator, byte, value))

    continues = compared("==", builder.and_(byte, constant(0xC0)), 0x80)
    has_to = builder.or_(compared(">=", first, 0xC0), compared(">=", second, 0xE0))
    has_to = builder.or_(has_to, compared(">=", third, 0xF0))
    broken = builder.xor(continues, has_to)
    for more in (
        compared("==", builder.and_(byte, constant(0xFE)), 0xC0),
        compared(">=", byte, 0xF5),
        after(0xE0, "<", 0xA0),
        after(0xED, ">=", 0xA0),
        after(0xF0, "<", 0x90),
        after(0xF4, ">=", 0x90),
    ):
        broken = builder.or_(broken, more)
    return broken


@intrinsic
def _has_break(typing_context: Any, text: Any, at: Any) -> Any:
    """Whether one of the 32 bytes at offset `at` of `text` breaks UTF-8, given the three before them."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        text, at = arguments
        vectors = [load_vector(context, builder, text, builder.sub(at, at.type(back))) for back in range(4)]
        return _any(builder, _breaks(builder, *vectors))

    return types.boolean(types.int64, types.int64), generate


@intrinsic
def _beyond_ascii(typing_context: Any, text: Any, at: Any) -> Any:
    """Whether one of the 32 bytes at offset `at` of `text` is not ASCII."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector = load_vector(context, builder, *arguments)
        return _any(builder, builder.icmp_signed("<", vector, ir.Constant(VECTOR, [0] * VECTOR_SIZE)))

    return types.boolean(types.int64, types.int64), generate


def _any(builder: Any, conditions: Any) -> Any:
    """Generate code that computes whether one of a vector of conditions is true."""
    bits = builder.bitcast(conditions, ir.IntType(VECTOR_SIZE))
    return builder.icmp_unsigned("!=", bits, bits.type(0))


@numba.njit(inline="always")
def _next_state(state: Any, text: int, at: int) -> Any:
    return (_AUTOMATON[load_byte(text, at)] >> state) & np.uint64(63)


@numba.njit
def is_utf8(text: int, start: int, end: int) -> Any:
    """Whether the bytes are valid UTF-8."""
    state = np.uint64(_START)
    at = start
    while at < end and (at < start + 3 or (state != _START and state != _BROKEN)):
        state = _next_state(state, text, at)
        at += 1
    if state != _START:
        return False
    was_beyond = False
    while at + VECTOR_SIZE <= end:
        beyond = _beyond_ascii(text, at)
        # No character continues after 32 bytes of ASCII.
        if (beyond or was_beyond) and _has_break(text, at):
            return False
        was_beyond = beyond
        at += VECTOR_SIZE
    if was_beyond:
        # The last character may continue after these 32 bytes, so it is checked again from its first byte.
        for back in range(1, 4):
            byte = load_byte(text, at - back)
            if byte >= 0xC0:
                at -= back
            if byte >= 0xC0 or byte < 0x80:
                break
    while at < end:
        state = _next_state(state, text, at)
        at += 1
    return state == _START


@numba.njit
def is_ascii(text: int, start: int, end: int) -> Any:
    """Whether all bytes are below 0x80."""
    at = start
    while at + VECTOR_SIZE <= end:
        if _beyond_ascii(text, at):
            return False
        at += VECTOR_SIZE
    high = np.uint64(0)
    while at + 8 <= end:
        high |= load_word(text, at)
        at += 8
    while at < end:
        high |= np.uint64(load_byte(text, at))
        at += 1
    return high & np.uint64(_HIGH_BITS) == 0
