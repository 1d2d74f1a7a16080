"""VECTOR: 32-bit floats one after the other, as a list.

MySQL stores them like a BLOB, MariaDB like a VARBINARY that only the catalog identifies as a VECTOR.
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

_FLOAT_BYTES = 4


@column_kernel
def _vectors(
    data: Any, cells: Any, form: Any, constants: Any, memory: Any, at: int, parts: Any, notes: Any
) -> Any:
    """Copy each cell's content, which follows a length of `form[0]` bytes; offsets count floats."""
    count = cells.size
    content = aligned(at + 4 * (count + 1))
    if not has_room(memory, at, content - at, notes):
        return FULL
    offsets = offsets_at(memory, at, count)
    size, nulls = copy_content(data, cells, form[0], 0, offsets, content_at(memory, content, notes))
    if size < 0:
        return refuse_content(data, cells, form[0], notes)
    start = np.int64(0)
    for index in range(count):
        end = np.int64(offsets[index + 1])
        if (end - start) % _FLOAT_BYTES:
            notes[PLACE] = cells[index]
            return BROKEN
        offsets[index + 1] = end // _FLOAT_BYTES
        start = end
    # The nodes of the lists and of the floats, then the buffers of each.
    parts[0:12] = 0
    parts[0] = count
    parts[1] = nulls
    parts[2] = size // _FLOAT_BYTES
    parts[6] = at
    parts[7] = 4 * (count + 1)
    parts[10] = content
    parts[11] = size
    return put_validity(cells, nulls, memory, aligned(content + size), parts, 4, notes)


def vector_codec(column: Column, options: Options) -> Codec:
    """The codec of a VECTOR column."""
    prefix = length_bytes(column)
    return Codec(
        pa.list_(pa.float32()),
        -prefix,
        _vectors,
        (prefix,),
        refusal=refused("a VECTOR value ends inside a number"),
    )
