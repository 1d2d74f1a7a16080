"""The stored forms of dates and times, and kernel helpers that split each form into calendar fields.

There are three generations: decimal numbers such as YYYYMMDDhhmmss (before MySQL 5.6), packed bits with a
fraction (since then), and MariaDB's counts of the smallest unit, in tables created by MariaDB 5.3 to 10.0.
Sources: MySQL `mysys/my_time.cc`, MariaDB `sql/field.cc` (the `_hires` fields).
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numba
import numpy as np

from engine.kernels.memory import big_endian, little_endian


class Form(IntEnum):
    """A stored form."""

    DATE = 0
    DATETIME = 1
    DATETIME2 = 2
    DATETIME_NUMBER = 3
    TIMESTAMP = 4
    TIMESTAMP2 = 5
    TIMESTAMP_NUMBER = 6
    TIME = 7
    TIME2 = 8
    TIME_NUMBER = 9


_DATE, _DATETIME, _DATETIME2, _DATETIME_NUMBER, _TIMESTAMP = (int(form) for form in list(Form)[:5])
_TIMESTAMP2, _TIMESTAMP_NUMBER, _TIME, _TIME2, _TIME_NUMBER = (int(form) for form in list(Form)[5:])

_FRACTION_BYTES = (0, 1, 1, 2, 2, 3, 3)
WIDTHS = {
    Form.DATE: (3,),
    Form.DATETIME: (8,),
    Form.DATETIME2: tuple(5 + size for size in _FRACTION_BYTES),
    Form.DATETIME_NUMBER: (5, 6, 6, 7, 7, 7, 8),
    Form.TIMESTAMP: (4,),
    Form.TIMESTAMP2: tuple(4 + size for size in _FRACTION_BYTES),
    Form.TIMESTAMP_NUMBER: tuple(4 + size for size in _FRACTION_BYTES),
    Form.TIME: (3,),
    Form.TIME2: tuple(3 + size for size in _FRACTION_BYTES),
    Form.TIME_NUMBER: (3, 4, 4, 5, 5, 5, 6),
}
"""Form → bytes of a cell by the number of fraction digits."""

SECOND = 1_000_000
"""In microseconds, as all times here are."""
MONTHS = 10_000 * 13
"""One more than the highest year * 13 + month of the calendar; packed forms have room for more years, which
MySQL's FROM_DAYS can store."""
OUT_OF_RANGE = -(2**62)
"""Returned instead of a day or a duration whose fields are out of range."""

_LONGEST_TIME = 838 * 3600 + 59 * 60 + 59
_UNITS = np.array([10**6, 10**5, 10**4, 1000, 100, 10, 1])
"""By the number of fraction digits: microseconds of the last one."""


@numba.njit(inline="always")
def _civil(days: int) -> Any:
    """Year, month and day of a number of days since 1970-01-01 (not before year 1)."""
    shifted = days + 719468
    era = shifted // 146097
    day_of_era = shifted - era * 146097
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36524 - day_of_era // 146096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * day_of_year + 2) // 153
    month = shifted_month + 3 if shifted_month < 10 else shifted_month - 9
    year = year_of_era + 400 * era + (month <= 2)
    return year, month, day_of_year - (153 * shifted_month + 2) // 5 + 1


@numba.njit(inline="always")
def _fraction(batch: int, start: int, form: int, precision: int) -> Any:
    """Microseconds from the bytes after the seconds; the newest forms store an even number of digits."""
    if precision == 0:
        return np.int64(0)
    digits = precision if form == _TIMESTAMP_NUMBER else (precision + 1) // 2 * 2
    return np.int64(big_endian(batch, start, (precision + 1) // 2)) * _UNITS[digits]


@numba.njit(inline="always")
def timestamp(batch: int, cell: int, form: int, precision: int) -> Any:
    """Microseconds since 1970 of a TIMESTAMP; `OUT_OF_RANGE` if its fraction is out of range."""
    if form == _TIMESTAMP:
        return np.int64(little_endian(batch, cell, 4)) * SECOND
    micros = _fraction(batch, cell + 4, form, precision)
    seconds = np.int64(big_endian(batch, cell, 4))
    return seconds * SECOND + micros if micros < SECOND else np.int64(OUT_OF_RANGE)


@numba.njit(inline="always")
def moment(batch: int, cell: int, form: int, width: int, precision: int) -> Any:
    """Year * 13 + month, day, second of the day and microsecond of all forms but those of TIME.

    All are zero for the TIMESTAMP 0, which is not a date. The day is `OUT_OF_RANGE` if a field is.
    """
    months, day, second, micros = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    hour, minute, month = np.int64(0), np.int64(0), np.int64(0)
    if form == _DATE:
        packed = np.int64(little_endian(batch, cell, 3))
        month, day = packed >> 5 & 15, packed & 31
        months = (packed >> 9) * 13 + month
    elif form == _DATETIME2:
        # One read of the fraction and the fields before it.
        number, bits = big_endian(batch, cell, width), np.uint64(8 * (width - 5))
        packed = np.int64(number >> bits) - 0x8000000000
        months, day = packed >> 22, packed >> 17 & 31
        hour, minute, second = packed >> 12 & 31, packed >> 6 & 63, packed & 63
        fraction = number & ((np.uint64(1) << bits) - np.uint64(1))
        micros = np.int64(fraction) * _UNITS[(precision + 1) // 2 * 2]
    elif form == _DATETIME:
        packed = np.int64(little_endian(batch, cell, 8))
        date, time = packed // 1_000_000, packed % 1_000_000
        year, month, day = date // 10_000, date // 100 % 100, date % 100
        months = (year if year < 10_000 else 10_000) * 13 + month
        hour, minute, second = time // 10_000, time // 100 % 100, time % 100
    elif form == _DATETIME_NUMBER:
        packed = np.int64(big_endian(batch, cell, width))
        ticks = SECOND // _UNITS[precision]
        second, micros = packed // ticks, packed % ticks * _UNITS[precision]
        months, day = second // 86_400 // 32, second // 86_400 % 32
        second %= 86_400
    else:
        packed = timestamp(batch, cell, form, precision)
        if packed > 0:
            year, month, day = _civil(packed // SECOND // 86_400)
            months = year * 13 + month
            second, micros = packed // SECOND % 86_400, packed % SECOND
    # Without a branch per condition, since they are almost never true.
    broken = (packed < 0) | (month > 12) | (day > 31) | (micros >= SECOND)
    broken |= (form in (_DATETIME, _DATETIME_NUMBER)) & (months >= MONTHS)
    broken |= (hour > 23) | (minute > 59) | ((form in (_DATETIME, _DATETIME2)) & (second > 59))
    if broken:
        return months, np.int64(OUT_OF_RANGE), second, micros
    return months, day, 3600 * hour + 60 * minute + second, micros


@numba.njit(inline="always")
def duration(batch: int, cell: int, form: int, width: int, precision: int) -> Any:
    """Microseconds of a TIME; `OUT_OF_RANGE` if a field is out of range."""
    if form == _TIME_NUMBER:
        zero = (_LONGEST_TIME + 1) * SECOND // _UNITS[precision]
        ticks = np.int64(big_endian(batch, cell, width)) - zero
        return ticks * _UNITS[precision] if abs(ticks) < zero else np.int64(OUT_OF_RANGE)
    minutes, seconds, micros = np.int64(0), np.int64(0), np.int64(0)
    if form == _TIME:
        packed = np.int64(little_endian(batch, cell, 3) << np.uint64(40)) >> 40
        time = abs(packed)
        hours, minutes, seconds = time // 10_000, time // 100 % 100, time % 100
    else:
        # A negative time is stored as the negative of hours, minutes, seconds and fraction as one number.
        bits = 8 * (width - 3)
        packed = np.int64(big_endian(batch, cell, width)) - (np.int64(0x800000) << bits)
        time = abs(packed) >> bits
        hours, minutes, seconds = time >> 12, time >> 6 & 63, time & 63
        micros = (abs(packed) & ((np.int64(1) << bits) - 1)) * _UNITS[(precision + 1) // 2 * 2]
    total = (hours * 60 + minutes) * 60 + seconds
    if total > _LONGEST_TIME or minutes > 59 or seconds > 59 or micros >= SECOND:
        return np.int64(OUT_OF_RANGE)
    total = total * SECOND + micros
    return -total if packed < 0 else total
