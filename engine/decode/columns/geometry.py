"""GEOMETRY and its subtypes: four bytes of SRID, then well-known binary, as struct<srid: int32, wkb: binary>.

An empty value, which old servers store for '' in a NOT NULL column, becomes SRID 0 and empty WKB.
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
    aligned,
    column_kernel,
    content_at,
    copy_content,
    has_room,
    offsets_at,
    put_validity,
    refuse_content,
)
from engine.decode.columns.widths import length_bytes
from engine.kernels.memory import address_of, little_endian

GEOMETRY = pa.struct([pa.field("srid", pa.int32()), pa.field("wkb", pa.binary())])
_SRID_BYTES = 4


@column_kernel
def _geometries(
    data: Any, cells: Any, form: Any, constants: Any, memory: Any, at: int, parts: Any, notes: Any
) -> Any:
    """Split each cell's content, which follows a length of `form[0]` bytes."""
    prefix, count = form[0], cells.size
    offsets = aligned(at + 4 * count)
    content = aligned(offsets + 4 * (count + 1))
    if not has_room(memory, at, content - at, notes):
        return FULL
    batch = address_of(data)
    srids = memory[at : at + 4 * count].view(np.int32)
    for index in range(count):
        cell = np.int64(cells[index])
        srids[index] = 0
        if cell >= 0:
            size = np.int64(little_endian(batch, cell, prefix))
            if 0 < size < _SRID_BYTES:
                notes[PLACE] = cell
                return BROKEN
            if size:
                srids[index] = np.int32(little_endian(batch, cell + prefix, _SRID_BYTES))
    places, out = offsets_at(memory, offsets, count), content_at(memory, content, notes)
    size, nulls = copy_content(data, cells, prefix, _SRID_BYTES, places, out)
    if size < 0:
        return refuse_content(data, cells, prefix, notes)
    # The nodes of the struct, the SRIDs and the WKB, then the buffers of each.
    parts[0:18] = 0
    parts[0] = parts[2] = parts[4] = count
    parts[1] = nulls
    parts[10] = at
    parts[11] = 4 * count
    parts[14] = offsets
    parts[15] = 4 * (count + 1)
    parts[16] = content
    parts[17] = size
    return put_validity(cells, nulls, memory, aligned(content + size), parts, 6, notes)


def geometry_codec(column: Column, options: Options) -> Codec:
    """The codec of a GEOMETRY column, whose metadata is the size of a value's length prefix in bytes."""
    prefix = length_bytes(column)
    return Codec(
        GEOMETRY, -prefix, _geometries, (prefix,), refusal=refused("a geometry is too short to hold its SRID")
    )
