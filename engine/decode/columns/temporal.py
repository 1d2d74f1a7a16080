"""DATE, DATETIME, TIMESTAMP and TIME in their old and new stored forms, as Arrow values or as MySQL's text.

Every stored form is first taken apart into calendar fields (TIMESTAMP only for text) and then put together
again. Dates that no calendar has (0000-00-00, 2024-00-00, 2023-02-30, and the year 0, which neither SQL's nor
Spark's calendar knows) become null, counted as `zero_dates`; as text they survive. TIMESTAMP text is UTC.
Stored forms: MySQL `sql-common/my_time.cc`, `mysys/my_time.cc`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import pyarrow as pa
from numba import types
from numpy.typing import NDArray

from engine.decode.columns.base import NULL_CELL, Codec, Column, Counters, Options
from engine.decode.columns.field_types import FieldType
from engine.decode.columns.kernels import (
    CELLS,
    DATA,
    OFFSETS,
    OUT,
    PADDING,
    big_endian,
    content_buffer,
    count_nulls,
    fixed,
    kernel,
    little_endian,
    store_word,
    variable,
)
from engine.errors import EngineError, EventError

_DATE = int(FieldType.DATE)
_DATETIME = int(FieldType.DATETIME)
_DATETIME2 = int(FieldType.DATETIME2)
_TIMESTAMP = int(FieldType.TIMESTAMP)
_TIMESTAMP2 = int(FieldType.TIMESTAMP2)
_TIME = int(FieldType.TIME)
_TIME2 = int(FieldType.TIME2)

_SECOND = 1_000_000
_DAY = 86_400 * _SECOND
_LONGEST_TIME = 838
"""Hours that a TIME can hold."""

_BROKEN = -(2**62)
"""Fields that no stored value can have."""


@numba.njit
def _days(year: int, month: int, day: int) -> Any:
    """Days since 1970-01-01 of a date in the proleptic Gregorian calendar (from year 1)."""
    if month <= 2:
        year -= 1
        month += 12
    return 365 * year + year // 4 - year // 100 + year // 400 + (153 * month - 457) // 5 + day - 719469


@numba.njit
def _civil(days: int) -> Any:
    """Year, month and day of a day since 1970-01-01 (not before year 1)."""
    shifted = days + 719468
    era = shifted // 146097
    day_of_era = shifted - era * 146097
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36524 - day_of_era // 146096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * day_of_year + 2) // 153
    month = shifted_month + 3 if shifted_month < 10 else shifted_month - 9
    year = year_of_era + 400 * era + (month <= 2)
    return year, month, day_of_year - (153 * shifted_month + 2) // 5 + 1


@numba.njit
def _exists(year: int, month: int, day: int) -> Any:
    """Whether the calendar has this date."""
    if year < 1 or month < 1 or day < 1:
        return False
    if day <= 28:
        return True
    if month == 2:
        return day == 29 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if month == 4 or month == 6 or month == 9 or month == 11:
        return day <= 30
    return True


@numba.njit
def _fraction(data: Any, start: int, size: int) -> Any:
    """Microseconds out of a fraction of `size` (0 to 3) big-endian bytes."""
    if size == 0:
        return 0
    number = np.int64(big_endian(data, start, size))
    if size == 1:
        return number * 10_000
    if size == 2:
        return number * 100
    return number


@numba.njit
def _date_and_time(data: Any, cell: int, stored: int, fraction: int) -> Any:
    """Year, month, day, hour * 10000 + minute * 100 + second, microsecond and whether all can be.

    `stored` is the type code, `fraction` the number of fraction bytes.
    """
    date, time, micros = np.int64(0), np.int64(0), np.int64(0)
    if stored == _DATE:
        packed = np.int64(little_endian(data, cell, 3))
        date = (packed >> 9) * 10000 + (packed >> 5 & 15) * 100 + (packed & 31)
    elif stored == _DATETIME:
        packed = np.int64(little_endian(data, cell, 8))
        if packed < 0:
            return 0, 0, 0, 0, 0, False
        date, time = packed // 1_000_000, packed % 1_000_000
    elif stored == _DATETIME2:
        packed = np.int64(big_endian(data, cell, 5)) - 0x8000000000
        if packed < 0:
            return 0, 0, 0, 0, 0, False
        months = packed >> 22
        date = months // 13 * 10000 + months % 13 * 100 + (packed >> 17 & 31)
        time = (packed >> 12 & 31) * 10000 + (packed >> 6 & 63) * 100 + (packed & 63)
        micros = _fraction(data, cell + 5, fraction)
    else:
        seconds = _timestamp_seconds(data, cell, stored)
        micros = _fraction(data, cell + 4, fraction)
        if seconds or micros:
            year, month, day = _civil(seconds // 86400)
            date = year * 10000 + month * 100 + day
            time = seconds // 3600 % 24 * 10000 + seconds // 60 % 60 * 100 + seconds % 60
    year, month, day = date // 10000, date // 100 % 100, date % 100
    sane = year <= 9999 and month <= 12 and day <= 31 and micros < _SECOND
    sane = sane and time < 240000 and time // 100 % 100 < 60 and time % 100 < 60
    return year, month, day, time, micros, sane


@numba.njit
def _timestamp_seconds(data: Any, cell: int, stored: int) -> Any:
    if stored == _TIMESTAMP:
        return np.int64(little_endian(data, cell, 4))
    return np.int64(big_endian(data, cell, 4))


@numba.njit
def _duration(data: Any, cell: int, stored: int, fraction: int) -> Any:
    """Microseconds of a TIME; `_BROKEN` where its fields cannot be."""
    if stored == _TIME:
        packed = np.int64(little_endian(data, cell, 3) << np.uint64(40)) >> 40
        time, micros = abs(packed), np.int64(0)
        hours, minutes, seconds = time // 10000, time // 100 % 100, time % 100
    else:
        # A negative time is the negative of hours, minutes, seconds and fraction as one number.
        bits = 8 * fraction
        packed = np.int64(big_endian(data, cell, 3 + fraction)) - (np.int64(0x800000) << bits)
        time = abs(packed) >> bits
        hours, minutes, seconds = time >> 12, time >> 6 & 63, time & 63
        micros = abs(packed) & ((np.int64(1) << bits) - 1)
        micros *= 10_000 if fraction == 1 else 100 if fraction == 2 else 1
    if hours > _LONGEST_TIME or minutes > 59 or seconds > 59 or micros >= _SECOND:
        return _BROKEN
    total = ((hours * 60 + minutes) * 60 + seconds) * _SECOND + micros
    return -total if packed < 0 else total


@kernel(types.int64, DATA, CELLS, types.int64, types.int64, types.int64, OUT, types.int32[::1])
def _values(data: Any, cells: Any, stored: int, fraction: int, item: int, out: Any, kept: Any) -> Any:
    """Fill `out` with days (items of 4 bytes) or microseconds, and `kept` with the cells that have a value.

    The number of dates that no calendar has, or the complement of a broken cell's offset.
    """
    zero_dates = 0
    for index in range(cells.size):
        cell = np.int64(cells[index])
        value = np.int64(0)
        kept[index] = cell
        if cell >= 0:
            if stored in (_TIME, _TIME2):
                value = _duration(data, cell, stored, fraction)
                if value == _BROKEN:
                    return ~cell
            elif stored in (_TIMESTAMP, _TIMESTAMP2):
                micros = _fraction(data, cell + 4, fraction)
                if micros >= _SECOND:
                    return ~cell
                value = _timestamp_seconds(data, cell, stored) * _SECOND + micros
                if value == 0:
                    zero_dates += 1
                    kept[index] = NULL_CELL
            else:
                year, month, day, time, micros, sane = _date_and_time(data, cell, stored, fraction)
                if not sane:
                    return ~cell
                if _exists(year, month, day):
                    value = _days(year, month, day)
                    if stored != _DATE:
                        seconds = time // 10000 * 3600 + time // 100 % 100 * 60 + time % 100
                        value = value * _DAY + seconds * _SECOND + micros
                else:
                    zero_dates += 1
                    kept[index] = NULL_CELL
        store_word(out, index * item, np.uint64(value))
    return zero_dates


@numba.njit
def _write(out: Any, to: int, number: int, digits: int) -> Any:
    """Write `number` with exactly `digits` digits; where the text ends."""
    for place in range(digits):
        out[to + digits - 1 - place] = 48 + number % 10
        number //= 10
    return to + digits


@numba.njit
def _write_time(out: Any, to: int, time: int, micros: int, precision: int) -> Any:
    """Write :minute:second and the fraction of hour * 10000 + minute * 100 + second."""
    out[to] = 58
    to = _write(out, to + 1, time // 100 % 100, 2)
    out[to] = 58
    to = _write(out, to + 1, time % 100, 2)
    if precision:
        out[to] = 46
        to = _write(out, to + 1, micros // 10 ** (6 - precision), precision)
    return to


@kernel(types.int64, DATA, CELLS, types.int64, types.int64, OFFSETS, OUT)
def _texts(data: Any, cells: Any, stored: int, precision: int, offsets: Any, out: Any) -> Any:
    """Write MySQL's text of every cell; 0, or the complement of a broken cell's offset."""
    fraction = (precision + 1) // 2
    to = 0
    offsets[0] = 0
    for index in range(cells.size):
        cell = np.int64(cells[index])
        if cell >= 0:
            if stored in (_TIME, _TIME2):
                value = _duration(data, cell, stored, fraction)
                if value == _BROKEN:
                    return ~cell
                if value < 0:
                    out[to] = 45
                    to += 1
                seconds, micros = abs(value) // _SECOND, abs(value) % _SECOND
                hours = seconds // 3600
                to = _write(out, to, hours, 3 if hours > 99 else 2)
                to = _write_time(out, to, seconds // 60 % 60 * 100 + seconds % 60, micros, precision)
            else:
                year, month, day, time, micros, sane = _date_and_time(data, cell, stored, fraction)
                if not sane:
                    return ~cell
                to = _write(out, to, year, 4)
                out[to] = 45
                to = _write(out, to + 1, month, 2)
                out[to] = 45
                to = _write(out, to + 1, day, 2)
                if stored != _DATE:
                    out[to] = 32
                    to = _write(out, to + 1, time // 10000, 2)
                    to = _write_time(out, to, time, micros, precision)
        offsets[index + 1] = to
    return 0


_LONGEST_TEXT = 26
"""Bytes of 2024-12-31 23:59:59.999999."""


@dataclass(frozen=True, slots=True)
class TemporalCodec:
    """A temporal column; `precision` is its number of fraction digits."""

    arrow_type: pa.DataType
    width: int
    stored: int
    precision: int

    def build(self, data: NDArray[np.uint8], cells: NDArray[np.int32], counters: Counters) -> pa.Array:
        """See `Codec.build`."""
        if pa.types.is_string(self.arrow_type):
            return self._text(data, cells)
        item = self.arrow_type.bit_width // 8
        values = np.empty(cells.size * item + PADDING, np.uint8)
        kept = np.empty(cells.size, np.int32)
        zero_dates = _values(data, cells, self.stored, (self.precision + 1) // 2, item, values, kept)
        _check(zero_dates)
        counters.add("zero_dates", zero_dates)
        return fixed(self.arrow_type, kept, values, item, count_nulls(kept))

    def _text(self, data: NDArray[np.uint8], cells: NDArray[np.int32]) -> pa.Array:
        offsets = np.empty(cells.size + 1, np.int32)
        content = content_buffer(cells.size * _LONGEST_TEXT)
        _check(_texts(data, cells, self.stored, self.precision, offsets, content))
        return variable(self.arrow_type, cells, offsets, content, count_nulls(cells))


def _check(result: int) -> None:
    if result < 0:
        raise EventError("a temporal value holds fields that no date or time can have", ~result)


_FORMS = {
    FieldType.DATE: (FieldType.DATE, 3, pa.date32()),
    FieldType.NEWDATE: (FieldType.DATE, 3, pa.date32()),
    FieldType.DATETIME: (FieldType.DATETIME, 8, pa.timestamp("us")),
    FieldType.DATETIME2: (FieldType.DATETIME2, 5, pa.timestamp("us")),
    FieldType.TIMESTAMP: (FieldType.TIMESTAMP, 4, pa.timestamp("us", "UTC")),
    FieldType.TIMESTAMP2: (FieldType.TIMESTAMP2, 4, pa.timestamp("us", "UTC")),
    FieldType.TIME: (FieldType.TIME, 3, pa.duration("us")),
    FieldType.TIME2: (FieldType.TIME2, 3, pa.duration("us")),
}
"""Type code → stored form, bytes without a fraction, Arrow type."""

_WITH_FRACTION = {FieldType.DATETIME2, FieldType.TIMESTAMP2, FieldType.TIME2}


def temporal_codec(column: Column, options: Options) -> Codec:
    """The codec of a temporal column; the metadata of the newer forms is the number of fraction digits."""
    stored, width, arrow_type = _FORMS[FieldType(column.type_code)]
    precision = column.metadata if stored in _WITH_FRACTION else 0
    if precision > 6:
        raise EngineError(f"column {column.name} has {precision} fraction digits in the binlog, not 0 to 6")
    if options.temporal_text:
        arrow_type = pa.string()
    return TemporalCodec(arrow_type, width + (precision + 1) // 2, int(stored), precision)
