"""VECTOR: 32 bit floats one after the other, as a list.

MySQL stores them like a BLOB, MariaDB like a VARBINARY, of which only the catalog tells what it holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numba import types

from engine.decode.columns.base import Codec, Column, Counters, Options
from engine.decode.columns.kernels import (
    CELLS,
    DATA,
    OFFSETS,
    OUT,
    address_of,
    check_content_size,
    content_offsets,
    copy,
    count_nulls,
    kernel,
    validity,
)
from engine.decode.columns.widths import length_bytes
from engine.decode.room import NO_BUFFER, ArrayParts, Room
from engine.errors import EventError
from engine.kernels import Bytes, Int32s

_FLOAT_BYTES = 4


@kernel(types.int64, DATA, CELLS, types.int64, OFFSETS, OUT)
def _floats(data: Any, cells: Any, prefix: int, offsets: Any, out: Any) -> Any:
    """Copy all contents, and turn `offsets` from bytes to floats; -1 for a cell that ends inside a float."""
    batch, content = address_of(data), address_of(out)
    start = np.int64(0)
    for index in range(cells.size):
        end = np.int64(offsets[index + 1])
        if (end - start) % _FLOAT_BYTES:
            return index
        if cells[index] >= 0:
            copy(content, start, batch, np.int64(cells[index]) + prefix, end - start)
        offsets[index + 1] = end // _FLOAT_BYTES
        start = end
    return -1


@dataclass(frozen=True, slots=True)
class VectorCodec:
    """Length-prefixed floats."""

    arrow_type: pa.DataType
    width: int

    def build(self, data: Bytes, cells: Int32s, room: Room, counters: Counters) -> ArrayParts:
        """See `Codec.build`."""
        prefix, count = -self.width, cells.size
        place, offsets = room.take_offsets(count)
        total = content_offsets(data, cells, prefix, offsets)
        check_content_size(total)
        content = room.open(total)
        broken = _floats(data, cells, prefix, offsets, content)
        if broken >= 0:
            raise EventError("a VECTOR value ends inside a number", int(cells[broken]))
        floats = room.keep(total)
        nulls = count_nulls(cells)
        buffers = (*validity(room, cells, nulls), *place, *NO_BUFFER, *floats)
        return ArrayParts((count, nulls, total // _FLOAT_BYTES, 0), buffers)


def vector_codec(column: Column, options: Options) -> Codec:
    """The codec of a VECTOR column."""
    return VectorCodec(pa.list_(pa.float32()), -length_bytes(column))
