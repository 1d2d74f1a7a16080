"""BINARY, VARBINARY and BLOB: bytes as they are, with BINARY(n) padded to n bytes.

The server strips a BINARY's trailing zero bytes when it writes the binlog; `SELECT` returns n bytes, and so
does this module.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numba import types

from engine.binlog.column import Column
from engine.binlog.field_types import FieldType
from engine.decode.arrow.arena import Arena, ArrayParts
from engine.decode.arrow.buffers import (
    FULL,
    check_content_size,
    copy_content,
    refuse_content,
    reserve_content,
    variable,
)
from engine.decode.arrow.codec import Codec, Counters, Options
from engine.decode.columns.widths import length_bytes
from engine.errors import EventError
from engine.kernels.kernel import Bytes, Int32s
from engine.kernels.memory import address_of, copy_padded, little_endian
from engine.kernels.typed import CELLS, DATA, OFFSETS, OUT, kernel


@dataclass(frozen=True, slots=True)
class BinaryCodec:
    """Length-prefixed bytes."""

    arrow_type: pa.DataType
    width: int

    def build(self, data: Bytes, cells: Int32s, arena: Arena, counters: Counters) -> ArrayParts:
        """See `Codec.build`."""
        offset_buffer, offsets = arena.allocate_offsets(cells.size)
        size, nulls = copy_content(data, cells, -self.width, 0, offsets, reserve_content(arena))
        if size == FULL:
            refuse_content(data, cells, -self.width, arena)
        return variable(arena, cells, offset_buffer, size, nulls)


@kernel(types.int64, DATA, CELLS, types.int64, types.int64, OFFSETS, OUT)
def _pad(data: Any, cells: Any, prefix: int, length: int, offsets: Any, out: Any) -> Any:
    """Copy each cell's content and pad it to `length`; return the number of nulls.

    For a cell that is too long, return the complement of its offset.
    """
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
                return ~cell
            copy_padded(content, to, batch, cell + prefix, size, data.size)
            out[to + size : to + length] = 0
            to += length
        offsets[index + 1] = to
    return nulls


@dataclass(frozen=True, slots=True)
class PaddedBinaryCodec:
    """BINARY(length)."""

    arrow_type: pa.DataType
    width: int
    length: int

    def build(self, data: Bytes, cells: Int32s, arena: Arena, counters: Counters) -> ArrayParts:
        """See `Codec.build`."""
        offset_buffer, offsets = arena.allocate_offsets(cells.size)
        check_content_size(cells.size * self.length)
        content = arena.reserve(cells.size * self.length)
        nulls = _pad(data, cells, -self.width, self.length, offsets, content)
        if nulls < 0:
            raise EventError(f"a BINARY({self.length}) value is longer than {self.length} bytes", ~nulls)
        return variable(arena, cells, offset_buffer, int(offsets[-1]), nulls)


def binary_codec(column: Column, options: Options) -> Codec:
    """The codec of a column of bytes."""
    width = -length_bytes(column)
    if column.type_code == FieldType.STRING:
        return PaddedBinaryCodec(pa.binary(), width, column.metadata)
    return BinaryCodec(pa.binary(), width)
