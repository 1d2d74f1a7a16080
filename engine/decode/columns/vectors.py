"""VECTOR: 32 bit floats one after the other, as a list.

MySQL stores them like a BLOB, MariaDB like a VARBINARY, of which only the catalog tells what it holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numba import types
from numpy.typing import NDArray

from engine.decode.columns.base import Codec, Column, Counters, Options
from engine.decode.columns.kernels import (
    CELLS,
    DATA,
    OFFSETS,
    OUT,
    address_of,
    content_buffer,
    content_offsets,
    copy,
    count_nulls,
    kernel,
    validity,
)
from engine.decode.columns.widths import length_bytes
from engine.errors import EventError

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

    def build(self, data: NDArray[np.uint8], cells: NDArray[np.int32], counters: Counters) -> pa.Array:
        """See `Codec.build`."""
        prefix, count = -self.width, cells.size
        offsets = np.empty(count + 1, np.int32)
        total = content_offsets(data, cells, prefix, offsets)
        content = content_buffer(total)
        broken = _floats(data, cells, prefix, offsets, content)
        if broken >= 0:
            raise EventError("a VECTOR value ends inside a number", int(cells[broken]))
        floats = [None, pa.py_buffer(content[:total])]
        values = pa.Array.from_buffers(pa.float32(), total // _FLOAT_BYTES, floats, 0)
        nulls = count_nulls(cells)
        buffers = [validity(cells, nulls), pa.py_buffer(offsets)]
        return pa.Array.from_buffers(self.arrow_type, count, buffers, nulls, children=[values])


def vector_codec(column: Column, options: Options) -> Codec:
    """The codec of a VECTOR column."""
    return VectorCodec(pa.list_(pa.float32()), -length_bytes(column))
