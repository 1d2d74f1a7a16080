"""BIT(n): a big-endian number of the fewest bytes that hold n bits.

BIT(1), which is commonly used as a boolean, becomes one; BIT(2) to BIT(63) become int64, BIT(64) becomes
decimal128(20, 0).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numba import types

from engine.binlog.column import Column
from engine.decode.arrow.arena import Arena, ArrayParts
from engine.decode.arrow.buffers import fixed, validity
from engine.decode.arrow.codec import Codec, Counters, Options
from engine.decode.columns.integers import UNSIGNED_BIGINT
from engine.errors import EngineError
from engine.kernels.kernel import Bytes, Int32s
from engine.kernels.memory import address_of, big_endian, store_word
from engine.kernels.typed import CELLS, DATA, OUT, kernel


@kernel(types.int64, DATA, CELLS, types.int64, types.int64, OUT)
def _numbers(data: Any, cells: Any, size: int, item: int, out: Any) -> Any:
    batch, items = address_of(data), address_of(out)
    nulls = 0
    for index in range(cells.size):
        cell = np.int64(cells[index])
        number = np.uint64(0)
        if cell < 0:
            nulls += 1
        else:
            number = big_endian(batch, cell, size)
        store_word(items, index * item, number)
        if item > 8:
            store_word(items, index * item + 8, np.uint64(0))
    return nulls


@kernel(types.int64, DATA, CELLS, OUT)
def _booleans(data: Any, cells: Any, bitmap: Any) -> Any:
    size = cells.size
    nulls = 0
    for byte in range(bitmap.size):
        bits = 0
        for bit in range(min(8, size - 8 * byte)):
            cell = cells[8 * byte + bit]
            if cell < 0:
                nulls += 1
            elif data[cell] & 1:
                bits |= 1 << bit
        bitmap[byte] = bits
    return nulls


@dataclass(frozen=True, slots=True)
class BitCodec:
    """BIT(2) to BIT(64)."""

    arrow_type: pa.DataType
    width: int

    def build(self, data: Bytes, cells: Int32s, arena: Arena, counters: Counters) -> ArrayParts:
        """See `Codec.build`."""
        item = self.arrow_type.bit_width // 8
        nulls = _numbers(data, cells, self.width, item, arena.reserve(cells.size * item))
        return fixed(arena, cells, item, nulls)


@dataclass(frozen=True, slots=True)
class BooleanCodec:
    """BIT(1)."""

    arrow_type: pa.DataType
    width: int

    def build(self, data: Bytes, cells: Int32s, arena: Arena, counters: Counters) -> ArrayParts:
        """See `Codec.build`."""
        size = (cells.size + 7) // 8
        nulls = _booleans(data, cells, arena.reserve(size)[:size])
        values = arena.keep(size)
        return ArrayParts((cells.size, nulls), (*validity(arena, cells, nulls), *values))


def bit_codec(column: Column, options: Options) -> Codec:
    """The codec of a BIT column, whose metadata is n % 8 | (n // 8) << 8."""
    bits = (column.metadata & 0xFF) + 8 * (column.metadata >> 8)
    if column.metadata & 0xFF > 7 or not 1 <= bits <= 64:
        raise EngineError(f"column {column.name} is a BIT of {bits} bits in the binlog; a BIT has 1 to 64")
    if bits == 1:
        return BooleanCodec(pa.bool_(), 1)
    return BitCodec(UNSIGNED_BIGINT if bits == 64 else pa.int64(), (bits + 7) // 8)
