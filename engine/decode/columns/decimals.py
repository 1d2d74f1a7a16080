"""NEWDECIMAL: base 10^9 digits in big-endian groups, the most significant bit flipped, negatives inverted.

DECIMALs of up to 38 digits become decimal128; wider ones (up to 65 digits) become text, which is also exact.
The format is that of `decimal2bin` in MySQL's `strings/decimal.cc`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import pyarrow as pa
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from engine.binlog.column import Column
from engine.decode.arrow.arena import Arena, ArrayParts
from engine.decode.arrow.buffers import fixed, variable
from engine.decode.arrow.codec import Codec, Counters, Options
from engine.decode.columns.digits import write_digits, write_number
from engine.errors import EngineError, EventError
from engine.kernels.kernel import Bytes, Int32s
from engine.kernels.memory import address_of, big_endian, store_word
from engine.kernels.typed import CELLS, DATA, OFFSETS, OUT, kernel

_GROUP_DIGITS = 9
GROUP_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
"""Bytes that a group of 0 to 9 digits takes."""

_GROUPS = types.Array(types.int64, 1, "C", readonly=True)


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


_THREE = types.UniTuple(types.uint64, 3)
_WORD_BYTES, _WORD_GROUPS, _WORD_DIGITS = 8, 3, 18
"""The most bytes, groups and digits that can be read and joined as one word."""


@kernel(types.int64, DATA, CELLS, types.int64, _THREE, _THREE, OUT)
def _word_decimals(data: Any, cells: Any, width: int, shifts: Any, powers: Any, out: Any) -> Any:
    """Fill `out` with 128-bit numbers whose stored form fits into a word; returns the same as `_decimals`.

    `shifts`: the number of the lowest bit of each of the three groups in the word; `powers`: 10 to the power
    of its digits. A missing group has the shift 0 and the power 1.
    """
    batch, items = address_of(data), address_of(out)
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
            first = number >> shifts[0]
            number -= first << shifts[0]
            second = number >> shifts[1]
            third = number - (second << shifts[1])
            if (first >= powers[0]) | (second >= powers[1]) | (third >= powers[2]):
                return ~start
            number = (first * powers[1] + second) * powers[2] + third
            number = (number ^ inverted) - inverted
        store_word(items, 16 * index, number)
        store_word(items, 16 * index + 8, inverted if number else np.uint64(0))
    return nulls


@kernel(types.int64, DATA, CELLS, _GROUPS, _GROUPS, _GROUPS, types.uint64[:, ::1])
def _decimals(data: Any, cells: Any, sizes: Any, powers: Any, folds: Any, out: Any) -> Any:
    """Fill `out` with 128-bit numbers; return the number of nulls, or the complement of a broken cell's
    offset.

    Groups are joined in 64 bits as far as they fit. Where `folds` is not 0, the 128-bit number is multiplied
    by it and the joined groups are added.
    """
    batch = address_of(data)
    nulls = 0
    for index in range(cells.size):
        start = np.int64(cells[index])
        high, low = np.uint64(0), np.uint64(0)
        if start < 0:
            nulls += 1
        else:
            negative = data[start] < 0x80
            inverted = ~np.uint64(0) if negative else np.uint64(0)
            at = start
            joined = np.uint64(0)
            for group in range(sizes.size):
                number = _group(batch, at, sizes[group], inverted, group == 0)
                power = np.uint64(powers[group])
                if number >= power:
                    return ~start
                joined = joined * power + number
                if folds[group]:
                    high, low = _multiply_add(high, low, np.uint64(folds[group]), joined)
                    joined = np.uint64(0)
                at += sizes[group]
            if negative:
                high, low = ~high, ~low + np.uint64(1)
                if low == 0:
                    high += np.uint64(1)
        out[index, 0] = low
        out[index, 1] = high
    return nulls


@kernel(types.int64, DATA, CELLS, _GROUPS, _GROUPS, _GROUPS, types.int64, OFFSETS, OUT)
def _texts(
    data: Any, cells: Any, sizes: Any, powers: Any, digits: Any, integers: int, offsets: Any, out: Any
) -> Any:
    """Write the numbers as text; return the number of nulls, or the complement of a broken cell's offset."""
    batch, text = address_of(data), address_of(out)
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
            at = start
            for group in range(sizes.size):
                number = _group(batch, at, sizes[group], inverted, group == 0)
                if number >= np.uint64(powers[group]):
                    return ~start
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
                at += sizes[group]
            if leading:
                out[to] = 48
                to += 1
        offsets[index + 1] = to
    return nulls


@dataclass(frozen=True, slots=True, eq=False)
class DecimalCodec:
    """DECIMAL(precision, scale)."""

    arrow_type: pa.DataType
    width: int
    precision: int
    digits: NDArray[np.int64]
    sizes: NDArray[np.int64]
    powers: NDArray[np.int64]
    folds: NDArray[np.int64]
    integers: int
    """The number of groups before the decimal point."""
    word: tuple[tuple[int, ...], tuple[int, ...]] | None
    """Shifts and powers for `_word_decimals`; None if the stored form does not fit into a word."""

    def build(self, data: Bytes, cells: Int32s, arena: Arena, counters: Counters) -> ArrayParts:
        """See `Codec.build`."""
        build = self._text if pa.types.is_string(self.arrow_type) else self._decimal
        return build(data, cells, arena)

    def _decimal(self, data: Bytes, cells: Int32s, arena: Arena) -> ArrayParts:
        values = arena.reserve(16 * cells.size)
        if self.word is not None:
            nulls = _word_decimals(data, cells, self.width, *self.word, values)
        else:
            numbers = values[: 16 * cells.size].view(np.uint64).reshape(-1, 2)
            nulls = _decimals(data, cells, self.sizes, self.powers, self.folds, numbers)
        _check(nulls)
        return fixed(arena, cells, 16, nulls)

    def _text(self, data: Bytes, cells: Int32s, arena: Arena) -> ArrayParts:
        offset_buffer, offsets = arena.allocate_offsets(cells.size)
        content = arena.reserve(cells.size * (self.precision + 3))
        nulls = _texts(data, cells, self.sizes, self.powers, self.digits, self.integers, offsets, content)
        _check(nulls)
        return variable(arena, cells, offset_buffer, int(offsets[-1]), nulls)


def _as_word(groups: list[int]) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    sizes = [GROUP_BYTES[digits] for digits in groups]
    if sum(sizes) > _WORD_BYTES or len(groups) > _WORD_GROUPS or sum(groups) > _WORD_DIGITS:
        return None
    missing = _WORD_GROUPS - len(groups)
    shifts = [8 * sum(sizes[index + 1 :]) for index in range(len(groups))]
    return (*shifts, *[0] * missing), (*(10**digits for digits in groups), *[1] * missing)


def _check(result: int) -> None:
    if result < 0:
        raise EventError("a DECIMAL value contains invalid digits", ~result)


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
    digits = np.array(groups, np.int64)
    sizes = np.array([GROUP_BYTES[count] for count in groups], np.int64)
    folds = np.array(_folds(groups), np.int64)
    arrow_type = pa.decimal128(precision, scale) if precision <= 38 else pa.string()
    return DecimalCodec(
        arrow_type,
        int(sizes.sum()),
        precision,
        digits,
        sizes,
        10**digits,
        folds,
        integers,
        _as_word(groups),
    )
