"""JSON columns: MySQL's binary documents as the text that MySQL prints.

A kernel walks each document with a stack of its own and writes the text at once. What it has no hand for
(values of SQL types, broken documents) it leaves to the readable twin, `json_twin`, which also explains the
format and raises the errors; both keep within the same bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import pyarrow as pa
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from engine.decode.columns import json_twin as twin
from engine.decode.columns.base import Codec, Column, Counters, Options
from engine.decode.columns.digits import write_number
from engine.decode.columns.doubles import powers_of_ten, write_double
from engine.decode.columns.kernels import (
    CELLS,
    DATA,
    OFFSETS,
    OUT,
    PADDING,
    address_of,
    check_content_size,
    content_offsets,
    count_nulls,
    kernel,
    little_endian,
    load_byte,
    load_word,
    store_byte,
    store_word,
    variable,
)
from engine.decode.columns.utf8 import is_ascii, is_utf8
from engine.decode.columns.widths import length_bytes
from engine.errors import EventError

_SMALL_OBJECT, _LARGE_OBJECT, _LARGE_ARRAY = twin.SMALL_OBJECT, twin.LARGE_OBJECT, twin.LARGE_ARRAY
_LITERAL, _INT16, _UINT16, _INT32, _UINT32 = twin.LITERAL, twin.INT16, twin.UINT16, twin.INT32, twin.UINT32
_INT64, _UINT64, _DOUBLE, _STRING = twin.INT64, twin.UINT64, twin.DOUBLE, twin.STRING
_GROWTH, _SHORTEST_LIMIT, _DEEPEST = twin.GROWTH, twin.SHORTEST_LIMIT, twin.DEEPEST

_LEFT = -1
"""Instead of where a text ends: the document is left to the twin."""

_WIDEST_SCALAR = 34
"""Characters of a value that is neither string nor container, at most."""

_FRAME_BYTES = 40
_BASE, _END, _COUNT, _INDEX, _KIND = 0, 8, 16, 24, 32
"""A frame of the stack: container's start and end, number of values, index of the next one, type."""

_ONES = 0x0101010101010101
_HIGH_BITS = 0x8080808080808080


@numba.njit
def _get(stack: int, depth: int, field: int) -> Any:
    return np.int64(load_word(stack, depth * _FRAME_BYTES + field))


@numba.njit
def _set(stack: int, depth: int, field: int, value: int) -> None:
    store_word(stack, depth * _FRAME_BYTES + field, np.uint64(value))


@intrinsic
def _widen(typing_context: Any, number: Any) -> Any:
    """An int64's bits as uint64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.uint64(types.int64), generate


@numba.njit
def _write_integer(text: int, to: int, number: int) -> Any:
    """Write an int64; where it ends."""
    if number < 0:
        store_byte(text, to, 45)
        return write_number(text, to + 1, ~_widen(number) + np.uint64(1))
    return write_number(text, to, _widen(number))


@numba.njit
def _is_plain(word: Any) -> Any:
    """Whether none of a word's eight bytes is a control character, a quote or a backslash."""
    ones, high = np.uint64(_ONES), np.uint64(_HIGH_BITS)
    quotes, backslashes = word ^ ones * np.uint64(0x22), word ^ ones * np.uint64(0x5C)
    below = (word - ones * np.uint64(0x20)) & ~word
    equal = ((quotes - ones) & ~quotes) | ((backslashes - ones) & ~backslashes)
    return (below | equal) & high == 0


@numba.njit
def _write_string(batch: int, at: int, end: int, text: int, to: int) -> Any:
    """Write the bytes from `at` to `end` as a JSON string; where it ends."""
    store_byte(text, to, 34)
    to += 1
    while at < end:
        if at + 8 <= end and _is_plain(load_word(batch, at)):
            store_word(text, to, load_word(batch, at))
            at += 8
            to += 8
            continue
        byte = load_byte(batch, at)
        at += 1
        if byte >= 0x20 and byte != 34 and byte != 92:
            store_byte(text, to, byte)
            to += 1
            continue
        name = byte
        if byte == 8:
            name = 98
        elif byte == 9:
            name = 116
        elif byte == 10:
            name = 110
        elif byte == 12:
            name = 102
        elif byte == 13:
            name = 114
        store_byte(text, to, 92)
        if name >= 0x20:
            store_byte(text, to + 1, name)
            to += 2
        else:
            store_byte(text, to + 1, 117)
            store_byte(text, to + 2, 48)
            store_byte(text, to + 3, 48)
            store_byte(text, to + 4, 48 + (byte >> 4))
            store_byte(text, to + 5, (48 if byte & 15 < 10 else 87) + (byte & 15))
            to += 6
    store_byte(text, to, 34)
    return to + 1


@numba.njit
def _literal(text: int, to: int, literal: int) -> Any:
    """Write null (0), true (1) or false (2)."""
    word = np.uint64(0x6C6C756E)
    if literal == 1:
        word = np.uint64(0x65757274)
    elif literal == 2:
        word = np.uint64(0x65736C6166)
    store_word(text, to, word)
    return to + 4 + (literal == 2)


@numba.njit
def _scalar(batch: int, kind: int, at: int, end: int, powers: int, text: int, to: int, limit: int) -> Any:
    """Write the value of type `kind` at `at`; where it ends, or `_LEFT`."""
    if to + _WIDEST_SCALAR > limit:
        return _LEFT
    if kind == _LITERAL:
        if at + 1 > end or load_byte(batch, at) > 2:
            return _LEFT
        return _literal(text, to, load_byte(batch, at))
    if kind == _STRING:
        length, shift, byte = np.int64(0), 0, np.int64(0x80)
        while byte & 0x80:
            if at >= end or shift > 28:
                return _LEFT
            byte = load_byte(batch, at)
            length |= (byte & 0x7F) << shift
            shift += 7
            at += 1
        if length > end - at or to + 6 * length + 2 > limit:
            return _LEFT
        return _write_string(batch, at, at + length, text, to)
    if kind in (_INT16, _UINT16):
        size = 2
    elif kind in (_INT32, _UINT32):
        size = 4
    elif kind in (_INT64, _UINT64, _DOUBLE):
        size = 8
    else:
        return _LEFT
    if at + size > end:
        return _LEFT
    bits = little_endian(batch, at, size)
    if kind == _DOUBLE:
        if bits & np.uint64(0x7FF0000000000000) == np.uint64(0x7FF0000000000000):
            return _LEFT
        return write_double(powers, text, to, bits)
    if kind == _UINT64:
        return write_number(text, to, bits)
    number = np.int64(bits)
    if kind == _INT16 and number >= 1 << 15:
        number -= 1 << 16
    elif kind == _INT32 and number >= 1 << 31:
        number -= 1 << 32
    return _write_integer(text, to, number)


@numba.njit
def _render(batch: int, start: int, end: int, stack: int, powers: int, text: int, to: int, limit: int) -> Any:
    """Write the document from `start` to `end`; where its text ends, or `_LEFT`."""
    if start == end:
        return _literal(text, to, 0)
    kind, at, depth = load_byte(batch, start), start + 1, -1
    while True:
        # A value of type `kind` stands at `at`, somewhere before `end`.
        if kind <= _LARGE_ARRAY:
            width = 4 if kind in (_LARGE_OBJECT, _LARGE_ARRAY) else 2
            if at + 2 * width > end or depth + 1 == _DEEPEST or to + 2 > limit:
                return _LEFT
            count = np.int64(little_endian(batch, at, width))
            size = np.int64(little_endian(batch, at + width, width))
            entry = 1 + width + (width + 2 if kind <= _LARGE_OBJECT else 0)
            if size > end - at or 2 * width + count * entry > size:
                return _LEFT
            depth += 1
            _set(stack, depth, _BASE, at)
            _set(stack, depth, _END, at + size)
            _set(stack, depth, _COUNT, count)
            _set(stack, depth, _INDEX, 0)
            _set(stack, depth, _KIND, kind)
            store_byte(text, to, 123 if kind <= _LARGE_OBJECT else 91)
            to += 1
        else:
            to = _scalar(batch, kind, at, end, powers, text, to, limit)
            if to < 0:
                return _LEFT
        # Close the containers that are complete.
        while depth >= 0 and _get(stack, depth, _INDEX) == _get(stack, depth, _COUNT):
            if to + 1 > limit:
                return _LEFT
            store_byte(text, to, 125 if _get(stack, depth, _KIND) <= _LARGE_OBJECT else 93)
            to += 1
            depth -= 1
        if depth < 0:
            return to
        # Go on with the next value of the innermost one.
        base, end = _get(stack, depth, _BASE), _get(stack, depth, _END)
        count, index = _get(stack, depth, _COUNT), _get(stack, depth, _INDEX)
        kind = _get(stack, depth, _KIND)
        _set(stack, depth, _INDEX, index + 1)
        width = 4 if kind in (_LARGE_OBJECT, _LARGE_ARRAY) else 2
        keys = base + 2 * width
        values = keys + (count * (width + 2) if kind <= _LARGE_OBJECT else 0)
        contents = values + count * (1 + width)
        if to + 2 > limit:
            return _LEFT
        if index:
            store_byte(text, to, 44)
            store_byte(text, to + 1, 32)
            to += 2
        if kind <= _LARGE_OBJECT:
            key = base + np.int64(little_endian(batch, keys + index * (width + 2), width))
            length = np.int64(little_endian(batch, keys + index * (width + 2) + width, 2))
            if key < contents or length > end - key or to + 6 * length + 4 > limit:
                return _LEFT
            to = _write_string(batch, key, key + length, text, to)
            store_byte(text, to, 58)
            store_byte(text, to + 1, 32)
            to += 2
        at = values + index * (1 + width) + 1
        kind = load_byte(batch, at - 1)
        inlined = kind in (_LITERAL, _INT16, _UINT16)
        if not (inlined or (width == 4 and (kind in (_INT32, _UINT32)))):
            at = base + np.int64(little_endian(batch, at, width))
            if at < contents or at >= end:
                return _LEFT


@kernel(
    types.int64,
    DATA,
    CELLS,
    types.int64,
    types.uint64[::1],
    types.Array(types.uint64, 2, "C", readonly=True),
    OFFSETS,
    OUT,
    types.int32[::1],
)
def _documents(
    data: Any,
    cells: Any,
    prefix: int,
    stack: Any,
    powers: Any,
    offsets: Any,
    out: Any,
    left: Any,
) -> Any:
    """Write all documents; how many are left to the twin, their indices being in `left`."""
    batch, frames, tens, text = address_of(data), address_of(stack), address_of(powers), address_of(out)
    to = np.int64(0)
    leftovers = 0
    offsets[0] = 0
    for index in range(cells.size):
        cell = np.int64(cells[index])
        if cell >= 0:
            size = np.int64(little_endian(batch, cell, prefix))
            start = cell + prefix
            limit = to + _GROWTH * size + _SHORTEST_LIMIT
            end = _render(batch, start, start + size, frames, tens, text, to, limit)
            if end >= 0 and (is_ascii(text, to, end) or is_utf8(text, to, end)):
                to = end
            else:
                left[leftovers] = index
                leftovers += 1
        offsets[index + 1] = to
    return leftovers


@dataclass(frozen=True, slots=True)
class JsonCodec:
    """MySQL's JSON. (MariaDB's is LONGTEXT with another name.)"""

    arrow_type: pa.DataType
    width: int

    def build(self, data: NDArray[np.uint8], cells: NDArray[np.int32], counters: Counters) -> pa.Array:
        """See `Codec.build`."""
        prefix = -self.width
        offsets = np.empty(cells.size + 1, np.int32)
        stored = content_offsets(data, cells, prefix, offsets)
        content = np.empty(_GROWTH * stored + _SHORTEST_LIMIT * cells.size + PADDING, np.uint8)
        left = np.empty(cells.size, np.int32)
        stack = np.empty(_DEEPEST * _FRAME_BYTES // 8, np.uint64)
        leftovers = _documents(data, cells, prefix, stack, powers_of_ten(), offsets, content, left)
        if leftovers:
            texts = {
                index: self._text(data, int(cells[index]), counters) for index in left[:leftovers].tolist()
            }
            offsets, content = _insert(offsets, content, texts)
        check_content_size(int(offsets[-1]))
        return variable(self.arrow_type, cells, offsets, content, count_nulls(cells))

    def _text(self, data: NDArray[np.uint8], cell: int, counters: Counters) -> bytes:
        """A document's text by the twin."""
        start = cell - self.width
        size = int.from_bytes(data[cell:start].tobytes(), "little")
        document = data[start : start + size].tobytes()
        try:
            text = twin.json_text(document)
        except EventError as error:
            raise EventError(error.reason, start + error.offset) from error
        invalid = text.count("\ufffd") - document.count("\ufffd".encode())
        counters.add("invalid_characters", max(invalid, 0))
        return text.encode()


def _insert(
    offsets: NDArray[np.int32], content: NDArray[np.uint8], texts: dict[int, bytes]
) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """The offsets and content with the texts (by index, ascending) in their empty places."""
    lengths = np.diff(offsets.astype(np.int64))
    lengths[list(texts)] = [len(text) for text in texts.values()]
    pieces: list[bytes] = []
    done = 0
    for index, text in texts.items():
        pieces += [content[done : offsets[index]].tobytes(), text]
        done = int(offsets[index])
    pieces.append(content[done : offsets[-1]].tobytes())
    joined = b"".join(pieces)
    check_content_size(len(joined))
    return np.concatenate(([0], np.cumsum(lengths))).astype(np.int32), np.frombuffer(joined, np.uint8)


def json_codec(column: Column, options: Options) -> Codec:
    """The codec of a JSON column, whose metadata is the number of bytes of a document's length."""
    return JsonCodec(pa.string(), -length_bytes(column))
