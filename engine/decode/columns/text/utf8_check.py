"""Checks whether bytes are valid UTF-8: 32 bytes per step, and the first three bytes with an automaton.

A step compares each byte with the three before it, which determine whether it must continue a character
(Unicode, table 3-7). It consists of vector operations that LLVM compiles for each processor; where the
processor can look up bytes in tables, of half as many. The last step ends where the text does.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from engine.kernels.memory import VECTOR, VECTOR_SIZE, copy_vector, load_byte, load_vector, load_word

STEPPED = 3 + VECTOR_SIZE
"""Bytes of text from which it is checked in steps; the first three bytes have no three before them."""

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


_ANY, _CONTINUES = "0123456789ABCDEF", "89AB"

_FAULTS = (
    ("CDEF", _ANY, "01234567CDEF"),  # a character is cut off
    ("01234567", _ANY, _CONTINUES),  # none has begun
    ("C", "01", _CONTINUES),
    ("E", "0", "89"),
    ("E", "D", "AB"),
    ("F", "056789ABCDEF", "8"),
    ("F", "456789ABCDEF", "9AB"),
    (_CONTINUES, _ANY, _CONTINUES),  # right or wrong: that depends on what comes before
)
"""Pairs of bytes that break UTF-8 (eight kinds, a bit for each): the upper halves of the first byte, its
lower halves, and the upper halves of the second byte."""


def _breaks_by_tables(builder: Any, byte: Any, first: Any, second: Any, third: Any) -> Any:
    """`_breaks` for processors that look up each byte of a vector in a table of 16: half of the operations.

    Each half byte is looked up in a table of the faults that it may be a part of ("Validating UTF-8 In Less
    Than One Instruction Per Byte", Keiser and Lemire 2021).
    """
    vector = byte.type
    look_up = builder.module.declare_intrinsic(
        "llvm.x86.avx2.pshuf.b", (), ir.FunctionType(vector, [vector, vector])
    )
    subtract = builder.module.declare_intrinsic(
        f"llvm.usub.sat.v{VECTOR_SIZE}i8", (), ir.FunctionType(vector, [vector, vector])
    )

    def constant(value: int) -> Any:
        return ir.Constant(vector, [value] * VECTOR_SIZE)

    def faults(place: int, halves: Any) -> Any:
        table = [sum((half in fault[place]) << bit for bit, fault in enumerate(_FAULTS)) for half in _ANY]
        return builder.call(look_up, [ir.Constant(vector, table * (VECTOR_SIZE // len(table))), halves])

    def upper(bytes_: Any) -> Any:
        return builder.lshr(bytes_, constant(4))

    found = builder.and_(faults(0, upper(first)), faults(1, builder.and_(first, constant(0x0F))))
    found = builder.and_(found, faults(2, upper(byte)))
    # The highest bit of each byte: whether it has to be the third or fourth one of a character.
    from_second, from_third = (
        builder.call(subtract, [before, constant(lead - 0x80)])
        for before, lead in ((second, 0xE0), (third, 0xF0))
    )
    has_to = builder.and_(builder.or_(from_second, from_third), constant(0x80))
    return builder.icmp_unsigned("!=", found, has_to)


@intrinsic
def _has_break(typing_context: Any, text: Any, at: Any) -> Any:
    """Whether one of the 32 bytes at offset `at` of `text` breaks UTF-8, given the three before them."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        text, at = arguments
        vectors = [load_vector(context, builder, text, builder.sub(at, at.type(back))) for back in range(4)]
        # What the kernel is compiled for, which may have less than the processor of this process.
        has_tables = "+avx2" in context.codegen().magic_tuple()[2].split(",")
        return _any(builder, (_breaks_by_tables if has_tables else _breaks)(builder, *vectors))

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
    if end - start >= STEPPED:
        return _is_utf8_in_steps(text, start, end, None, 0)
    state = np.uint64(_START)
    for at in range(start, end):
        state = _next_state(state, text, at)
    return state == _START


@numba.njit
def copy_utf8(to: int, to_offset: int, text: int, start: int, end: int) -> Any:
    """Copy at least `STEPPED` bytes to `to_offset` from `to`; returns whether they are valid UTF-8."""
    return _is_utf8_in_steps(text, start, end, to, to_offset - start)


@numba.njit
def _is_utf8_in_steps(text: int, start: int, end: int, to: int | None, ahead: int) -> Any:
    """Whether at least `STEPPED` bytes are valid; copies them `ahead` of their offset if `to` is not None."""
    state = np.uint64(_START)
    for at in range(start, start + 3):
        state = _next_state(state, text, at)
    if to is not None:
        copy_vector(to, start + ahead, text, start)
    valid = state != _BROKEN
    was_beyond = state != _START
    at = start + 3
    while at < end:
        # The last step ends where the text does, and looks at bytes of the one before again.
        at = min(at, end - VECTOR_SIZE)
        beyond = _beyond_ascii(text, at)
        if to is not None:
            copy_vector(to, at + ahead, text, at)
        # No character continues after 32 bytes of ASCII.
        if beyond or was_beyond:
            valid &= not _has_break(text, at)
        was_beyond = beyond
        at += VECTOR_SIZE
    last, second, third = load_byte(text, end - 1), load_byte(text, end - 2), load_byte(text, end - 3)
    is_cut_off = last >= 0xC0 or second >= 0xE0 or third >= 0xF0
    return valid and not is_cut_off


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
