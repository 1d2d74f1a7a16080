"""The kernel that turns the rows of a binary result set into the row images of a rows event.

It walks received packets and writes one row image per row. Most values are copied as they are; DECIMAL and
temporal values are packed (`packed_values`). Every length is checked against the end of its packet before its
bytes are read. A row is begun only if its image is sure to fit into the output, so a row costs one check of
the output's size.
Source: MySQL's protocol page "Binary Protocol Resultset Row".
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numba
import numpy as np
from numba import types

from engine.kernels.kernel import Bytes, Int64s
from engine.kernels.memory import (
    PADDING,
    address_of,
    copy_padded,
    load_byte,
    load_word,
    store_byte,
    store_word,
)
from engine.kernels.typed import DATA, OUT, kernel
from engine.snapshot.rows.packed_values import low_bits, write_decimal, write_duration, write_moment


class Operation(IntEnum):
    """How a value is transcribed; `SOURCE`, `TARGET` and the other columns of a plan are its parameters."""

    COPY = 0
    """A number of `SOURCE` bytes, of which the lowest `TARGET` are kept."""
    CONTENT = 1
    """A length-encoded string: its length in `TARGET` bytes, then its bytes, at most `LIMIT`."""
    MARKED_CONTENT = 2
    """The same, with a zero byte before the content: the mark of a value that is not compressed."""
    BYTES = 3
    """A length-encoded string of exactly `TARGET` bytes, without the length."""
    YEAR = 4
    """A year of `LIMIT` digits as one byte that counts from 1900."""
    MOMENT = 5
    """A DATE, DATETIME or TIMESTAMP as `TARGET` bytes; those after the first `WHOLE` contain the fraction, in
    units of `LIMIT` microseconds."""
    TIME = 6
    """A TIME in the same way."""
    DECIMAL = 7
    """Text, as `TARGET` bytes: `WHOLE` digits before the point and `FRACTION` after it, in the groups from
    `FIRST_GROUP` to before `LAST_GROUP`."""


OPERATION, SOURCE, TARGET, LIMIT, FIRST_GROUP, LAST_GROUP, WHOLE, FRACTION, PARAMETERS = range(9)
"""The columns of a plan, which has a row per selected column, and their number."""

(
    MORE,
    FULL,
    END,
    FAILED,
    SEVERAL_PACKETS,
    SEQUENCE,
    MARKER,
    BEYOND,
    LENGTH,
    TOO_LONG,
    RANGE,
    DIGITS,
    REST,
) = range(13)
"""Why the kernel stopped. `MORE`: the next packet is not complete. `FULL`: the next image may not fit. `END`
and `FAILED`: the next packet ends the rows, or is an ERR packet. The others, but for `SEVERAL_PACKETS`, are
damage."""

REASONS = {
    SEQUENCE: "a packet is missing or has the wrong number",
    MARKER: "a packet is neither a row nor the end of the rows",
    BEYOND: "a value ends after the end of its row",
    LENGTH: "a value has a length that its type does not allow",
    TOO_LONG: "a value is longer than its column allows",
    RANGE: "a temporal value contains a field that is out of range",
    DIGITS: "a DECIMAL value contains anything but the digits that its column allows",
    REST: "bytes follow the last value of a row",
}

_COPY, _CONTENT, _MARKED_CONTENT, _BYTES, _YEAR, _MOMENT, _TIME, _DECIMAL = map(int, Operation)
_LARGEST_PACKET = (1 << 24) - 1
_PACKET_HEADER = 4
_ROW_MARKER, _END_MARKER, _ERROR_MARKER = 0x00, 0xFE, 0xFF


@numba.njit(inline="always")
def _content(source: int, at: int, end: int) -> Any:
    """Start and size of a length-encoded string; the size is negative if it does not fit before `end`."""
    if at >= end:
        return at, np.int64(-BEYOND)
    first = load_byte(source, at)
    size, start = first, at + 1
    if first > 0xFA:
        if first == 0xFC:
            size, start = low_bits(load_word(source, at + 1), 16), at + 3
        elif first == 0xFD:
            size, start = low_bits(load_word(source, at + 1), 24), at + 4
        elif first == 0xFE:
            size, start = np.int64(load_word(source, at + 1)), at + 9
        else:
            return at, np.int64(-LENGTH)
    # A size of 2^63 or more is negative here.
    if size < 0 or start > end or size > end - start:
        return at, np.int64(-BEYOND)
    return start, size


@numba.njit(inline="always")
def _year(year: int, digits: int) -> Any:
    """A year, of which the server sends all digits or two, counted from 1900; above 255 if out of range."""
    if year >= 1900:
        return year - 1900
    if digits == 4:
        return year if year == 0 else 256
    return year + 100 if year < 70 else year


@numba.njit(inline="always")
def _is_temporal_length(operation: int, length: int) -> Any:
    """Whether a temporal value may have so many bytes: the server leaves out fields at the end that are 0."""
    if operation == _TIME:
        return length == 0 or length == 8 or length == 12
    return length == 0 or length == 4 or length == 7 or length == 11


@numba.njit(inline="always")
def _row(source: int, at: int, end: int, size: int, plan: Any, groups: Any, target: int, to: int) -> Any:
    """Write the image of the row from `at` (after its marker) to `end`.

    `size` is that of the array at `source`. Returns a status (`MORE` for success), the end of the image, and
    the column of a broken value.
    """
    columns = plan.shape[0]
    null_bytes = (columns + 9) >> 3
    if at + null_bytes > end:
        return BEYOND, to, 0
    image_nulls = to
    # The first two bits of the result's bitmap are unused.
    for byte in range((columns + 7) >> 3):
        store_byte(target, to + byte, low_bits(load_word(source, at + byte), 16) >> 2)
    at += null_bytes
    to += (columns + 7) >> 3
    if columns & 7:
        store_byte(target, to - 1, load_byte(target, to - 1) & ((1 << (columns & 7)) - 1))
    for column in range(columns):
        if load_byte(target, image_nulls + (column >> 3)) >> (column & 7) & 1:
            continue
        operation, width = plan[column, OPERATION], plan[column, TARGET]
        if operation == _COPY:
            if at + plan[column, SOURCE] > end:
                return BEYOND, to, column
            store_word(target, to, load_word(source, at))
            at += plan[column, SOURCE]
            to += width
        elif operation in (_CONTENT, _MARKED_CONTENT):
            start, length = _content(source, at, end)
            if length < 0:
                return -length, to, column
            if length > plan[column, LIMIT]:
                return TOO_LONG, to, column
            marked = int(operation == _MARKED_CONTENT)
            store_word(target, to, np.uint64(length + marked))
            to += width
            store_byte(target, to, 0)
            to += marked
            copy_padded(target, to, source, start, length, size)
            at = start + length
            to += length
        elif operation == _BYTES:
            start, length = _content(source, at, end)
            if length < 0:
                return -length, to, column
            if length != width:
                return LENGTH, to, column
            store_word(target, to, load_word(source, start))
            at = start + length
            to += width
        elif operation == _YEAR:
            if at + 2 > end:
                return BEYOND, to, column
            year = _year(low_bits(load_word(source, at), 16), plan[column, LIMIT])
            if year > 255:
                return RANGE, to, column
            store_byte(target, to, year)
            at += 2
            to += width
        elif operation == _DECIMAL:
            start, length = _content(source, at, end)
            if length < 0:
                return -length, to, column
            at = start + length
            whole, fraction = plan[column, WHOLE], plan[column, FRACTION]
            first, last = plan[column, FIRST_GROUP], plan[column, LAST_GROUP]
            if not write_decimal(source, start, at, whole, fraction, groups, first, last, target, to):
                return DIGITS, to, column
            to += width
        else:
            if at >= end:
                return BEYOND, to, column
            length = load_byte(source, at)
            at += 1
            if at + length > end:
                return BEYOND, to, column
            unit = plan[column, LIMIT]
            if not _is_temporal_length(operation, length):
                return LENGTH, to, column
            if operation == _TIME:
                sound = write_duration(source, at, length, width, unit, target, to)
            else:
                sound = write_moment(source, at, length, plan[column, WHOLE], width, unit, target, to)
            if not sound:
                return RANGE, to, column
            at += length
            to += width
    return MORE if at == end else REST, to, 0


_PLAN = types.Array(types.int64, 2, "C", readonly=True)
_GROUPS = types.Array(types.int64, 1, "C", readonly=True)


@kernel(
    types.UniTuple(types.int64, 6), DATA, *[types.int64] * 4, _PLAN, _GROUPS, types.int64, OUT, types.int64
)
def transcribe(
    received: Bytes,
    start: int,
    end: int,
    sequence: int,
    joined: int,
    plan: Any,
    groups: Int64s,
    overhead: int,
    images: Bytes,
    to: int,
) -> Any:
    """Write the images of the rows whose packets lie between `start` and `end` of `received`.

    Returns the status, the offset after the last row that was read, the offset after its image, the number of
    rows, the number of the next packet, and the column of a broken value. `sequence` is the number of the
    first packet, -1 if packets are not numbered. `joined`: 0, or the size of a row without packet headers
    that begins at `start`. `overhead`: the bytes by which an image may exceed its packet. Both arrays must
    have `PADDING` more bytes than are used: values are copied in whole words.
    """
    source, target = address_of(received), address_of(images)
    size, capacity = received.size, images.size - PADDING
    rows = np.int64(0)
    while True:
        if joined:
            body, row_end = start, start + joined
        else:
            if end - start < _PACKET_HEADER:
                return MORE, start, to, rows, sequence, 0
            header = load_word(source, start)
            length = low_bits(header, 24)
            if sequence >= 0 and low_bits(header >> np.uint64(24), 8) != sequence:
                return SEQUENCE, start, to, rows, sequence, 0
            if length == _LARGEST_PACKET:
                return SEVERAL_PACKETS, start, to, rows, sequence, 0
            body, row_end = start + _PACKET_HEADER, start + _PACKET_HEADER + length
            if row_end > end:
                return MORE, start, to, rows, sequence, 0
            if length == 0:
                return MARKER, start, to, rows, sequence, 0
        marker = load_byte(source, body)
        if marker != _ROW_MARKER:
            status = END if marker == _END_MARKER else FAILED if marker == _ERROR_MARKER else MARKER
            return status, start, to, rows, sequence, 0
        if to + (row_end - body) + overhead > capacity:
            return FULL, start, to, rows, sequence, 0
        status, image_end, column = _row(source, body + 1, row_end, size, plan, groups, target, to)
        if status != MORE:
            return status, start, to, rows, sequence, column
        to = image_end
        start = row_end
        rows += 1
        if joined:
            return MORE, start, to, rows, sequence, 0
        if sequence >= 0:
            sequence = (sequence + 1) & 0xFF
