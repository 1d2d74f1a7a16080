"""The shortest decimal digits of a double, in a kernel: Raffaele Giulietti's Schubfach algorithm.

The interval of numbers that round to the double is scaled by a power of ten, from a table of 128-bit
approximations, so that its bounds become integers; two divisions find the shortest number inside.
Source: "The Schubfach way to render doubles" (2021), from which the variables have their names.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from engine.decode.columns.digits import POWERS_OF_TEN, digits_of, write_digits, write_number
from engine.kernels.memory import load_word, store_byte

_SMALLEST_POWER, _LARGEST_POWER = -292, 324
_FIRST_FIXED, _LAST_FIXED = -14, 15
"""Fewest and most digits before the decimal point (below 0: zeros after it) that need no exponent."""


@cache
def powers_of_ten() -> NDArray[np.uint64]:
    """High and low word of 10 ** k, scaled to 128 bits and rounded up, for every k that doubles need."""
    words = []
    for power in range(_SMALLEST_POWER, _LARGEST_POWER + 1):
        ten = 10 ** abs(power)
        shift = 128 - ten.bit_length() if power >= 0 else 127 + ten.bit_length()
        scaled = (
            -(-(ten << shift) if shift >= 0 else -ten >> -shift) if power >= 0 else -(-(1 << shift) // ten)
        )
        words.append((scaled >> 64, scaled & 0xFFFFFFFFFFFFFFFF))
    return np.array(words, np.uint64)


@intrinsic
def _multiply(typing_context: Any, one: Any, other: Any) -> Any:
    """The 128-bit product of two uint64: high and low word."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        wide, word = ir.IntType(128), ir.IntType(64)
        product = builder.mul(*(builder.zext(argument, wide) for argument in arguments))
        high = builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), word)
        return cgutils.pack_array(builder, [high, builder.trunc(product, word)])

    return types.UniTuple(types.uint64, 2)(types.uint64, types.uint64), generate


@numba.njit
def _round_to_odd(high: Any, low: Any, factor: Any) -> Any:
    """The upper half of (high, low) * factor, made odd if the lower half is not zero (round to odd)."""
    carried, _ = _multiply(low, factor)
    upper, lower = _multiply(high, factor)
    lower += carried
    if lower < carried:
        upper += np.uint64(1)
    return upper | np.uint64(lower > np.uint64(1))


@numba.njit
def shortest_digits(powers: int, bits: Any) -> Any:
    """(digits, exponent) of the finite positive double with these bits: digits * 10 ** exponent.

    `powers` is the address of `powers_of_ten`. The digits may end in zeros.
    """
    fraction = np.int64(bits & np.uint64(0xFFFFFFFFFFFFF))
    biased = np.int64(bits >> np.uint64(52)) & 0x7FF
    if biased:
        c, q = fraction | (1 << 52), biased - 1075
        if 0 <= -q < 53 and c & ((1 << -q) - 1) == 0:
            return np.uint64(c >> -q), 0
    else:
        c, q = fraction, np.int64(-1074)
    closer_below = fraction == 0 and biased > 1
    open_ends = c & 1
    k = (q * 1262611 - (524031 if closer_below else 0)) >> 22
    h = np.uint64(q + ((-k * 1741647) >> 19) + 1)
    entry = 16 * (-k - _SMALLEST_POWER)
    high, low = load_word(powers, entry), load_word(powers, entry + 8)
    lower = np.int64(_round_to_odd(high, low, np.uint64(4 * c - (1 if closer_below else 2)) << h)) + open_ends
    exact = np.int64(_round_to_odd(high, low, np.uint64(4 * c) << h))
    upper = np.int64(_round_to_odd(high, low, np.uint64(4 * c + 2) << h)) - open_ends
    s = exact >> 2
    if s >= 10:
        tens = s // 10
        down, up = lower <= 40 * tens, 40 * tens + 40 <= upper
        if down != up:
            return np.uint64(tens + up), k + 1
    down, up = lower <= 4 * s, 4 * s + 4 <= upper
    if down != up:
        return np.uint64(s + up), k
    middle = 4 * s + 2
    return np.uint64(s + (exact > middle or (exact == middle and s & 1))), k


@numba.njit
def write_double(powers: int, text: int, to: int, bits: Any) -> Any:
    """Write the finite double with these bits as MySQL prints it, up to 34 bytes; return the end offset."""
    if bits >> np.uint64(63):
        store_byte(text, to, 45)
        to += 1
        bits &= np.uint64(0x7FFFFFFFFFFFFFFF)
    if bits == 0:
        store_byte(text, to, 48)
        store_byte(text, to + 1, 46)
        store_byte(text, to + 2, 48)
        return to + 3
    digits, exponent = shortest_digits(powers, bits)
    while digits % np.uint64(10) == 0:
        digits //= np.uint64(10)
        exponent += 1
    count = digits_of(digits)
    point = count + exponent
    if point < _FIRST_FIXED or (point > _LAST_FIXED and point >= count):
        # Scientific notation: one digit before the point, the others after it, then the exponent.
        end = write_number(text, to + (count > 1), digits)
        if count > 1:
            store_byte(text, to, np.int64(digits // POWERS_OF_TEN[count - 1]) + 48)
            store_byte(text, to + 1, 46)
        store_byte(text, end, 101)
        if point < 1:
            store_byte(text, end + 1, 45)
            return write_number(text, end + 2, np.uint64(1 - point))
        return write_number(text, end + 1, np.uint64(point - 1))
    if point <= 0:
        store_byte(text, to, 48)
        store_byte(text, to + 1, 46)
        to = write_digits(text, to + 2, np.uint64(0), -point)
        return write_digits(text, to, digits, count)
    if point >= count:
        to = write_digits(text, to, digits, count)
        to = write_digits(text, to, np.uint64(0), point - count)
        store_byte(text, to, 46)
        store_byte(text, to + 1, 48)
        return to + 2
    scale = POWERS_OF_TEN[count - point]
    to = write_digits(text, to, digits // scale, point)
    store_byte(text, to, 46)
    return write_digits(text, to + 1, digits % scale, count - point)
