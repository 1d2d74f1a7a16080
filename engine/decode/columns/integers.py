"""TINYINT to BIGINT, and YEAR: little-endian two's complement numbers.

Spark has only signed integers, so unsigned ones widen to the next size that holds them; for BIGINT UNSIGNED
that is decimal128(20, 0). FLOAT and DOUBLE use the same kernel, which only copies their bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numba import types

from engine.binlog.column import Column
from engine.binlog.field_types import FieldType
from engine.decode.arrow.arena import Arena, ArrayParts
from engine.decode.arrow.buffers import fixed
from engine.decode.arrow.codec import Codec, Counters, Options
from engine.kernels.kernel import Bytes, Int32s
from engine.kernels.memory import address_of, little_endian, store_word
from engine.kernels.typed import CELLS, DATA, OUT, kernel

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


@kernel(types.int64, DATA, CELLS, types.int64, types.boolean, types.int64, OUT)
def extend_numbers(data: Any, cells: Any, size: int, signed: bool, item: int, out: Any) -> Any:
    """Extend numbers of `size` bytes to items of `item` bytes (1 to 16) and return the number of nulls.

    Every item is written as a whole word, which the next item partly overwrites; `out` is padded.
    """
    batch, items = address_of(data), address_of(out)
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
    return nulls


@dataclass(frozen=True, slots=True)
class NumberCodec:
    """Little-endian numbers of `width` bytes, sign-extended where `signed`."""

    arrow_type: pa.DataType
    width: int
    signed: bool

    def build(self, data: Bytes, cells: Int32s, arena: Arena, counters: Counters) -> ArrayParts:
        """See `Codec.build`."""
        item = self.arrow_type.bit_width // 8
        values = arena.reserve(cells.size * item)
        nulls = extend_numbers(data, cells, self.width, self.signed, item, values)
        return fixed(arena, cells, item, nulls)


def unsigned_codec(width: int) -> NumberCodec:
    """The codec of unsigned numbers of `width` bytes: 1, 2, 3, 4 or 8."""
    return NumberCodec(_UNSIGNED_TYPES[width], width, signed=False)


@kernel(types.int64, DATA, CELLS, types.int16[::1])
def _years(data: Any, cells: Any, out: Any) -> Any:
    nulls = 0
    for index in range(cells.size):
        cell = cells[index]
        out[index] = 0
        if cell < 0:
            nulls += 1
        elif data[cell]:
            out[index] = 1900 + np.int64(data[cell])
    return nulls


@dataclass(frozen=True, slots=True)
class YearCodec:
    """YEAR: a byte that counts from 1900; 0 is the year 0000. YEAR(2) is converted to the full year, too."""

    arrow_type: pa.DataType
    width: int

    def build(self, data: Bytes, cells: Int32s, arena: Arena, counters: Counters) -> ArrayParts:
        """See `Codec.build`."""
        nulls = _years(data, cells, arena.reserve(2 * cells.size).view(np.int16))
        return fixed(arena, cells, 2, nulls)


def integer_codec(column: Column, options: Options) -> Codec:
    """The codec of an integer column; a column whose signedness is not known counts as signed."""
    table = _UNSIGNED if column.unsigned else _SIGNED
    width, arrow_type = table[FieldType(column.type_code)]
    return NumberCodec(arrow_type, width, signed=not column.unsigned)


def year_codec(column: Column, options: Options) -> Codec:
    """The codec of a YEAR column."""
    return YearCodec(pa.int16(), 1)
