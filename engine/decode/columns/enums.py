"""ENUM and SET: an index into, or a bit mask over, the members in the table map or the catalog.

The members are stored as one blob of UTF-8 with offsets, from which a kernel copies; member 0 of an ENUM is
the empty string that MySQL stores for an invalid value. If the members are not known, the array holds the
stored numbers, with the type of an unsigned integer column of the same width, so that no number is mistaken
for a member's text; they are counted as `unnamed_members`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numba
import numpy as np
import pyarrow as pa

from engine.binlog.column import Column
from engine.binlog.field_types import FieldType
from engine.decode.arrow.codec import Codec, Options
from engine.decode.arrow.column_kernel import (
    BROKEN,
    FULL,
    LARGEST,
    PLACE,
    SIZE,
    TOO_LARGE,
    aligned,
    column_kernel,
    content_at,
    finish_variable,
    has_room,
    offsets_at,
)
from engine.decode.columns.integers import unsigned_codec
from engine.errors import EngineError, EventError, UnsupportedError
from engine.kernels.kernel import Bytes
from engine.kernels.memory import PADDING, address_of, copy_padded, little_endian

_ENUM_BYTES, _SET_BYTES = (1, 2), (1, 2, 3, 4, 8)
"""The possible sizes of a value, in bytes."""


@numba.njit
def _member(bounds: Any, number: Any) -> Any:
    """Start and size of a member in the blob."""
    start = np.int64(bounds[number])
    return start, np.int64(bounds[number + 1]) - start


@numba.njit
def _enum_texts(data: Any, cells: Any, size: int, bounds: Any, blob: Any, offsets: Any, out: Any) -> Any:
    """Copy each cell's member.

    Returns the size of all in bytes, or `FULL`, or `BROKEN`; the number of nulls; and, if broken, the cell
    that exceeds the members.
    """
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
                return np.int64(BROKEN), nulls, cell
            start, length = _member(bounds, number)
            if length > capacity - to:
                return np.int64(FULL), nulls, np.int64(0)
            copy_padded(content, to, names, start, length, blob.size)
            to += length
        offsets[index + 1] = to
    return to, nulls, np.int64(0)


@numba.njit
def _set_texts(data: Any, cells: Any, size: int, bounds: Any, blob: Any, offsets: Any, out: Any) -> Any:
    """Copy each cell's members, with commas between them; returns what `_enum_texts` does."""
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
                        return np.int64(BROKEN), nulls, cell
                    start, length = _member(bounds, number)
                    if length + 1 > capacity - to:
                        return np.int64(FULL), nulls, np.int64(0)
                    copy_padded(content, to, names, start, length, blob.size)
                    to += length
                    if mask:
                        out[to] = 44
                        to += 1
                number += 1
        offsets[index + 1] = to
    return to, nulls, np.int64(0)


@numba.njit(inline="always")
def _members(form: Any, constants: Any) -> Any:
    """The bounds of the `form[1]` members, and the blob."""
    size = 4 * (form[1] + 1)
    return constants[:size].view(np.int32), constants[size:]


@numba.njit
def _finish(cells: Any, written: Any, memory: Any, at: int, content: int, parts: Any, notes: Any) -> Any:
    """Finish the array of which `_enum_texts` or `_set_texts` has returned `written`."""
    size, nulls, broken = written
    if size == BROKEN:
        notes[PLACE] = broken
        return BROKEN
    if size == FULL:
        # The size is not known; more than there was is a start.
        room = memory.size - content
        notes[SIZE] = 2 * room
        return TOO_LARGE if room > notes[LARGEST] else FULL
    return finish_variable(cells, nulls, memory, at, content, size, parts, notes)


@column_kernel
def _enums(
    data: Any, cells: Any, form: Any, constants: Any, memory: Any, at: int, parts: Any, notes: Any
) -> Any:
    """Build the texts of numbers of `form[0]` bytes."""
    content = aligned(at + 4 * (cells.size + 1))
    if not has_room(memory, at, content - at, notes):
        return FULL
    bounds, blob = _members(form, constants)
    offsets, out = offsets_at(memory, at, cells.size), content_at(memory, content, notes)
    written = _enum_texts(data, cells, form[0], bounds, blob, offsets, out)
    return _finish(cells, written, memory, at, content, parts, notes)


@column_kernel
def _sets(
    data: Any, cells: Any, form: Any, constants: Any, memory: Any, at: int, parts: Any, notes: Any
) -> Any:
    """The same of bit masks."""
    content = aligned(at + 4 * (cells.size + 1))
    if not has_room(memory, at, content - at, notes):
        return FULL
    bounds, blob = _members(form, constants)
    offsets, out = offsets_at(memory, at, cells.size), content_at(memory, content, notes)
    written = _set_texts(data, cells, form[0], bounds, blob, offsets, out)
    return _finish(cells, written, memory, at, content, parts, notes)


def _beyond(width: int, kind: str, known: int) -> Callable[[Bytes, int], EventError]:
    """Makes the error for a value that exceeds the members, which most likely belong to a later
    definition."""

    def refusal(data: Bytes, cell: int) -> EventError:
        number = int.from_bytes(data[cell : cell + width].tobytes(), "little")
        return UnsupportedError(
            f"{kind} value {number} exceeds the {known} members of the table's definition: if the definition "
            "comes from the catalog, the table was altered after this event was written; set "
            "binlog_row_metadata=FULL on the server, or exclude the table with --exclude-tables",
            cell,
        )

    return refusal


def _members_codec(width: int, is_set: bool, members: Sequence[str]) -> Codec:
    """The codec of a SET of these members, or of an ENUM, which has one more, for the number 0."""
    texts = [member.encode() for member in (members if is_set else ("", *members))]
    bounds = np.cumsum([0, *map(len, texts)], dtype=np.int32)
    blob = np.frombuffer(b"".join(texts) + bytes(PADDING), np.uint8)
    return Codec(
        pa.string(),
        width,
        _sets if is_set else _enums,
        (width, len(texts)),
        np.concatenate([bounds.view(np.uint8), blob]),
        _beyond(width, "SET" if is_set else "ENUM", len(members)),
    )


def enum_codec(column: Column, options: Options) -> Codec:
    """The codec of an ENUM or SET column, whose metadata is the number of bytes that a value takes."""
    is_set = column.type_code == FieldType.SET
    if column.metadata not in (_SET_BYTES if is_set else _ENUM_BYTES):
        kind = "a SET" if is_set else "an ENUM"
        raise EngineError(f"column {column.name} is {kind} of {column.metadata} bytes in the binlog")
    if column.members is None:
        return unsigned_codec(column.metadata, counted=True)
    return _members_codec(column.metadata, is_set, column.members)
