"""ENUM and SET: an index into, or a bit mask over, the members in the table map or the catalog.

The members are stored as one blob of UTF-8 with offsets, from which a kernel copies. If the members are not
known, the array holds the stored numbers, with the type of an unsigned integer column of the same width, so
that no number is mistaken for a member's text; they are counted as `unnamed_members`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import pyarrow as pa
from numba import types
from numpy.typing import NDArray

from engine.binlog.column import Column
from engine.binlog.field_types import FieldType
from engine.decode.arrow.arena import Arena, ArenaFull, ArrayParts
from engine.decode.arrow.buffers import FULL, check_content_size, reserve_content, variable
from engine.decode.arrow.codec import Codec, Counters, Options
from engine.decode.columns.integers import NumberCodec, unsigned_codec
from engine.errors import EngineError, EventError, UnsupportedError
from engine.kernels.kernel import Bytes, Int32s
from engine.kernels.memory import PADDING, address_of, copy_padded, little_endian
from engine.kernels.typed import CELLS, DATA, OFFSETS, OUT, kernel

_ENUM_BYTES, _SET_BYTES = (1, 2), (1, 2, 3, 4, 8)
"""The possible sizes of a value, in bytes."""
_BOUNDS = types.Array(types.int32, 1, "C", readonly=True)


@numba.njit
def _member(bounds: Any, number: Any) -> Any:
    """Start and size of a member in the blob."""
    start = np.int64(bounds[number])
    return start, np.int64(bounds[number + 1]) - start


_TEXTS = types.UniTuple(types.int64, 3)
"""`SIZE_AND_NULLS`, and the complement of the offset of a cell that exceeds the members, or 0."""


@kernel(_TEXTS, DATA, CELLS, types.int64, _BOUNDS, DATA, OFFSETS, OUT)
def _enum_texts(data: Any, cells: Any, size: int, bounds: Any, blob: Any, offsets: Any, out: Any) -> Any:
    """Copy each cell's member."""
    batch, names, content = address_of(data), address_of(blob), address_of(out)
    members = np.uint64(bounds.size - 1)
    capacity = out.size - PADDING
    nulls = 0
    to = np.int64(0)
    offsets[0] = 0
    for index in range(cells.size):
        cell = np.int64(cells[index])
        if cell < 0:
            nulls += 1
        else:
            number = little_endian(batch, cell, size)
            if number >= members:
                return to, nulls, ~cell
            start, length = _member(bounds, number)
            if length > capacity - to:
                return FULL, nulls, 0
            copy_padded(content, to, names, start, length, blob.size)
            to += length
        offsets[index + 1] = to
    return to, nulls, 0


@kernel(_TEXTS, DATA, CELLS, types.int64, _BOUNDS, DATA, OFFSETS, OUT)
def _set_texts(data: Any, cells: Any, size: int, bounds: Any, blob: Any, offsets: Any, out: Any) -> Any:
    """Copy each cell's members, with commas between them."""
    batch, names, content = address_of(data), address_of(blob), address_of(out)
    members = bounds.size - 1
    capacity = out.size - PADDING
    nulls = 0
    to = np.int64(0)
    offsets[0] = 0
    for index in range(cells.size):
        cell = np.int64(cells[index])
        if cell < 0:
            nulls += 1
        else:
            mask = little_endian(batch, cell, size)
            number = 0
            while mask:
                member = mask & np.uint64(1)
                mask >>= np.uint64(1)
                if member:
                    if number >= members:
                        return to, nulls, ~cell
                    start, length = _member(bounds, number)
                    if length + 1 > capacity - to:
                        return FULL, nulls, 0
                    copy_padded(content, to, names, start, length, blob.size)
                    to += length
                    if mask:
                        out[to] = 44
                        to += 1
                number += 1
        offsets[index + 1] = to
    return to, nulls, 0


@dataclass(frozen=True, slots=True)
class UnnamedCodec:
    """An ENUM or SET whose members are not known."""

    numbers: NumberCodec

    @property
    def arrow_type(self) -> pa.DataType:
        """See `Codec.arrow_type`."""
        return self.numbers.arrow_type

    @property
    def width(self) -> int:
        """See `Codec.width`."""
        return self.numbers.width

    def build(self, data: Bytes, cells: Int32s, arena: Arena, counters: Counters) -> ArrayParts:
        """See `Codec.build`."""
        array = self.numbers.build(data, cells, arena, counters)
        rows, nulls = array.nodes
        counters.add("unnamed_members", rows - nulls)
        return array


@dataclass(frozen=True, slots=True, eq=False)
class MembersCodec:
    """An ENUM (whose member 0 is the empty string that MySQL stores for an invalid value) or a SET."""

    arrow_type: pa.DataType
    width: int
    is_set: bool
    bounds: NDArray[np.int32]
    blob: NDArray[np.uint8]

    def build(self, data: Bytes, cells: Int32s, arena: Arena, counters: Counters) -> ArrayParts:
        """See `Codec.build`."""
        write = _set_texts if self.is_set else _enum_texts
        offset_buffer, offsets = arena.allocate_offsets(cells.size)
        content = reserve_content(arena)
        size, nulls, beyond = write(data, cells, self.width, self.bounds, self.blob, offsets, content)
        if beyond:
            raise self._beyond(data, ~beyond)
        if size == FULL:
            # The size is not known; more than `reserve_content` can give is more than an array holds.
            check_content_size(content.size)
            raise ArenaFull(2 * content.size)
        return variable(arena, cells, offset_buffer, size, nulls)

    def _beyond(self, data: NDArray[np.uint8], cell: int) -> EventError:
        """The error for a value that exceeds the members, which most likely belong to a later definition."""
        number = int.from_bytes(data[cell : cell + self.width].tobytes(), "little")
        kind, known = ("SET", self.bounds.size - 1) if self.is_set else ("ENUM", self.bounds.size - 2)
        return UnsupportedError(
            f"{kind} value {number} exceeds the {known} members of the table's definition: if the definition "
            "comes from the catalog, the table was altered after this event was written; set "
            "binlog_row_metadata=FULL on the server, or exclude the table with --exclude-tables",
            cell,
        )


def _members_codec(width: int, is_set: bool, members: Sequence[str]) -> Codec:
    texts = [member.encode() for member in members]
    bounds = np.cumsum([0, *map(len, texts)], dtype=np.int32)
    blob = np.frombuffer(b"".join(texts) + bytes(PADDING), np.uint8)
    return MembersCodec(pa.string(), width, is_set, bounds, blob)


def enum_codec(column: Column, options: Options) -> Codec:
    """The codec of an ENUM or SET column, whose metadata is the number of bytes that a value takes."""
    is_set = column.type_code == FieldType.SET
    if column.metadata not in (_SET_BYTES if is_set else _ENUM_BYTES):
        kind = "a SET" if is_set else "an ENUM"
        raise EngineError(f"column {column.name} is {kind} of {column.metadata} bytes in the binlog")
    if column.members is None:
        return UnnamedCodec(unsigned_codec(column.metadata))
    return _members_codec(column.metadata, is_set, column.members if is_set else ("", *column.members))
