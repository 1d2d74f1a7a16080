"""ENUM and SET: an index into, or a bit mask over, the members that the table map or the catalog told.

The members are laid out as one blob of UTF-8 with offsets, from which a kernel copies. Where nobody told the
members, the number itself becomes the text, as mysqlbinlog prints it, counted as `unnamed_members`.
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

from engine.decode.columns.base import Codec, Column, Counters, Options
from engine.decode.columns.digits import write_number
from engine.decode.columns.field_types import FieldType
from engine.decode.columns.kernels import (
    CELLS,
    DATA,
    FULL,
    OFFSETS,
    OUT,
    SIZE_AND_NULLS,
    address_of,
    check_content_size,
    copy_padded,
    kernel,
    little_endian,
    open_content,
    variable,
)
from engine.decode.room import PADDING, ArrayParts, Room, RoomFull
from engine.errors import EngineError, EventError, UnsupportedError
from engine.kernels import Bytes, Int32s

_LONGEST_NUMBER = 20
"""Digits of the largest number of 64 bits."""
_BOUNDS = types.Array(types.int32, 1, "C", readonly=True)


@kernel(SIZE_AND_NULLS, DATA, CELLS, types.int64, OFFSETS, OUT)
def _number_texts(data: Any, cells: Any, size: int, offsets: Any, out: Any) -> Any:
    """Write every cell's number as text; `SIZE_AND_NULLS`."""
    batch, text = address_of(data), address_of(out)
    nulls = 0
    to = np.int64(0)
    offsets[0] = 0
    for index in range(cells.size):
        cell = np.int64(cells[index])
        if cell < 0:
            nulls += 1
        else:
            to = write_number(text, to, little_endian(batch, cell, size))
        offsets[index + 1] = to
    return to, nulls


@numba.njit
def _member(bounds: Any, number: Any) -> Any:
    """Start and size of a member in the blob."""
    start = np.int64(bounds[number])
    return start, np.int64(bounds[number + 1]) - start


_TEXTS = types.UniTuple(types.int64, 3)
"""`SIZE_AND_NULLS`, and the complement of a cell that there is no member for, or 0."""


@kernel(_TEXTS, DATA, CELLS, types.int64, _BOUNDS, DATA, OFFSETS, OUT)
def _enum_texts(data: Any, cells: Any, size: int, bounds: Any, blob: Any, offsets: Any, out: Any) -> Any:
    """Copy the member of every cell."""
    batch, names, content = address_of(data), address_of(blob), address_of(out)
    members = np.uint64(bounds.size - 1)
    room = out.size - PADDING
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
            if length > room - to:
                return FULL, nulls, 0
            copy_padded(content, to, names, start, length, blob.size)
            to += length
        offsets[index + 1] = to
    return to, nulls, 0


@kernel(_TEXTS, DATA, CELLS, types.int64, _BOUNDS, DATA, OFFSETS, OUT)
def _set_texts(data: Any, cells: Any, size: int, bounds: Any, blob: Any, offsets: Any, out: Any) -> Any:
    """Copy the members of every cell, with commas between them."""
    batch, names, content = address_of(data), address_of(blob), address_of(out)
    members = bounds.size - 1
    room = out.size - PADDING
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
                    if length + 1 > room - to:
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
    """An ENUM or SET whose members nobody told."""

    arrow_type: pa.DataType
    width: int

    def build(self, data: Bytes, cells: Int32s, room: Room, counters: Counters) -> ArrayParts:
        """See `Codec.build`."""
        place, offsets = room.take_offsets(cells.size)
        content = room.open(cells.size * _LONGEST_NUMBER)
        size, nulls = _number_texts(data, cells, self.width, offsets, content)
        counters.add("unnamed_members", cells.size - nulls)
        return variable(room, cells, place, size, nulls)


@dataclass(frozen=True, slots=True, eq=False)
class MembersCodec:
    """An ENUM (whose member 0 is the empty string of a value that never was one) or a SET."""

    arrow_type: pa.DataType
    width: int
    is_set: bool
    bounds: NDArray[np.int32]
    blob: NDArray[np.uint8]

    def build(self, data: Bytes, cells: Int32s, room: Room, counters: Counters) -> ArrayParts:
        """See `Codec.build`."""
        write = _set_texts if self.is_set else _enum_texts
        place, offsets = room.take_offsets(cells.size)
        content = open_content(room)
        size, nulls, beyond = write(data, cells, self.width, self.bounds, self.blob, offsets, content)
        if beyond:
            raise self._beyond(data, ~beyond)
        if size == FULL:
            # Nobody knows how much it takes; with all the room that content can have, too much.
            check_content_size(content.size)
            raise RoomFull(2 * content.size)
        return variable(room, cells, place, size, nulls)

    def _beyond(self, data: NDArray[np.uint8], cell: int) -> EventError:
        """The error of a value that the members do not reach: most likely they are those of a later table."""
        number = int.from_bytes(data[cell : cell + self.width].tobytes(), "little")
        kind, known = ("SET", self.bounds.size - 1) if self.is_set else ("ENUM", self.bounds.size - 2)
        return UnsupportedError(
            f"{kind} value {number} lies beyond the {known} members of the definition at hand: where that is "
            "the catalog's, the table was altered after this event was written; set binlog_row_metadata=FULL "
            "on the server, or leave the table out with --exclude-tables",
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
    if not 1 <= column.metadata <= (8 if is_set else 2):
        kind = "a SET" if is_set else "an ENUM"
        raise EngineError(f"column {column.name} is {kind} of {column.metadata} bytes in the binlog")
    if column.members is None:
        return UnnamedCodec(pa.string(), column.metadata)
    return _members_codec(column.metadata, is_set, column.members if is_set else ("", *column.members))
