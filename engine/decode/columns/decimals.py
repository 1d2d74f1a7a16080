"""NEWDECIMAL: base 10^9 digits in big-endian groups, the most significant bit flipped, negatives inverted.

DECIMALs of up to 38 digits become decimal128; wider ones (up to 65 digits) become text, which is also exact.
The format is that of `decimal2bin` in MySQL's `strings/decimal.cc`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numba
import numpy as np
import pyarrow as pa
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from engine.binlog.column import Column
from engine.decode.arrow.codec import Codec, Options, refused
from engine.decode.arrow.column_kernel import (
    BROKEN,
    FULL,
    PLACE,
    aligned,
    buffer_at,
    column_kernel,
    finish_fixed,
    finish_variable,
    has_room,
    offsets_at,
)
from engine.decode.columns.digits import write_digits, write_number
from engine.errors import EngineError
from engine.kernels.memory import address_of, big_endian, store_word

_GROUP_DIGITS = 9
_MOST_DIGITS = 38
"""Of a decimal128."""
GROUP_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
"""Bytes that a group of 0 to 9 digits takes."""


def digit_groups(precision: int, scale: int) -> tuple[list[int], int]:
    """The digits of each stored group, most significant first, and the number of groups before the point."""
    whole = precision - scale
    integer = [whole % _GROUP_DIGITS, *[_GROUP_DIGITS] * (whole // _GROUP_DIGITS)]
    fraction = [*[_GROUP_DIGITS] * (scale // _GROUP_DIGITS), scale % _GROUP_DIGITS]
    return [digits for digits in integer + fraction if digits], sum(digits > 0 for digits in integer)


def _folds(groups: list[int]) -> list[int]:
    """For each group: 0, or 10 to the power of the digits (at most 18) that are joined up to and with it."""
    folds = [0] * len(groups)
    joined = 0
    for index, digits in enumerate(groups):
        joined += digits
        if index + 1 == len(groups) or joined + groups[index + 1] > 2 * _GROUP_DIGITS:
            folds[index] = 10**joined
            joined = 0
    return folds


@intrinsic
def _multiply_add(typing_context: Any, high: Any, low: Any, factor: Any, addend: Any) -> Any:
    """(high, low) * factor + addend in 128 bits, as two uint64: high, low."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        wide, word = ir.IntType(128), ir.IntType(64)
        upper, lower, by, plus = (builder.zext(argument, wide) for argument in arguments)
        sixty_four = ir.Constant(wide, 64)
        number = builder.or_(builder.shl(upper, sixty_four), lower)
        number = builder.add(builder.mul(number, by), plus)
        words = [builder.trunc(builder.lshr(number, sixty_four), word), builder.trunc(number, word)]
        return cgutils.pack_array(builder, words)

    two = types.UniTuple(types.uint64, 2)
    return two(types.uint64, types.uint64, types.uint64, types.uint64), generate


@numba.njit
def _group(data: int, start: int, size: int, inverted: Any, first: bool) -> Any:
    """The value of one stored group."""
    number = big_endian(data, start, size) ^ inverted
    if first:
        number ^= np.uint64(0x80) << np.uint64(8 * size - 8)
    return number & (np.uint64(0xFFFFFFFF) >> np.uint64(32 - 8 * size))


_WORD_BYTES, _WORD_GROUPS, _WORD_DIGITS = 8, 3, 18
"""The most bytes, groups and digits that can be read and joined as one word."""


@column_kernel
def _word_decimals(
    data: Any, cells: Any, form: Any, constants: Any, memory: Any, at: int, parts: Any, notes: Any
) -> Any:
    """Build 128-bit numbers whose stored form, of `form[0]` bytes, fits into a word.

    Then `form` has, for each of three groups, the number of its lowest bit in the word, and after these 10 to
    the power of its digits. A missing group has the bit 0 and the power 1.
    """
    if not has_room(memory, at, 16 * cells.size, notes):
        return FULL
    batch, items = address_of(data), address_of(buffer_at(memory, at, 16 * cells.size))
    width = form[0]
    first_shift, second_shift = np.uint64(form[1]), np.uint64(form[2])
    powers = np.uint64(form[4]), np.uint64(form[5]), np.uint64(form[6])
    nulls = 0
    bits = np.uint64(8 * width)
    sign = np.uint64(1) << (bits - np.uint64(1))
    stored = ~np.uint64(0) >> (np.uint64(64) - bits)
    for index in range(cells.size):
        start = np.int64(cells[index])
        number, inverted = np.uint64(0), np.uint64(0)
        if start < 0:
            nulls += 1
        else:
            # If the number is negative, its bits are stored inverted, and all bits of `inverted` are set.
            number = big_endian(batch, start, width) ^ sign
            inverted = np.uint64(0) - (number >> (bits - np.uint64(1)))
            number = (number ^ inverted) & stored
            first = number >> first_shift
            number -= first << first_shift
            second = number >> second_shift
            third = number - (second << second_shift)
            if (first >= powers[0]) | (second >= powers[1]) | (third >= powers[2]):
                notes[PLACE] = start
                return BROKEN
            number = (first * powers[1] + second) * powers[2] + third
            number = (number ^ inverted) - inverted
        store_word(items, 16 * index, number)
        store_word(items, 16 * index + 8, inverted if number else np.uint64(0))
    return finish_fixed(cells, nulls, memory, at, 16 * cells.size, parts, notes)


@numba.njit(inline="always")
def _groups(form: Any, constants: Any) -> Any:
    """Of each stored group: its bytes, 10 to the power of its digits, its digits, its entry in `_folds`."""
    count = form[0]
    words = constants.view(np.int64)
    return words[:count], words[count : 2 * count], words[2 * count : 3 * count], words[3 * count : 4 * count]


@column_kernel
def _decimals(
    data: Any, cells: Any, form: Any, constants: Any, memory: Any, at: int, parts: Any, notes: Any
) -> Any:
    """Build 128-bit numbers of any size.

    Groups are joined in 64 bits as far as they fit. Where `folds` is not 0, the 128-bit number is multiplied
    by it and the joined groups are added.
    """
    if not has_room(memory, at, 16 * cells.size, notes):
        return FULL
    batch, items = address_of(data), address_of(buffer_at(memory, at, 16 * cells.size))
    sizes, powers, _, folds = _groups(form, constants)
    nulls = 0
    for index in range(cells.size):
        start = np.int64(cells[index])
        high, low = np.uint64(0), np.uint64(0)
        if start < 0:
            nulls += 1
        else:
            negative = data[start] < 0x80
            inverted = ~np.uint64(0) if negative else np.uint64(0)
            place = start
            joined = np.uint64(0)
            for group in range(sizes.size):
                number = _group(batch, place, sizes[group], inverted, group == 0)
                power = np.uint64(powers[group])
                if number >= power:
                    notes[PLACE] = start
                    return BROKEN
                joined = joined * power + number
                if folds[group]:
                    high, low = _multiply_add(high, low, np.uint64(folds[group]), joined)
                    joined = np.uint64(0)
                place += sizes[group]
            if negative:
                high, low = ~high, ~low + np.uint64(1)
                if low == 0:
                    high += np.uint64(1)
        store_word(items, 16 * index, low)
        store_word(items, 16 * index + 8, high)
    return finish_fixed(cells, nulls, memory, at, 16 * cells.size, parts, notes)


@column_kernel
def _texts(
    data: Any, cells: Any, form: Any, constants: Any, memory: Any, at: int, parts: Any, notes: Any
) -> Any:
    """Write numbers with `form[1]` groups before the point as text of at most `form[2]` bytes each."""
    integers, longest = form[1], form[2]
    content = aligned(at + 4 * (cells.size + 1))
    if not has_room(memory, at, content - at + longest * cells.size, notes):
        return FULL
    offsets, out = offsets_at(memory, at, cells.size), buffer_at(memory, content, longest * cells.size)
    batch, text = address_of(data), address_of(out)
    sizes, powers, digits, _ = _groups(form, constants)
    nulls = 0
    to = 0
    offsets[0] = 0
    for index in range(cells.size):
        start = np.int64(cells[index])
        if start < 0:
            nulls += 1
        else:
            negative = data[start] < 0x80
            inverted = ~np.uint64(0) if negative else np.uint64(0)
            if negative:
                out[to] = 45
                to += 1
            leading = True
            place = start
            for group in range(sizes.size):
                number = _group(batch, place, sizes[group], inverted, group == 0)
                if number >= np.uint64(powers[group]):
                    notes[PLACE] = start
                    return BROKEN
                if group == integers:
                    if leading:
                        out[to] = 48
                        to += 1
                    leading = False
                    out[to] = 46
                    to += 1
                if not leading:
                    to = write_digits(text, to, number, digits[group])
                elif number:
                    to = write_number(text, to, number)
                    leading = False
                place += sizes[group]
            if leading:
                out[to] = 48
                to += 1
        offsets[index + 1] = to
    return finish_variable(cells, nulls, memory, at, content, to, parts, notes)


def _word_form(groups: Sequence[int]) -> tuple[int, ...] | None:
    """The form for `_word_decimals`; None if the stored form does not fit into a word."""
    sizes = [GROUP_BYTES[digits] for digits in groups]
    if sum(sizes) > _WORD_BYTES or len(groups) > _WORD_GROUPS or sum(groups) > _WORD_DIGITS:
        return None
    missing = _WORD_GROUPS - len(groups)
    shifts = [8 * sum(sizes[index + 1 :]) for index in range(len(groups))]
    powers = [10**digits for digits in groups]
    return (sum(sizes), *shifts, *[0] * missing, *powers, *[1] * missing)


def old_decimal_codec(column: Column, options: Options) -> Codec:
    """Always raises `EngineError`: for a DECIMAL of MySQL before 5.0 the binlog does not contain the size."""
    raise EngineError(
        f"column {column.name} is a DECIMAL from before MySQL 5.0, whose size the binlog does not contain: "
        "rebuild the table on the server (ALTER TABLE … FORCE) and start after that statement"
    )


def decimal_codec(column: Column, options: Options) -> Codec:
    """The codec of a NEWDECIMAL column, whose metadata is precision | scale << 8."""
    precision, scale = column.metadata & 0xFF, column.metadata >> 8
    if not (1 <= precision <= 65 and scale <= precision):
        raise EngineError(f"column {column.name} is an impossible DECIMAL({precision},{scale}) in the binlog")
    groups, integers = digit_groups(precision, scale)
    sizes = [GROUP_BYTES[digits] for digits in groups]
    powers = [10**digits for digits in groups]
    constants = np.array([sizes, powers, groups, _folds(groups)], np.int64).reshape(-1).view(np.uint8)
    refusal = refused("a DECIMAL value contains invalid digits")
    word = _word_form(groups)
    if word is not None:
        return Codec(pa.decimal128(precision, scale), sum(sizes), _word_decimals, word, refusal=refusal)
    # In text there may be a sign, a point, and a zero before it.
    form = (len(groups), integers, precision + 3)
    if precision <= _MOST_DIGITS:
        return Codec(pa.decimal128(precision, scale), sum(sizes), _decimals, form, constants, refusal)
    return Codec(pa.string(), sum(sizes), _texts, form, constants, refusal)
