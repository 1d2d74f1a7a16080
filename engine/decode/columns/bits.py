"""BIT(n): a big-endian number of the fewest bytes that hold n bits.

BIT(1), which is commonly used as a boolean, becomes one; BIT(2) to BIT(63) become int64, BIT(64) becomes
decimal128(20, 0).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from engine.binlog.column import Column
from engine.decode.arrow.codec import Codec, Options, refused
from engine.decode.arrow.column_kernel import (
    BROKEN,
    FULL,
    PLACE,
    buffer_at,
    column_kernel,
    finish_fixed,
    has_room,
)
from engine.decode.columns.integers import UNSIGNED_BIGINT
from engine.errors import EngineError
from engine.kernels.memory import address_of, big_endian, store_word

_MORE_BITS = refused("a value of a BIT has more bits than its column")


@column_kernel
def _numbers(
    data: Any, cells: Any, form: Any, constants: Any, memory: Any, at: int, parts: Any, notes: Any
) -> Any:
    """Extend numbers of `form[0]` bits to items of `form[1]` bytes."""
    bits, item = form[0], form[1]
    size = (bits + 7) >> 3
    if not has_room(memory, at, item * cells.size, notes):
        return FULL
    batch, items = address_of(data), address_of(buffer_at(memory, at, item * cells.size))
    nulls = 0
    for index in range(cells.size):
        cell = np.int64(cells[index])
        number = np.uint64(0)
        if cell < 0:
            nulls += 1
        else:
            number = big_endian(batch, cell, size)
            if bits < 64 and number >> np.uint64(bits):
                notes[PLACE] = cell
                return BROKEN
        store_word(items, index * item, number)
        if item > 8:
            store_word(items, index * item + 8, np.uint64(0))
    return finish_fixed(cells, nulls, memory, at, item * cells.size, parts, notes)


@column_kernel
def _booleans(
    data: Any, cells: Any, form: Any, constants: Any, memory: Any, at: int, parts: Any, notes: Any
) -> Any:
    count = cells.size
    size = (count + 7) >> 3
    if not has_room(memory, at, size, notes):
        return FULL
    nulls = 0
    for byte in range(size):
        bits = 0
        for bit in range(min(8, count - 8 * byte)):
            cell = cells[8 * byte + bit]
            if cell < 0:
                nulls += 1
            elif data[cell] > 1:
                notes[PLACE] = cell
                return BROKEN
            else:
                bits |= data[cell] << bit
        memory[at + byte] = bits
    return finish_fixed(cells, nulls, memory, at, size, parts, notes)


def bit_codec(column: Column, options: Options) -> Codec:
    """The codec of a BIT column, whose metadata is n % 8 | (n // 8) << 8."""
    bits = (column.metadata & 0xFF) + 8 * (column.metadata >> 8)
    if column.metadata & 0xFF > 7 or not 1 <= bits <= 64:
        raise EngineError(f"column {column.name} is a BIT of {bits} bits in the binlog; a BIT has 1 to 64")
    if bits == 1:
        return Codec(pa.bool_(), 1, _booleans, refusal=_MORE_BITS)
    arrow_type, width = UNSIGNED_BIGINT if bits == 64 else pa.int64(), (bits + 7) // 8
    return Codec(arrow_type, width, _numbers, (bits, arrow_type.bit_width // 8), refusal=_MORE_BITS)
