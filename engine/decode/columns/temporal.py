"""DATE, DATETIME, TIMESTAMP and TIME, as Arrow values or as MySQL's text.

A stored value is first split into calendar fields (`temporal_forms`), from which the Arrow value or the text
is computed. Invalid dates (0000-00-00, 2024-00-00, 2023-02-30, the year 0, which neither SQL's calendar nor
Spark's has, and years after 9999) become null, counted as `zero_dates`; text preserves them. TIMESTAMP text
is UTC.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numba
import numpy as np
import pyarrow as pa

from engine.binlog.column import Column
from engine.binlog.field_types import FieldType
from engine.decode.arrow.codec import NULL_CELL, Codec, Options, refused
from engine.decode.arrow.column_kernel import (
    BROKEN,
    FULL,
    PLACE,
    ZERO_DATES,
    aligned,
    buffer_at,
    column_kernel,
    count_nulls,
    finish_fixed,
    finish_variable,
    has_room,
    offsets_at,
)
from engine.decode.columns.digits import write_digits
from engine.decode.columns.temporal_forms import (
    MONTHS,
    OUT_OF_RANGE,
    SECOND,
    WIDTHS,
    Form,
    duration,
    moment,
    timestamp,
)
from engine.errors import EngineError
from engine.kernels.kernel import Bytes
from engine.kernels.memory import address_of, store_byte, store_word
from engine.kernels.typed import Kernel

_DATE = int(Form.DATE)
_FIRST_TIMESTAMP = int(Form.TIMESTAMP)
_FIRST_TIME = int(Form.TIME)

_DAY = 86_400 * SECOND


@cache
def _calendar() -> Bytes:
    """By year * 13 + month, up to the year 9999: days from 1970-01-01 to the day before the month, and then
    by the same index the month's length, as int32.

    Invalid months (month 0 of each year, and the year 0) have no days.
    """
    firsts = np.arange("0001-01", "10000-02", dtype="datetime64[M]").astype("datetime64[D]").astype(np.int32)
    starts, lengths = calendar = np.zeros((2, 10_000, 13), np.int32)
    starts[1:, 1:] = firsts[:-1].reshape(-1, 12) - 1
    lengths[1:, 1:] = np.diff(firsts).reshape(-1, 12)
    return calendar.reshape(-1).view(np.uint8)


def _values_of(form: int) -> Kernel:
    """The kernel of one stored form: a kernel per form saves a branch or two per cell."""

    @column_kernel
    def _values(
        data: Any, cells: Any, numbers: Any, constants: Any, memory: Any, at: int, parts: Any, notes: Any
    ) -> Any:
        """Build days (items of 4 bytes) or microseconds; `numbers`: width, precision and bytes of an item."""
        width, precision, item = numbers[0], numbers[1], numbers[2]
        count = cells.size
        # After the values: the cells that have a value, for the time that it takes, and room for their
        # bitmap.
        bitmap = aligned(at + item * count)
        kept_at = aligned(bitmap + count)
        if not has_room(memory, at, kept_at - at + 4 * count, notes):
            return FULL
        kept = memory[kept_at : kept_at + 4 * count].view(np.int32)
        calendar = constants.view(np.int32)
        starts, lengths = calendar[:MONTHS], calendar[MONTHS:]
        batch, items = address_of(data), address_of(buffer_at(memory, at, item * count))
        zero_dates = 0
        for index in range(count):
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
                    months = months if months < MONTHS else np.int64(0)
                    if day == OUT_OF_RANGE:
                        value = np.int64(OUT_OF_RANGE)
                    elif 1 <= day <= lengths[np.uint64(months)]:
                        value = np.int64(starts[np.uint64(months)]) + day
                        if form != _DATE:
                            value = value * _DAY + second * SECOND + micros
                    else:
                        zero_dates += 1
                        kept[index] = NULL_CELL
                if value == OUT_OF_RANGE:
                    notes[PLACE] = cell
                    return BROKEN
            store_word(items, index * item, np.uint64(value))
        notes[ZERO_DATES] += zero_dates
        return finish_fixed(kept, count_nulls(kept), memory, at, item * count, parts, notes)

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


_LONGEST_TEXT = 27
"""Bytes of 10000-12-31 23:59:59.999999."""


@column_kernel
def _texts(
    data: Any, cells: Any, form: Any, constants: Any, memory: Any, at: int, parts: Any, notes: Any
) -> Any:
    """Write MySQL's text of values of the stored form `form[0]`; `form[1]`: width, `form[2]`: precision."""
    stored, width, precision = form[0], form[1], form[2]
    content = aligned(at + 4 * (cells.size + 1))
    if not has_room(memory, at, content - at + _LONGEST_TEXT * cells.size, notes):
        return FULL
    offsets = offsets_at(memory, at, cells.size)
    batch, text = address_of(data), address_of(buffer_at(memory, content, _LONGEST_TEXT * cells.size))
    to = 0
    offsets[0] = 0
    for index in range(cells.size):
        cell = np.int64(cells[index])
        if cell >= 0:
            if stored >= _FIRST_TIME:
                value = duration(batch, cell, stored, width, precision)
                if value == OUT_OF_RANGE:
                    notes[PLACE] = cell
                    return BROKEN
                if value < 0:
                    store_byte(text, to, 45)
                    to += 1
                to = _write_time(text, to, abs(value) // SECOND, abs(value) % SECOND, precision)
            else:
                months, day, second, micros = moment(batch, cell, stored, width, precision)
                if day == OUT_OF_RANGE:
                    notes[PLACE] = cell
                    return BROKEN
                to = write_digits(text, to, np.uint64(months // 13), 5 if months >= MONTHS else 4)
                store_byte(text, to, 45)
                to = write_digits(text, to + 1, np.uint64(months % 13), 2)
                store_byte(text, to, 45)
                to = write_digits(text, to + 1, np.uint64(day), 2)
                if stored != _DATE:
                    store_byte(text, to, 32)
                    to = _write_time(text, to + 1, second, micros, precision)
        offsets[index + 1] = to
    return finish_variable(cells, count_nulls(cells), memory, at, content, to, parts, notes)


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
    width, precision = WIDTHS[form][column.metadata], column.metadata
    refusal = refused("a temporal value contains a field that is out of range")
    if options.temporal_text:
        return Codec(pa.string(), width, _texts, (int(form), width, precision), refusal=refusal)
    numbers = (width, precision, arrow_type.bit_width // 8)
    return Codec(arrow_type, width, _VALUES[form], numbers, _calendar(), refusal)
