"""VECTOR: 32-bit floats one after the other, as a list.

MySQL stores them like a BLOB, MariaDB like a VARBINARY that only the catalog identifies as a VECTOR.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numba import types

from engine.binlog.column import Column
from engine.decode.arrow.arena import NO_BUFFER, Arena, ArrayParts
from engine.decode.arrow.buffers import check_content_size, content_offsets, count_nulls, validity
from engine.decode.arrow.codec import Codec, Counters, Options
from engine.decode.columns.widths import length_bytes
from engine.errors import EventError
from engine.kernels.kernel import Bytes, Int32s
from engine.kernels.memory import address_of, copy
from engine.kernels.typed import CELLS, DATA, OFFSETS, OUT, kernel

_FLOAT_BYTES = 4


@kernel(types.int64, DATA, CELLS, types.int64, OFFSETS, OUT)
def _floats(data: Any, cells: Any, prefix: int, offsets: Any, out: Any) -> Any:
    """Copy all contents and convert `offsets` from bytes to floats.

    Returns the index of a cell that ends inside a float, or -1.
    """
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

    def build(self, data: Bytes, cells: Int32s, arena: Arena, counters: Counters) -> ArrayParts:
        """See `Codec.build`."""
        prefix, count = -self.width, cells.size
        offset_buffer, offsets = arena.allocate_offsets(count)
        total = content_offsets(data, cells, prefix, offsets)
        check_content_size(total)
        content = arena.reserve(total)
        broken = _floats(data, cells, prefix, offsets, content)
        if broken >= 0:
            raise EventError("a VECTOR value ends inside a number", int(cells[broken]))
        floats = arena.keep(total)
        nulls = count_nulls(cells)
        buffers = (*validity(arena, cells, nulls), *offset_buffer, *NO_BUFFER, *floats)
        return ArrayParts((count, nulls, total // _FLOAT_BYTES, 0), buffers)


def vector_codec(column: Column, options: Options) -> Codec:
    """The codec of a VECTOR column."""
    return VectorCodec(pa.list_(pa.float32()), -length_bytes(column))
