"""GEOMETRY and its subtypes: four bytes of SRID, then well-known binary, as struct<srid: int32, wkb: binary>.

An empty value, which old servers store for '' in a NOT NULL column, becomes SRID 0 and empty WKB.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numba import types

from engine.binlog.column import Column
from engine.decode.arrow.arena import NO_BUFFER, Arena, ArrayParts
from engine.decode.arrow.buffers import FULL, copy_content, refuse_content, reserve_content, validity
from engine.decode.arrow.codec import Codec, Counters, Options
from engine.decode.columns.widths import length_bytes
from engine.errors import EventError
from engine.kernels.kernel import Bytes, Int32s
from engine.kernels.memory import address_of, little_endian
from engine.kernels.typed import CELLS, DATA, kernel

GEOMETRY = pa.struct([pa.field("srid", pa.int32()), pa.field("wkb", pa.binary())])
_SRID_BYTES = 4


@kernel(types.int64, DATA, CELLS, types.int64, types.int32[::1])
def _srids(data: Any, cells: Any, prefix: int, srids: Any) -> Any:
    """Fill the SRIDs; return the complement of a broken cell's offset, or 0."""
    batch = address_of(data)
    for index in range(cells.size):
        cell = np.int64(cells[index])
        srids[index] = 0
        if cell >= 0:
            size = np.int64(little_endian(batch, cell, prefix))
            if 0 < size < _SRID_BYTES:
                return ~cell
            if size:
                srids[index] = np.int32(little_endian(batch, cell + prefix, _SRID_BYTES))
    return 0


@dataclass(frozen=True, slots=True)
class GeometryCodec:
    """Length-prefixed SRID and WKB."""

    arrow_type: pa.DataType
    width: int

    def build(self, data: Bytes, cells: Int32s, arena: Arena, counters: Counters) -> ArrayParts:
        """See `Codec.build`."""
        prefix, count = -self.width, cells.size
        broken = _srids(data, cells, prefix, arena.reserve(4 * count).view(np.int32))
        if broken < 0:
            raise EventError("a geometry is too short to hold its SRID", ~broken)
        srids = arena.keep(4 * count)
        offset_buffer, offsets = arena.allocate_offsets(count)
        size, nulls = copy_content(data, cells, prefix, _SRID_BYTES, offsets, reserve_content(arena))
        if size == FULL:
            refuse_content(data, cells, prefix, arena)
        content = arena.keep(size)
        buffers = (*validity(arena, cells, nulls), *NO_BUFFER, *srids, *NO_BUFFER, *offset_buffer, *content)
        return ArrayParts((count, nulls, count, 0, count, 0), buffers)


def geometry_codec(column: Column, options: Options) -> Codec:
    """The codec of a GEOMETRY column, whose metadata is the size of a value's length prefix in bytes."""
    return GeometryCodec(GEOMETRY, -length_bytes(column))
