"""Decimal digits: kernel helpers that write numbers as text at an address.

Eight digits are computed at once, in the lanes of one word, since a division per digit would take most of the
time of writing JSON and decimals. Words are stored whole: up to seven bytes after the text are overwritten.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from engine.kernels.memory import store_word

_EIGHT = np.uint64(10**8)
_ZEROS = np.uint64(0x3030303030303030)

POWERS_OF_TEN = np.array([10**power for power in range(20)], np.uint64)
"""All powers that 64 bits can hold."""


@numba.njit
def _eight_digits(number: Any) -> Any:
    """The text of `number` (uint64, below 10^8) with leading zeros, the first digit in the lowest byte."""
    upper = number // np.uint64(10000)
    fours = upper | (number - upper * np.uint64(10000)) << np.uint64(32)
    # x * 10486 >> 20 is x // 100 below 10^4, x * 103 >> 10 is x // 10 below 100.
    hundreds = fours * np.uint64(10486) >> np.uint64(20) & np.uint64(0x0000007F0000007F)
    twos = hundreds | (fours - hundreds * np.uint64(100)) << np.uint64(16)
    tens = twos * np.uint64(103) >> np.uint64(10) & np.uint64(0x000F000F000F000F)
    return (tens | (twos - tens * np.uint64(10)) << np.uint64(8)) + _ZEROS


@numba.njit
def _write_last(text: int, to: int, number: Any, digits: int) -> None:
    """Write the last `digits` (1 to 8) digits of `number` (uint64, below 10^8)."""
    store_word(text, to, _eight_digits(number) >> np.uint64(64 - 8 * digits))


@numba.njit
def write_digits(text: int, to: int, number: Any, digits: int) -> Any:
    """Write `number` (uint64) with exactly `digits` (at most 24) digits; return the end offset."""
    end = to + digits
    if digits > 8:
        upper = number // _EIGHT
        if digits > 16:
            top = upper // _EIGHT
            _write_last(text, to, top, digits - 16)
            _write_last(text, end - 16, upper - top * _EIGHT, 8)
        else:
            _write_last(text, to, upper, digits - 8)
        _write_last(text, end - 8, number - upper * _EIGHT, 8)
    elif digits > 0:
        _write_last(text, to, number, digits)
    return end


@intrinsic
def _bits_of(typing_context: Any, number: Any) -> Any:
    """The bit length of a uint64; 0 for zero."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = ir.IntType(64)
        zeros = builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 0))
        return builder.sub(ir.Constant(word, 64), zeros)

    return types.int64(types.uint64), generate


@numba.njit
def digits_of(number: Any) -> Any:
    """The number of digits of `number` (uint64), at least one."""
    number |= np.uint64(1)
    # 1233 / 4096 approximates the decimal logarithm of 2, precisely enough for 64 bits.
    digits = _bits_of(number) * 1233 >> 12
    return digits + (number >= POWERS_OF_TEN[digits])


@numba.njit
def write_number(text: int, to: int, number: Any) -> Any:
    """Write `number` (uint64) without leading zeros; return the end offset."""
    return write_digits(text, to, number, digits_of(number))
