"""GEOMETRY and its kin: four bytes of SRID, then well-known binary, as struct<srid: int32, wkb: binary>.

An empty value, which old servers store for '' in a NOT NULL column, becomes SRID 0 and no WKB.
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
    address_of,
    content_buffer,
    copy_content,
    count_nulls,
    kernel,
    little_endian,
    validity,
)
from engine.decode.columns.widths import length_bytes
from engine.errors import EventError

GEOMETRY = pa.struct([pa.field("srid", pa.int32()), pa.field("wkb", pa.binary())])
_SRID_BYTES = 4


@kernel(types.int64, DATA, CELLS, types.int64, types.int32[::1], OFFSETS)
def _srids(data: Any, cells: Any, prefix: int, srids: Any, offsets: Any) -> Any:
    """Fill SRIDs and offsets of the WKBs; their total size, or the complement of a broken cell's offset."""
    batch = address_of(data)
    total = np.int64(0)
    offsets[0] = 0
    for index in range(cells.size):
        cell = np.int64(cells[index])
        srids[index] = 0
        if cell >= 0:
            size = np.int64(little_endian(batch, cell, prefix))
            if 0 < size < _SRID_BYTES:
                return ~cell
            if size:
                srids[index] = np.int32(little_endian(batch, cell + prefix, _SRID_BYTES))
                total += size - _SRID_BYTES
        offsets[index + 1] = total
    return total


@dataclass(frozen=True, slots=True)
class GeometryCodec:
    """Length-prefixed SRID and WKB."""

    arrow_type: pa.DataType
    width: int

    def build(self, data: NDArray[np.uint8], cells: NDArray[np.int32], counters: Counters) -> pa.Array:
        """See `Codec.build`."""
        prefix, count = -self.width, cells.size
        srids, offsets = np.empty(count, np.int32), np.empty(count + 1, np.int32)
        total = _srids(data, cells, prefix, srids, offsets)
        if total < 0:
            raise EventError("a geometry is too short to hold its SRID", ~total)
        content = content_buffer(total)
        copy_content(data, cells, prefix + _SRID_BYTES, offsets, content)
        wkb = [None, pa.py_buffer(offsets), pa.py_buffer(content[:total])]
        children = [
            pa.Array.from_buffers(pa.int32(), count, [None, pa.py_buffer(srids)], 0),
            pa.Array.from_buffers(pa.binary(), count, wkb, 0),
        ]
        nulls = count_nulls(cells)
        return pa.Array.from_buffers(
            self.arrow_type, count, [validity(cells, nulls)], nulls, children=children
        )


def geometry_codec(column: Column, options: Options) -> Codec:
    """The codec of a GEOMETRY column, whose metadata is the number of bytes of a value's length."""
    return GeometryCodec(GEOMETRY, -length_bytes(column))
