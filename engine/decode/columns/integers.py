"""TINYINT to BIGINT, and YEAR: little-endian two's complement numbers.

Spark has only signed integers, so unsigned ones widen to the next size that holds them; for BIGINT UNSIGNED
that is decimal128(20, 0). FLOAT and DOUBLE use the same kernel, which only copies their bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from engine.binlog.column import Column
from engine.binlog.field_types import FieldType
from engine.decode.arrow.codec import Codec, Options
from engine.decode.arrow.column_kernel import (
    FULL,
    UNNAMED_MEMBERS,
    buffer_at,
    column_kernel,
    finish_fixed,
    has_room,
)
from engine.kernels.memory import address_of, little_endian, store_word

UNSIGNED_BIGINT = pa.decimal128(20, 0)

_SIGNED = {
    FieldType.TINY: (1, pa.int8()),
    FieldType.SHORT: (2, pa.int16()),
    FieldType.INT24: (3, pa.int32()),
    FieldType.LONG: (4, pa.int32()),
    FieldType.LONGLONG: (8, pa.int64()),
}
_UNSIGNED = {
    FieldType.TINY: (1, pa.int16()),
    FieldType.SHORT: (2, pa.int32()),
    FieldType.INT24: (3, pa.int32()),
    FieldType.LONG: (4, pa.int64()),
    FieldType.LONGLONG: (8, UNSIGNED_BIGINT),
}
_UNSIGNED_TYPES = dict(_UNSIGNED.values())
"""Arrow types by the number of bytes."""


_COUNTED = 3
"""The number in `form` that says whether values are counted as `unnamed_members`."""


@column_kernel
def _numbers(
    data: Any, cells: Any, form: Any, constants: Any, memory: Any, at: int, parts: Any, notes: Any
) -> Any:
    """Extend numbers of `form[0]` bytes, signed if `form[1]`, to items of `form[2]` bytes (1 to 16).

    Every item is written as a whole word, which the next item partly overwrites.
    """
    size, signed, item = form[0], form[1] != 0, form[2]
    if not has_room(memory, at, item * cells.size, notes):
        return FULL
    batch, items = address_of(data), address_of(buffer_at(memory, at, item * cells.size))
    nulls = 0
    shift = 64 - 8 * size
    for index in range(cells.size):
        cell = np.int64(cells[index])
        number = np.uint64(0)
        if cell < 0:
            nulls += 1
        else:
            number = little_endian(batch, cell, size)
            if signed:
                number = np.uint64(np.int64(number << np.uint64(shift)) >> np.int64(shift))
        store_word(items, index * item, number)
        if item > 8:
            store_word(items, index * item + 8, np.uint64(0))
    if form[_COUNTED]:
        notes[UNNAMED_MEMBERS] += cells.size - nulls
    return finish_fixed(cells, nulls, memory, at, item * cells.size, parts, notes)


def number_codec(arrow_type: pa.DataType, width: int, signed: bool, counted: bool = False) -> Codec:
    """Little-endian numbers of `width` bytes, sign-extended if `signed`.

    `counted`: they are members of an ENUM or SET that are not known.
    """
    return Codec(arrow_type, width, _numbers, (width, signed, arrow_type.bit_width // 8, counted))


def unsigned_codec(width: int, counted: bool = False) -> Codec:
    """The codec of unsigned numbers of `width` bytes: 1, 2, 3, 4 or 8."""
    return number_codec(_UNSIGNED_TYPES[width], width, signed=False, counted=counted)


@column_kernel
def _years(
    data: Any, cells: Any, form: Any, constants: Any, memory: Any, at: int, parts: Any, notes: Any
) -> Any:
    if not has_room(memory, at, 2 * cells.size, notes):
        return FULL
    years = memory[at : at + 2 * cells.size].view(np.int16)
    nulls = 0
    for index in range(cells.size):
        cell = cells[index]
        years[index] = 0
        if cell < 0:
            nulls += 1
        elif data[cell]:
            years[index] = 1900 + np.int64(data[cell])
    return finish_fixed(cells, nulls, memory, at, 2 * cells.size, parts, notes)


def integer_codec(column: Column, options: Options) -> Codec:
    """The codec of an integer column; a column whose signedness is not known counts as signed."""
    table = _UNSIGNED if column.unsigned else _SIGNED
    width, arrow_type = table[FieldType(column.type_code)]
    return number_codec(arrow_type, width, signed=not column.unsigned)


def year_codec(column: Column, options: Options) -> Codec:
    """YEAR: a byte that counts from 1900; 0 is the year 0000. YEAR(2) is converted to the full year, too."""
    return Codec(pa.int16(), 1, _years)
