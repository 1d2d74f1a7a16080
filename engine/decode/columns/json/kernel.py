"""Kernel helpers that write MySQL's binary JSON as text: one document at a time, without recursion.

The stack of open containers is in memory that the caller provides. Format and text are those of the reference
implementation (`text`); broken documents, and those that need far more memory than most, are left to it.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from engine.decode.columns.digits import write_number
from engine.decode.columns.doubles import write_double
from engine.decode.columns.json.layout import (
    DEEPEST,
    DOUBLE,
    INT16,
    INT32,
    INT64,
    LARGE_ARRAY,
    LARGE_OBJECT,
    LITERAL,
    OPAQUE,
    STRING,
    UINT16,
    UINT32,
    UINT64,
)
from engine.decode.columns.json.opaque import UNWRITTEN, write_opaque
from engine.kernels.memory import little_endian, load_byte, load_word, store_byte, store_word

_WIDEST_SCALAR = 34
"""The most characters of a value that is neither a string nor a container."""

STACK_WORDS = DEEPEST * 5
"""Memory that `write_document` needs for its stack, in words of eight bytes."""
_FRAME_BYTES = 40
_BASE, _END, _COUNT, _INDEX, _KIND = 0, 8, 16, 24, 32
"""Fields of a stack frame: the container's start, end, number of values, index of the next one, type."""

_ONES = 0x0101010101010101
_HIGH_BITS = 0x8080808080808080
_SPACES = np.array([(0x2020202020202020 << 8 * size) & 0xFFFFFFFFFFFFFFFF for size in range(9)], np.uint64)
"""By a number of bytes: a word with spaces in the bytes after these."""


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
    """Write an int64; return the end offset."""
    if number < 0:
        store_byte(text, to, 45)
        return write_number(text, to + 1, ~_widen(number) + np.uint64(1))
    return write_number(text, to, _widen(number))


@numba.njit
def _is_plain(word: Any) -> Any:
    """Whether none of a word's eight bytes is a control character, a double quote or a backslash."""
    ones, high = np.uint64(_ONES), np.uint64(_HIGH_BITS)
    quotes, backslashes = word ^ ones * np.uint64(0x22), word ^ ones * np.uint64(0x5C)
    below = (word - ones * np.uint64(0x20)) & ~word
    equal = ((quotes - ones) & ~quotes) | ((backslashes - ones) & ~backslashes)
    return (below | equal) & high == 0


@numba.njit
def _write_string(batch: int, at: int, end: int, text: int, to: int) -> Any:
    """Write the bytes from `at` to `end` as a JSON string; return the end offset."""
    store_byte(text, to, 34)
    to += 1
    while at < end:
        size = min(end - at, 8)
        word = little_endian(batch, at, size)
        if _is_plain(word | _SPACES[size]):
            store_word(text, to, word)
            at += size
            to += size
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
    """Write null (0), true (1) or false (2); return the end offset."""
    word = np.uint64(0x6C6C756E)
    if literal == 1:
        word = np.uint64(0x65757274)
    elif literal == 2:
        word = np.uint64(0x65736C6166)
    store_word(text, to, word)
    return to + 4 + (literal == 2)


@numba.njit
def _variable_length(batch: int, at: int, end: int) -> Any:
    """A length in seven bits per byte, and its end offset (`UNWRITTEN` if it does not end)."""
    length, shift, byte = np.int64(0), 0, np.int64(0x80)
    while byte & 0x80:
        if at >= end or shift > 28:
            return length, np.int64(UNWRITTEN)
        byte = load_byte(batch, at)
        length |= (byte & 0x7F) << shift
        shift += 7
        at += 1
    return length, at


@numba.njit
def _scalar(
    batch: int, kind: int, at: int, end: int, powers: int, text: int, to: int, limit: int, points: int
) -> Any:
    """Write the value of type `kind` at `at`; return the end offset, or `UNWRITTEN`."""
    if to + _WIDEST_SCALAR > limit:
        return UNWRITTEN
    if kind == LITERAL:
        if at + 1 > end or load_byte(batch, at) > 2:
            return UNWRITTEN
        return _literal(text, to, load_byte(batch, at))
    if kind in (STRING, OPAQUE):
        field_type = np.int64(0)
        if kind == OPAQUE:
            if at >= end:
                return UNWRITTEN
            field_type = load_byte(batch, at)
            at += 1
        length, at = _variable_length(batch, at, end)
        if at < 0 or length > end - at:
            return UNWRITTEN
        if kind == OPAQUE:
            return write_opaque(batch, field_type, at, length, text, to, limit)
        if to + 6 * length + 2 > limit:
            return UNWRITTEN
        return _write_string(batch, at, at + length, text, to)
    if kind in (INT16, UINT16):
        size = 2
    elif kind in (INT32, UINT32):
        size = 4
    elif kind in (INT64, UINT64, DOUBLE):
        size = 8
    else:
        return UNWRITTEN
    if at + size > end:
        return UNWRITTEN
    bits = little_endian(batch, at, size)
    if kind == DOUBLE:
        if bits & np.uint64(0x7FF0000000000000) == np.uint64(0x7FF0000000000000):
            return UNWRITTEN
        end = write_double(powers, text, to, bits)
        if not points and load_byte(text, end - 1) == 48 and load_byte(text, end - 2) == 46:
            end -= 2
        return end
    if kind == UINT64:
        return write_number(text, to, bits)
    number = np.int64(bits)
    if kind == INT16 and number >= 1 << 15:
        number -= 1 << 16
    elif kind == INT32 and number >= 1 << 31:
        number -= 1 << 32
    return _write_integer(text, to, number)


@numba.njit
def write_document(
    batch: int, start: int, end: int, stack: int, powers: int, text: int, to: int, limit: int, points: int
) -> Any:
    """Write the document from `start` to `end` of the batch; return its text's end offset, or `UNWRITTEN`.

    `stack`, `powers` (of ten) and `text` are addresses; `to` and `limit`, the most that the text may reach,
    are offsets from `text`. `points`: whether whole doubles have a decimal point.
    """
    if start == end:
        return _literal(text, to, 0)
    kind, at, depth = load_byte(batch, start), start + 1, -1
    while True:
        # The next value has the type `kind`; its content starts at `at`, before `end`.
        if kind <= LARGE_ARRAY:
            width = 4 if kind in (LARGE_OBJECT, LARGE_ARRAY) else 2
            if at + 2 * width > end or depth + 1 == DEEPEST or to + 2 > limit:
                return UNWRITTEN
            count = np.int64(little_endian(batch, at, width))
            size = np.int64(little_endian(batch, at + width, width))
            entry = 1 + width + (width + 2 if kind <= LARGE_OBJECT else 0)
            if size > end - at or 2 * width + count * entry > size:
                return UNWRITTEN
            depth += 1
            _set(stack, depth, _BASE, at)
            _set(stack, depth, _END, at + size)
            _set(stack, depth, _COUNT, count)
            _set(stack, depth, _INDEX, 0)
            _set(stack, depth, _KIND, kind)
            store_byte(text, to, 123 if kind <= LARGE_OBJECT else 91)
            to += 1
        else:
            to = _scalar(batch, kind, at, end, powers, text, to, limit, points)
            if to < 0:
                return UNWRITTEN
        # Close the containers that are complete.
        while depth >= 0 and _get(stack, depth, _INDEX) == _get(stack, depth, _COUNT):
            if to + 1 > limit:
                return UNWRITTEN
            store_byte(text, to, 125 if _get(stack, depth, _KIND) <= LARGE_OBJECT else 93)
            to += 1
            depth -= 1
        if depth < 0:
            return to
        # Continue with the next value of the innermost container.
        base, end = _get(stack, depth, _BASE), _get(stack, depth, _END)
        count, index = _get(stack, depth, _COUNT), _get(stack, depth, _INDEX)
        kind = _get(stack, depth, _KIND)
        _set(stack, depth, _INDEX, index + 1)
        width = 4 if kind in (LARGE_OBJECT, LARGE_ARRAY) else 2
        keys = base + 2 * width
        values = keys + (count * (width + 2) if kind <= LARGE_OBJECT else 0)
        contents = values + count * (1 + width)
        if to + 2 > limit:
            return UNWRITTEN
        if index:
            store_byte(text, to, 44)
            store_byte(text, to + 1, 32)
            to += 2
        if kind <= LARGE_OBJECT:
            key = base + np.int64(little_endian(batch, keys + index * (width + 2), width))
            length = np.int64(little_endian(batch, keys + index * (width + 2) + width, 2))
            if key < contents or length > end - key or to + 6 * length + 4 > limit:
                return UNWRITTEN
            to = _write_string(batch, key, key + length, text, to)
            store_byte(text, to, 58)
            store_byte(text, to + 1, 32)
            to += 2
        at = values + index * (1 + width) + 1
        kind = load_byte(batch, at - 1)
        inlined = kind in (LITERAL, INT16, UINT16)
        if not (inlined or (width == 4 and (kind in (INT32, UINT32)))):
            at = base + np.int64(little_endian(batch, at, width))
            if at < contents or at >= end:
                return UNWRITTEN
