"""BINARY, VARBINARY and BLOB: bytes as they are, with BINARY(n) padded to n bytes.

The server strips a BINARY's trailing zero bytes when it writes the binlog; `SELECT` returns n bytes, and so
does this module.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from engine.binlog.column import Column
from engine.binlog.field_types import FieldType
from engine.decode.arrow.codec import Codec, Options, refused
from engine.decode.arrow.column_kernel import (
    BROKEN,
    FULL,
    LARGEST,
    PLACE,
    SIZE,
    TOO_LARGE,
    aligned,
    buffer_at,
    column_kernel,
    content_at,
    copy_content,
    finish_variable,
    has_room,
    offsets_at,
    refuse_content,
)
from engine.decode.columns.widths import length_bytes
from engine.kernels.memory import address_of, copy_padded, little_endian


@column_kernel
def _bytes(
    data: Any, cells: Any, form: Any, constants: Any, memory: Any, at: int, parts: Any, notes: Any
) -> Any:
    """Copy each cell's content, which follows a length of `form[0]` bytes."""
    content = aligned(at + 4 * (cells.size + 1))
    if not has_room(memory, at, content - at, notes):
        return FULL
    offsets = offsets_at(memory, at, cells.size)
    size, nulls = copy_content(data, cells, form[0], 0, offsets, content_at(memory, content, notes))
    if size < 0:
        return refuse_content(data, cells, form[0], notes)
    return finish_variable(cells, nulls, memory, at, content, size, parts, notes)


def bytes_codec(width: int) -> Codec:
    """Length-prefixed bytes of any number; `width` as in `Codec`."""
    return Codec(pa.binary(), width, _bytes, (-width,))


@column_kernel
def _padded(
    data: Any, cells: Any, form: Any, constants: Any, memory: Any, at: int, parts: Any, notes: Any
) -> Any:
    """Copy each cell's content, which follows a length of `form[0]` bytes, and pad it to `form[1]` bytes."""
    prefix, length = form[0], form[1]
    start = aligned(at + 4 * (cells.size + 1))
    if not has_room(memory, at, start - at + length * cells.size, notes):
        if length * cells.size > notes[LARGEST]:
            notes[SIZE] = length * cells.size
            return TOO_LARGE
        return FULL
    offsets, out = offsets_at(memory, at, cells.size), buffer_at(memory, start, length * cells.size)
    batch, content = address_of(data), address_of(out)
    nulls = 0
    to = 0
    offsets[0] = 0
    for index in range(cells.size):
        cell = np.int64(cells[index])
        if cell < 0:
            nulls += 1
        else:
            size = np.int64(little_endian(batch, cell, prefix))
            if size > length:
                notes[PLACE] = cell
                return BROKEN
            copy_padded(content, to, batch, cell + prefix, size, data.size)
            out[to + size : to + length] = 0
            to += length
        offsets[index + 1] = to
    return finish_variable(cells, nulls, memory, at, start, to, parts, notes)


def binary_codec(column: Column, options: Options) -> Codec:
    """The codec of a column of bytes."""
    width = -length_bytes(column)
    if column.type_code != FieldType.STRING:
        return bytes_codec(width)
    length = column.metadata
    refusal = refused(f"a BINARY({length}) value is longer than {length} bytes")
    return Codec(pa.binary(), width, _padded, (-width, length), refusal=refusal)
