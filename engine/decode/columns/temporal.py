"""DATE, DATETIME, TIMESTAMP and TIME, as Arrow values or as MySQL's text.

A stored value is first split into calendar fields (`temporal_forms`), from which the Arrow value or the text
is computed. Invalid dates (0000-00-00, 2024-00-00, 2023-02-30, and the year 0, which neither SQL's calendar
nor Spark's has) become null, counted as `zero_dates`; text preserves them. TIMESTAMP text is UTC.
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

from engine.binlog.column import Column
from engine.binlog.field_types import FieldType
from engine.decode.arrow.arena import Arena, ArrayParts
from engine.decode.arrow.buffers import count_nulls, fixed, variable
from engine.decode.arrow.codec import NULL_CELL, Codec, Counters, Options
from engine.decode.columns.digits import write_digits
from engine.decode.columns.temporal_forms import BROKEN, SECOND, WIDTHS, Form, duration, moment, timestamp
from engine.errors import EngineError, EventError
from engine.kernels.kernel import Bytes, Int32s
from engine.kernels.memory import address_of, store_byte, store_word
from engine.kernels.typed import CELLS, DATA, OFFSETS, OUT, Kernel, kernel

_DATE = int(Form.DATE)
_FIRST_TIMESTAMP, _LAST_TIMESTAMP = int(Form.TIMESTAMP), int(Form.TIMESTAMP_NUMBER)
_FIRST_TIME = int(Form.TIME)

_DAY = 86_400 * SECOND
_TABLE = types.Array(types.int32, 1, "C", readonly=True)


@cache
def _calendar() -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """By year * 13 + month, up to the year 9999: days from 1970-01-01 to the day before the month, and its
    length.

    Invalid months (month 0 of each year, and the year 0) have no days.
    """
    firsts = np.arange("0001-01", "10000-02", dtype="datetime64[M]").astype("datetime64[D]").astype(np.int32)
    starts, lengths = np.zeros((2, 10_000, 13), np.int32)
    starts[1:, 1:] = firsts[:-1].reshape(-1, 12) - 1
    lengths[1:, 1:] = np.diff(firsts).reshape(-1, 12)
    return starts.reshape(-1), lengths.reshape(-1)


def _values_of(form: int) -> Kernel:
    """The kernel of one stored form: a kernel per form saves a branch or two per cell."""

    @kernel(types.int64, DATA, CELLS, *[types.int64] * 2, _TABLE, _TABLE, types.int64, OUT, OFFSETS)
    def _values(
        data: Any,
        cells: Any,
        width: int,
        precision: int,
        starts: Any,
        lengths: Any,
        item: int,
        out: Any,
        kept: Any,
    ) -> Any:
        """Fill `out` with days (items of 4 bytes) or microseconds, and `kept` with cells that have a value.

        Returns the number of invalid dates, or the complement of a broken cell's offset.
        """
        batch, items = address_of(data), address_of(out)
        zero_dates = 0
        for index in range(cells.size):
            cell = np.int64(cells[index])
            value = np.int64(0)
            kept[index] = cell
            if cell >= 0:
                if form >= _FIRST_TIME:
                    value = duration(batch, cell, form, width, precision)
                elif form >= _FIRST_TIMESTAMP:
                    value = timestamp(batch, cell, form, precision)
                    if value == 0:
                        zero_dates += 1
                        kept[index] = NULL_CELL
                else:
                    months, day, second, micros = moment(batch, cell, form, width, precision)
                    if day == BROKEN:
                        value = np.int64(BROKEN)
                    elif 1 <= day <= lengths[np.uint64(months)]:
                        value = np.int64(starts[np.uint64(months)]) + day
                        if form != _DATE:
                            value = value * _DAY + second * SECOND + micros
                    else:
                        zero_dates += 1
                        kept[index] = NULL_CELL
                if value == BROKEN:
                    return ~cell
            store_word(items, index * item, np.uint64(value))
        return zero_dates

    return _values


_VALUES = {form: _values_of(int(form)) for form in Form}


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


@kernel(types.int64, DATA, CELLS, *[types.int64] * 3, OFFSETS, OUT)
def _texts(data: Any, cells: Any, form: int, width: int, precision: int, offsets: Any, out: Any) -> Any:
    """Write MySQL's text of every cell; return 0, or the complement of a broken cell's offset."""
    batch, text = address_of(data), address_of(out)
    to = 0
    offsets[0] = 0
    for index in range(cells.size):
        cell = np.int64(cells[index])
        if cell >= 0:
            if form >= _FIRST_TIME:
                value = duration(batch, cell, form, width, precision)
                if value == BROKEN:
                    return ~cell
                if value < 0:
                    store_byte(text, to, 45)
                    to += 1
                to = _write_time(text, to, abs(value) // SECOND, abs(value) % SECOND, precision)
            else:
                months, day, second, micros = moment(batch, cell, form, width, precision)
                if day == BROKEN:
                    return ~cell
                to = write_digits(text, to, np.uint64(months // 13), 4)
                store_byte(text, to, 45)
                to = write_digits(text, to + 1, np.uint64(months % 13), 2)
                store_byte(text, to, 45)
                to = write_digits(text, to + 1, np.uint64(day), 2)
                if form != _DATE:
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
    form: Form
    precision: int

    def build(self, data: Bytes, cells: Int32s, arena: Arena, counters: Counters) -> ArrayParts:
        """See `Codec.build`."""
        if pa.types.is_string(self.arrow_type):
            return self._text(data, cells, arena)
        item = self.arrow_type.bit_width // 8
        values = arena.reserve(cells.size * item)
        kept = np.empty(cells.size, np.int32)
        fill = _VALUES[self.form]
        zero_dates = fill(data, cells, self.width, self.precision, *_calendar(), item, values, kept)
        _check(zero_dates)
        counters.add("zero_dates", zero_dates)
        return fixed(arena, kept, item, count_nulls(kept))

    def _text(self, data: Bytes, cells: Int32s, arena: Arena) -> ArrayParts:
        offset_buffer, offsets = arena.allocate_offsets(cells.size)
        stored = int(self.form), self.width, self.precision
        _check(_texts(data, cells, *stored, offsets, arena.reserve(cells.size * _LONGEST_TEXT)))
        return variable(arena, cells, offset_buffer, int(offsets[-1]), count_nulls(cells))


def _check(result: int) -> None:
    if result < 0:
        raise EventError("a temporal value contains a field that is out of range", ~result)


_DATES = pa.date32()
_MOMENTS = pa.timestamp("us")
_INSTANTS = pa.timestamp("us", "UTC")
_DURATIONS = pa.duration("us")

_FORMS = {
    FieldType.DATE: (Form.DATE, Form.DATE, _DATES),
    FieldType.NEWDATE: (Form.DATE, Form.DATE, _DATES),
    FieldType.DATETIME: (Form.DATETIME, Form.DATETIME_NUMBER, _MOMENTS),
    FieldType.DATETIME2: (Form.DATETIME2, Form.DATETIME2, _MOMENTS),
    FieldType.TIMESTAMP: (Form.TIMESTAMP, Form.TIMESTAMP_NUMBER, _INSTANTS),
    FieldType.TIMESTAMP2: (Form.TIMESTAMP2, Form.TIMESTAMP2, _INSTANTS),
    FieldType.TIME: (Form.TIME, Form.TIME_NUMBER, _DURATIONS),
    FieldType.TIME2: (Form.TIME2, Form.TIME2, _DURATIONS),
}
"""Type code → stored form without a fraction and with one, Arrow type."""


def temporal_codec(column: Column, options: Options) -> Codec:
    """The codec of a temporal column, whose metadata is the number of fraction digits."""
    whole, fractional, arrow_type = _FORMS[FieldType(column.type_code)]
    form = fractional if column.metadata else whole
    if column.metadata >= len(WIDTHS[form]):
        raise EngineError(
            f"column {column.name} has {column.metadata} fraction digits in the binlog, "
            "which is more than its type allows"
        )
    if options.temporal_text:
        arrow_type = pa.string()
    return TemporalCodec(arrow_type, WIDTHS[form][column.metadata], form, column.metadata)
