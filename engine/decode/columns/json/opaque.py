"""Kernel helpers that write the values of SQL types in MySQL's binary JSON: decimals, dates, times, bytes.

Every DECIMAL that an SQL expression puts into a document is stored in this way. Formats and texts are those
of the reference implementation (`text`), to which broken values are left.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from engine.binlog.decimal_text import MAX_PRECISION, MAX_SCALE
from engine.binlog.field_types import FieldType
from engine.decode.columns.digits import digits_of, write_digits, write_number
from engine.decode.columns.json.text import BASE64_LINE
from engine.kernels.memory import big_endian, load_byte, load_word, store_byte, store_word

UNWRITTEN = -1
"""Returned instead of a text's end offset: the document is left to the reference implementation."""

_NEWDECIMAL, _DATE, _TIME = int(FieldType.NEWDECIMAL), int(FieldType.DATE), int(FieldType.TIME)
_DATETIME, _TIMESTAMP = int(FieldType.DATETIME), int(FieldType.TIMESTAMP)

_GROUP_DIGITS = 9
_LONGEST_DECIMAL = MAX_PRECISION + 3
"""In characters: the digits, the sign, a zero before the point, the point."""
_LONGEST_TIME = 40
"""The most characters of a date or time in quotes, for any bits."""

_BASE64 = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8)
_BASE64_START = np.uint64(int.from_bytes(b'"base64:', "little"))
_BASE64_TYPE = np.uint64(int.from_bytes(b"type", "little"))


@numba.njit
def _group_bytes(digits: int) -> Any:
    """Bytes of a group of at most nine decimal digits."""
    return min((digits + 1) >> 1, 4)


@numba.njit
def _stored_bytes(digits: int) -> Any:
    """Bytes of the digits on one side of the point."""
    return digits // _GROUP_DIGITS * 4 + _group_bytes(digits % _GROUP_DIGITS)


@numba.njit
def _write_decimal(batch: int, at: int, size: int, text: int, to: int) -> Any:
    """Write the DECIMAL whose precision and scale are at `at`; return the end offset, or `UNWRITTEN`."""
    precision, scale = load_byte(batch, at), load_byte(batch, at + 1)
    if precision == 0 or precision > MAX_PRECISION or scale > min(precision, MAX_SCALE):
        return UNWRITTEN
    whole = precision - scale
    if _stored_bytes(whole) + _stored_bytes(scale) > size - 2:
        return UNWRITTEN
    at += 2
    flipped = np.uint64(0)
    if load_byte(batch, at) & 0x80 == 0:
        flipped = ~flipped
        store_byte(text, to, 45)
        to += 1
    sign = np.uint64(0x80)
    leading = True
    left = precision
    while left > 0:
        if left == scale:
            if leading:
                store_byte(text, to, 48)
                to += 1
                leading = False
            store_byte(text, to, 46)
            to += 1
        # Before the point the first group is the short one, after it the last.
        digits = (left - scale) % _GROUP_DIGITS if left > scale else min(left, _GROUP_DIGITS)
        if digits == 0:
            digits = _GROUP_DIGITS
        bytes_ = _group_bytes(digits)
        unused = np.uint64(64 - 8 * bytes_)
        number = (big_endian(batch, at, bytes_) ^ flipped ^ (sign << np.uint64(8 * bytes_ - 8))) << unused
        number >>= unused
        sign = np.uint64(0)
        if digits_of(number) > digits:
            return UNWRITTEN
        if not leading:
            to = write_digits(text, to, number, digits)
        elif number:
            to = write_number(text, to, number)
            leading = False
        at += bytes_
        left -= digits
    if leading:
        store_byte(text, to, 48)
        to += 1
    return to


@numba.njit
def _write_at_least(text: int, to: int, number: Any, digits: int) -> Any:
    """Write `number` (uint64) with at least `digits` digits; return the end offset."""
    return write_digits(text, to, number, max(digits, digits_of(number)))


@numba.njit
def _write_temporal(field_type: int, packed: Any, text: int, to: int) -> Any:
    """Write the date or time in MySQL's packed form (an int64's bits) in quotes; return the end offset."""
    store_byte(text, to, 34)
    to += 1
    negative = packed >> np.uint64(63) != 0
    if negative:
        packed = ~packed + np.uint64(1)
    fields, micros = packed >> np.uint64(24), packed & np.uint64(0xFFFFFF)
    hours = fields >> np.uint64(12) & np.uint64(0x3FF)
    if field_type == _TIME:
        if negative:
            store_byte(text, to, 45)
            to += 1
    else:
        months = fields >> np.uint64(22)
        hours &= np.uint64(31)
        to = _write_at_least(text, to, months // np.uint64(13), 4)
        store_byte(text, to, 45)
        to = write_digits(text, to + 1, months % np.uint64(13), 2)
        store_byte(text, to, 45)
        to = write_digits(text, to + 1, fields >> np.uint64(17) & np.uint64(31), 2)
    if field_type != _DATE:
        if field_type != _TIME:
            store_byte(text, to, 32)
            to += 1
        to = _write_at_least(text, to, hours, 2)
        store_byte(text, to, 58)
        to = write_digits(text, to + 1, fields >> np.uint64(6) & np.uint64(63), 2)
        store_byte(text, to, 58)
        to = write_digits(text, to + 1, fields & np.uint64(63), 2)
        store_byte(text, to, 46)
        to = _write_at_least(text, to + 1, micros, 6)
    store_byte(text, to, 34)
    return to + 1


@numba.njit
def _write_base64(batch: int, field_type: int, at: int, size: int, text: int, to: int, limit: int) -> Any:
    """Write the bytes of any other type as MySQL does; return the end offset, or `UNWRITTEN`."""
    if to + 20 + (size + 2) // 3 * 4 + size // BASE64_LINE * 2 > limit:
        return UNWRITTEN
    store_word(text, to, _BASE64_START)
    store_word(text, to + 8, _BASE64_TYPE)
    to = write_number(text, to + 12, np.uint64(field_type))
    store_byte(text, to, 58)
    to += 1
    for offset in range(0, size, 3):
        if offset and offset % BASE64_LINE == 0:
            store_byte(text, to, 92)
            store_byte(text, to + 1, 110)
            to += 2
        bits = load_byte(batch, at + offset) << 16
        if offset + 1 < size:
            bits |= load_byte(batch, at + offset + 1) << 8
        if offset + 2 < size:
            bits |= load_byte(batch, at + offset + 2)
        for index in range(4):
            known = offset + index <= size
            store_byte(text, to + index, np.int64(_BASE64[bits >> (18 - 6 * index) & 63]) if known else 61)
        to += 4
    store_byte(text, to, 34)
    return to + 1


@numba.njit
def write_opaque(batch: int, field_type: int, at: int, size: int, text: int, to: int, limit: int) -> Any:
    """Write the value of an SQL type in the `size` bytes at `at`; return the end offset, or `UNWRITTEN`."""
    if field_type == _NEWDECIMAL and size > 2:
        if to + _LONGEST_DECIMAL > limit:
            return UNWRITTEN
        return _write_decimal(batch, at, size, text, to)
    if field_type in (_DATE, _TIME, _DATETIME, _TIMESTAMP):
        if size != 8 or to + _LONGEST_TIME > limit:
            return UNWRITTEN
        return _write_temporal(field_type, load_word(batch, at), text, to)
    return _write_base64(batch, field_type, at, size, text, to, limit)
