"""Writes DECIMAL and temporal values as the binlog stores them, from the forms in which results contain them.

A result of a prepared statement has a DECIMAL as text and a temporal value as its calendar fields. Functions
for kernels: the caller has checked that all bytes of a value are there, and that eight bytes may be written.
Sources: MySQL's `strings/decimal.cc` and `mysys/my_time.cc`.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from engine.decode.columns.decimals import GROUP_BYTES
from engine.kernels.memory import load_byte, load_word, store_byte, store_word, swap_bytes

DATE_BYTES, TIMESTAMP_BYTES, DATETIME_BYTES, TIME_BYTES = 3, 4, 5, 3
"""Sizes in bytes without a fraction."""

_SECOND = 1_000_000
"""In microseconds."""
_LONGEST_HOURS = 838
_LAST_YEAR = 10_081
"""The last one for all of which a packed DATETIME has room."""
_BROKEN = -1
"""In place of a number that the text does not write."""
_GROUP_BYTES = np.array(GROUP_BYTES)
"""An array, since kernels copy a tuple before they look up an item."""
_ZEROS = np.uint64(0x3030303030303030)
"""Eight digits 0."""


@numba.njit(inline="always")
def low_bits(word: Any, bits: int) -> Any:
    """The lowest `bits` (0 to 63) bits of a word, as int64."""
    return np.int64(word & ((np.uint64(1) << np.uint64(bits)) - np.uint64(1)))


@numba.njit(inline="always")
def _store_big_endian(to: int, at: int, number: Any, size: int) -> None:
    """Write the lowest `size` (1 to 8) bytes of `number`, the most significant first; writes 8 bytes."""
    store_word(to, at, swap_bytes(np.uint64(number) << np.uint64(64 - 8 * size)))


@numba.njit(inline="always")
def _days(year: int, month: int, day: int) -> Any:
    """Days since 1970-01-01 of a date."""
    shifted = year - (month <= 2)
    era = shifted // 400
    year_of_era = shifted - era * 400
    day_of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719468


@numba.njit(inline="always")
def _digits(source: int, start: int, end: int) -> Any:
    """The number that the digits from `start` to `end` (at most 8, at least 1) write, or `_BROKEN`.

    Reads the eight bytes before `end`: a row has that many before its first digit.
    """
    unused = np.uint64(64 - 8 * (end - start))
    word = (load_word(source, end - 8) ^ _ZEROS) >> unused << unused
    if ((word + np.uint64(0x7676767676767676)) | word) & np.uint64(0x8080808080808080):
        return np.int64(_BROKEN)
    word = (word & np.uint64(0x000F000F000F000F)) * np.uint64(10) + (
        word >> np.uint64(8) & np.uint64(0x000F000F000F000F)
    )
    word = (word & np.uint64(0x000000FF000000FF)) * np.uint64(100) + (
        word >> np.uint64(16) & np.uint64(0x000000FF000000FF)
    )
    return np.int64((word & np.uint64(0xFFFF)) * np.uint64(10_000) + (word >> np.uint64(32)))


@numba.njit(inline="always")
def _group(source: int, start: int, end: int) -> Any:
    """The number that at most 9 digits write, or `_BROKEN`."""
    if end <= start:
        return np.int64(0)
    if end - start <= 8:
        return _digits(source, start, end)
    first = load_byte(source, start) - 48
    rest = _digits(source, start + 1, end)
    return np.int64(_BROKEN) if rest < 0 or first < 0 or first > 9 else first * 100_000_000 + rest


@numba.njit(inline="always")
def write_decimal(
    source: int,
    start: int,
    end: int,
    whole: int,
    fraction: int,
    groups: Any,
    first_group: int,
    last_group: int,
    to: int,
    at: int,
) -> bool:
    """Write the DECIMAL with the text from `start` to `end`; false if that is not a number of these digits.

    `whole` and `fraction`: the column's digits before and after the point, which are stored in groups of so
    many digits as `groups` contains from `first_group` to before `last_group`.
    """
    negative = end > start and load_byte(source, start) == 45
    start += negative
    point = end - fraction - (fraction > 0)
    if start == end or point < start or (fraction and load_byte(source, point) != 46):
        return False
    while point - start > whole:
        if load_byte(source, start) != 48:
            return False
        start += 1
    inverted = np.int64(-1) if negative else np.int64(0)
    digit = point - whole
    first = at
    for group in range(first_group, last_group):
        digits = groups[group]
        if digit == point:
            digit += 1
        number = _group(source, max(digit, start), digit + digits)
        if number < 0:
            return False
        size = _GROUP_BYTES[digits]
        _store_big_endian(to, at, number ^ inverted, size)
        at += size
        digit += digits
    store_byte(to, first, load_byte(to, first) ^ 0x80)
    return True


@numba.njit(inline="always")
def write_moment(
    source: int, start: int, size: int, whole: int, width: int, unit: int, to: int, at: int
) -> bool:
    """Write a DATE, DATETIME or TIMESTAMP from `size` (0, 4, 7 or 11) bytes; false if a field is too large.

    `whole`: the type's size in bytes without a fraction; `width`: with it; `unit`: the fraction's, in µs.
    """
    fields, micros = np.uint64(0), np.int64(0)
    if size:
        fields = load_word(source, start)
        fields &= np.uint64(0xFFFFFFFF) if size == 4 else np.uint64(0xFFFFFFFFFFFFFF)
        if size == 11:
            micros = low_bits(load_word(source, start + 7), 32)
    year, month = low_bits(fields, 16), low_bits(fields >> np.uint64(16), 8)
    day = low_bits(fields >> np.uint64(24), 8)
    hour, minute = low_bits(fields >> np.uint64(32), 8), low_bits(fields >> np.uint64(40), 8)
    second = low_bits(fields >> np.uint64(48), 8)
    broken = (year > _LAST_YEAR) | (month > 12) | (day > 31) | (hour > 23) | (minute > 59) | (second > 59)
    if broken | (micros >= _SECOND):
        return False
    if whole == DATE_BYTES:
        store_word(to, at, np.uint64(year << 9 | month << 5 | day))
        return True
    if whole == DATETIME_BYTES:
        number = (year * 13 + month) << 22 | day << 17 | hour << 12 | minute << 6 | second
        number += 0x8000000000
    else:
        number = np.int64(0)
        if fields:
            number = _days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second
            if month == 0 or day == 0 or number < 0 or number > 0xFFFFFFFF:
                return False
    if width > whole:
        number = number << (8 * (width - whole)) | micros // unit
    _store_big_endian(to, at, number, width)
    return True


@numba.njit(inline="always")
def write_duration(source: int, start: int, size: int, width: int, unit: int, to: int, at: int) -> bool:
    """Write a TIME from `size` (0, 8 or 12) bytes; false if a field is too large. As `write_moment`."""
    negative, hours, minute, second, micros = False, np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    if size:
        fields = load_word(source, start)
        negative = low_bits(fields, 8) != 0
        hours = low_bits(fields >> np.uint64(8), 32) * 24 + low_bits(fields >> np.uint64(40), 8)
        minute, second = low_bits(fields >> np.uint64(48), 8), np.int64(fields >> np.uint64(56))
        if size == 12:
            micros = low_bits(load_word(source, start + 8), 32)
    if (hours > _LONGEST_HOURS) | (minute > 59) | (second > 59) | (micros >= _SECOND):
        return False
    bits = 8 * (width - TIME_BYTES)
    number = hours << 12 | minute << 6 | second
    if bits:
        number = number << bits | micros // unit
    # A negative time is stored as the negative of all its fields as one number.
    _store_big_endian(to, at, (-number if negative else number) + (np.int64(0x800000) << bits), width)
    return True
