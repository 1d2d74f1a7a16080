"""MariaDB's UUID, INET4 and INET6: BINARY(16) or BINARY(4) in the binlog, the text of `SELECT` in Arrow.

Only the catalog contains these types. As with BINARY, trailing zero bytes are not stored.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pyarrow as pa

from engine.binlog.column import Column
from engine.decode.arrow.codec import Codec, Options, refused
from engine.decode.arrow.column_kernel import (
    BROKEN,
    FULL,
    PLACE,
    aligned,
    buffer_at,
    column_kernel,
    finish_variable,
    has_room,
    offsets_at,
)
from engine.decode.columns.digits import write_number
from engine.decode.columns.widths import length_bytes
from engine.kernels.memory import address_of, little_endian, load_byte, store_byte

_UUID, _INET4, _INET6 = range(3)
_FORMS = {"uuid": (_UUID, 16, 36), "inet4": (_INET4, 4, 15), "inet6": (_INET6, 16, 45)}
"""Type's name → form, bytes of a value, bytes of the longest text."""


@numba.njit
def _byte(batch: int, start: int, size: int, index: int) -> Any:
    """A byte of the value; zero if it was not stored."""
    return load_byte(batch, start + index) if index < size else 0


@numba.njit
def _word(batch: int, start: int, size: int, index: int) -> Any:
    """One of the eight 16-bit words of an IPv6 address."""
    return _byte(batch, start, size, 2 * index) << 8 | _byte(batch, start, size, 2 * index + 1)


@numba.njit
def _write_nibble(text: int, to: int, nibble: int) -> Any:
    store_byte(text, to, (48 if nibble < 10 else 87) + nibble)
    return to + 1


@numba.njit
def _write_uuid(batch: int, start: int, size: int, text: int, to: int) -> Any:
    for index in range(16):
        if index in (4, 6, 8, 10):
            store_byte(text, to, 45)
            to += 1
        byte = _byte(batch, start, size, index)
        to = _write_nibble(text, to, byte >> 4)
        to = _write_nibble(text, to, byte & 15)
    return to


@numba.njit
def _write_inet4(batch: int, start: int, size: int, first: int, text: int, to: int) -> Any:
    """Write the four bytes from `first` on, with dots between them."""
    for index in range(4):
        if index:
            store_byte(text, to, 46)
            to += 1
        to = write_number(text, to, np.uint64(_byte(batch, start, size, first + index)))
    return to


@numba.njit
def _write_inet6(batch: int, start: int, size: int, text: int, to: int) -> Any:
    """Write `::` for the first of the longest runs of zeros; mapped and compatible IPv4 with dots."""
    gap, gap_size, run = 8, 0, 0
    for index in range(8):
        run = 0 if _word(batch, start, size, index) else run + 1
        if run > gap_size:
            gap, gap_size = index + 1 - run, run
    mapped = gap_size == 5 and _word(batch, start, size, 5) == 0xFFFF
    has_inet4 = gap == 0 and (gap_size == 6 or mapped)
    index = 0
    while index < 8:
        if index == gap:
            store_byte(text, to, 58)
            store_byte(text, to + 1, 58)
            to += 2
            index += gap_size
            continue
        if index and index != gap + gap_size:
            store_byte(text, to, 58)
            to += 1
        if has_inet4 and index == 6:
            return _write_inet4(batch, start, size, 12, text, to)
        word = _word(batch, start, size, index)
        shift = 12
        while shift and not word >> shift:
            shift -= 4
        while shift >= 0:
            to = _write_nibble(text, to, word >> shift & 15)
            shift -= 4
        index += 1
    return to


@column_kernel
def _texts(
    data: Any, cells: Any, form: Any, constants: Any, memory: Any, at: int, parts: Any, notes: Any
) -> Any:
    """Write the values of type `form[1]`, which follow a length of `form[0]` bytes."""
    prefix, kind, length, longest_text = form[0], form[1], form[2], form[3]
    content = aligned(at + 4 * (cells.size + 1))
    if not has_room(memory, at, content - at + longest_text * cells.size, notes):
        return FULL
    offsets = offsets_at(memory, at, cells.size)
    batch, text = address_of(data), address_of(buffer_at(memory, content, longest_text * cells.size))
    nulls = 0
    to = 0
    offsets[0] = 0
    for index in range(cells.size):
        cell = np.int64(cells[index])
        if cell < 0:
            nulls += 1
        else:
            size, start = np.int64(little_endian(batch, cell, prefix)), cell + prefix
            if size > length:
                notes[PLACE] = cell
                return BROKEN
            if kind == _UUID:
                to = _write_uuid(batch, start, size, text, to)
            elif kind == _INET4:
                to = _write_inet4(batch, start, size, 0, text, to)
            else:
                to = _write_inet6(batch, start, size, text, to)
        offsets[index + 1] = to
    return finish_variable(cells, nulls, memory, at, content, to, parts, notes)


def address_codec(column: Column, options: Options) -> Codec:
    """The codec of a column declared as UUID, INET4 or INET6."""
    prefix = length_bytes(column)
    kind, length, longest_text = _FORMS[column.declared or ""]
    return Codec(
        pa.string(),
        -prefix,
        _texts,
        (prefix, kind, length, longest_text),
        refusal=refused(f"a value is longer than the {length} bytes of its type"),
    )
