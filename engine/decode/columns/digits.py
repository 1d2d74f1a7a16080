"""Decimal digits: kernel helpers that write numbers as text at an address."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from engine.decode.columns.kernels import store_byte


@numba.njit
def write_digits(text: int, to: int, number: Any, digits: int) -> Any:
    """Write `number` (uint64) with exactly `digits` digits; where they end."""
    for place in range(digits):
        store_byte(text, to + digits - 1 - place, np.int64(48 + number % np.uint64(10)))
        number //= np.uint64(10)
    return to + digits


@numba.njit
def digits_of(number: Any) -> Any:
    """How many digits `number` (uint64) has, at least one."""
    digits = 1
    while number >= np.uint64(10):
        number //= np.uint64(10)
        digits += 1
    return digits


@numba.njit
def write_number(text: int, to: int, number: Any) -> Any:
    """Write `number` (uint64) with as many digits as it has; where they end."""
    return write_digits(text, to, number, digits_of(number))
