"""DATE, DATETIME, TIMESTAMP and TIME in their old and new stored forms, as Arrow values or as MySQL's text.

Every stored form is first taken apart into calendar fields (TIMESTAMP only for text) and then put together
again. Dates that no calendar has (0000-00-00, 2024-00-00, 2023-02-30, and the year 0, which neither SQL's nor
Spark's calendar knows) become null, counted as `zero_dates`; as text they survive. TIMESTAMP text is UTC.
Stored forms: MySQL `sql-common/my_time.cc`, `mysys/my_time.cc`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numba
import numpy as np
import pyarrow as pa
from numba import types
from numpy.typing import NDArray

from engine.decode.columns.base import NULL_CELL, Codec, Column, Counters, Options
from engine.decode.columns.digits import write_digits
from engine.decode.columns.field_types import FieldType
from engine.decode.columns.kernels import (
    CELLS,
    DATA,
    OFFSETS,
    OUT,
    PADDING,
    address_of,
    big_endian,
    content_buffer,
    count_nulls,
    fixed,
    kernel,
    little_endian,
    store_byte,
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


_TABLE = types.Array(types.int32, 1, "C", readonly=True)
_MONTHS = 10_000 * 13


@cache
def _calendar() -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """For year * 13 + month up to the year 9999: the day before its first, since 1970-01-01, and its days.

    Months that no calendar has, such as each year's month 0 and all of the year 0, have no days.
    """
    firsts = np.arange("0001-01", "10000-02", dtype="datetime64[M]").astype("datetime64[D]").astype(np.int32)
    starts, lengths = np.zeros((2, 10_000, 13), np.int32)
    starts[1:, 1:] = firsts[:-1].reshape(-1, 12) - 1
    lengths[1:, 1:] = np.diff(firsts).reshape(-1, 12)
    return starts.reshape(-1), lengths.reshape(-1)


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
def _fraction(batch: int, start: int, size: int) -> Any:
    """Microseconds out of a fraction of `size` (0 to 3) big-endian bytes."""
    if size == 0:
        return 0
    number = np.int64(big_endian(batch, start, size))
    if size == 1:
        return number * 10_000
    if size == 2:
        return number * 100
    return number


@numba.njit
def _date_and_time(batch: int, cell: int, stored: int, fraction: int) -> Any:
    """Year * 13 + month, day, second of the day and microsecond; a day of `_BROKEN` where these cannot be.

    `stored` is the type code, `fraction` the number of fraction bytes.
    """
    months, day, second, micros = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    if stored == _DATE:
        packed = np.int64(little_endian(batch, cell, 3))
        month, day = packed >> 5 & 15, packed & 31
        months = (packed >> 9) * 13 + month
        sane = month <= 12
    elif stored == _DATETIME2:
        packed = np.int64(big_endian(batch, cell, 5)) - 0x8000000000
        hour, minute, second = packed >> 12 & 31, packed >> 6 & 63, packed & 63
        months, day = packed >> 22, packed >> 17 & 31
        micros = _fraction(batch, cell + 5, fraction)
        sane = packed >= 0 and hour < 24 and minute < 60 and second < 60
        second += 3600 * hour + 60 * minute
    elif stored == _DATETIME:
        packed = np.int64(little_endian(batch, cell, 8))
        date, time = packed // 1_000_000, packed % 1_000_000
        month, day = date // 100 % 100, date % 100
        hour, minute, second = time // 10000, time // 100 % 100, time % 100
        sane = packed >= 0 and month <= 12 and day <= 31 and hour < 24 and minute < 60 and second < 60
        year = date // 10000
        months = (year if year < 10000 else 10000) * 13 + month
        second += 3600 * hour + 60 * minute
    else:
        second = _timestamp_seconds(batch, cell, stored)
        micros = _fraction(batch, cell + 4, fraction)
        sane = second >= 0
        if second or micros:
            year, month, day = _civil(second // 86400)
            months = year * 13 + month
            second %= 86400
    if not sane or months >= _MONTHS or micros >= _SECOND:
        return months, _BROKEN, second, micros
    return months, day, second, micros


@numba.njit
def _timestamp_seconds(batch: int, cell: int, stored: int) -> Any:
    if stored == _TIMESTAMP:
        return np.int64(little_endian(batch, cell, 4))
    return np.int64(big_endian(batch, cell, 4))


@numba.njit
def _duration(batch: int, cell: int, stored: int, fraction: int) -> Any:
    """Microseconds of a TIME; `_BROKEN` where its fields cannot be."""
    if stored == _TIME:
        packed = np.int64(little_endian(batch, cell, 3) << np.uint64(40)) >> 40
        time, micros = abs(packed), np.int64(0)
        hours, minutes, seconds = time // 10000, time // 100 % 100, time % 100
    else:
        # A negative time is the negative of hours, minutes, seconds and fraction as one number.
        bits = 8 * fraction
        packed = np.int64(big_endian(batch, cell, 3 + fraction)) - (np.int64(0x800000) << bits)
        time = abs(packed) >> bits
        hours, minutes, seconds = time >> 12, time >> 6 & 63, time & 63
        micros = abs(packed) & ((np.int64(1) << bits) - 1)
        micros *= 10_000 if fraction == 1 else 100 if fraction == 2 else 1
    if hours > _LONGEST_TIME or minutes > 59 or seconds > 59 or micros >= _SECOND:
        return _BROKEN
    total = ((hours * 60 + minutes) * 60 + seconds) * _SECOND + micros
    return -total if packed < 0 else total


@kernel(types.int64, DATA, CELLS, types.int64, types.int64, _TABLE, _TABLE, types.int64, OUT, OFFSETS)
def _values(
    data: Any,
    cells: Any,
    stored: int,
    fraction: int,
    starts: Any,
    lengths: Any,
    item: int,
    out: Any,
    kept: Any,
) -> Any:
    """Fill `out` with days (items of 4 bytes) or microseconds, and `kept` with the cells that have a value.

    The number of dates that no calendar has, or the complement of a broken cell's offset.
    """
    batch, items = address_of(data), address_of(out)
    zero_dates = 0
    for index in range(cells.size):
        cell = np.int64(cells[index])
        value = np.int64(0)
        kept[index] = cell
        if cell >= 0:
            if stored in (_TIME, _TIME2):
                value = _duration(batch, cell, stored, fraction)
                if value == _BROKEN:
                    return ~cell
            elif stored in (_TIMESTAMP, _TIMESTAMP2):
                micros = _fraction(batch, cell + 4, fraction)
                if micros >= _SECOND:
                    return ~cell
                value = _timestamp_seconds(batch, cell, stored) * _SECOND + micros
                if value == 0:
                    zero_dates += 1
                    kept[index] = NULL_CELL
            else:
                months, day, second, micros = _date_and_time(batch, cell, stored, fraction)
                if day == _BROKEN:
                    return ~cell
                if 1 <= day <= lengths[months]:
                    value = np.int64(starts[months]) + day
                    if stored != _DATE:
                        value = value * _DAY + second * _SECOND + micros
                else:
                    zero_dates += 1
                    kept[index] = NULL_CELL
        store_word(items, index * item, np.uint64(value))
    return zero_dates


@numba.njit
def _write_time(text: int, to: int, seconds: int, micros: int, precision: int) -> Any:
    """Write hour:minute:second and the fraction."""
    hours = seconds // 3600
    to = write_digits(text, to, np.uint64(hours), 3 if hours > 99 else 2)
    store_byte(text, to, 58)
    to = write_digits(text, to + 1, np.uint64(seconds // 60 % 60), 2)
    store_byte(text, to, 58)
    to = write_digits(text, to + 1, np.uint64(seconds % 60), 2)
    if precision:
        store_byte(text, to, 46)
        to = write_digits(text, to + 1, np.uint64(micros // 10 ** (6 - precision)), precision)
    return to


@kernel(types.int64, DATA, CELLS, types.int64, types.int64, OFFSETS, OUT)
def _texts(data: Any, cells: Any, stored: int, precision: int, offsets: Any, out: Any) -> Any:
    """Write MySQL's text of every cell; 0, or the complement of a broken cell's offset."""
    fraction = (precision + 1) // 2
    batch, text = address_of(data), address_of(out)
    to = 0
    offsets[0] = 0
    for index in range(cells.size):
        cell = np.int64(cells[index])
        if cell >= 0:
            if stored in (_TIME, _TIME2):
                value = _duration(batch, cell, stored, fraction)
                if value == _BROKEN:
                    return ~cell
                if value < 0:
                    store_byte(text, to, 45)
                    to += 1
                to = _write_time(text, to, abs(value) // _SECOND, abs(value) % _SECOND, precision)
            else:
                months, day, second, micros = _date_and_time(batch, cell, stored, fraction)
                if day == _BROKEN:
                    return ~cell
                to = write_digits(text, to, np.uint64(months // 13), 4)
                store_byte(text, to, 45)
                to = write_digits(text, to + 1, np.uint64(months % 13), 2)
                store_byte(text, to, 45)
                to = write_digits(text, to + 1, np.uint64(day), 2)
                if stored != _DATE:
                    store_byte(text, to, 32)
                    to = _write_time(text, to + 1, second, micros, precision)
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
        fraction = (self.precision + 1) // 2
        zero_dates = _values(data, cells, self.stored, fraction, *_calendar(), item, values, kept)
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
