"""How much a decoder needs for the events of a batch, where that is far more than their own size.

A decoder expands the compressed transactions and rows events of a batch before it reads a row, and they may
expand to a thousand times their size. And it has a place for every column of a row, also for those that the
row's image lacks (`binlog_row_image` MINIMAL and NOBLOB): a row of five bytes may have hundreds. So a batch
is limited by these sizes as well, not only by its own bytes.
"""

from __future__ import annotations

import numpy as np

from engine.binlog.event_roles import HAS_EXTRA_INFO, IS_COMPRESSED, IS_UPDATE
from engine.binlog.event_types import HEADER_LENGTH
from engine.kernels.bitmaps import count_bits
from engine.kernels.kernel import Bytes, kernel, read_u16, read_u24, read_u64

MOST_EXPANDED = 64 << 20
"""Bytes that a batch of several such events may need; one rows event alone may need more."""
_UNKNOWN = MOST_EXPANDED + 1
"""The size of a transaction that does not say it in the usual form."""

_END, _PAYLOAD_SIZE, _UNCOMPRESSED_SIZE = 0, 1, 3
"""Types of fields in TRANSACTION_PAYLOAD_EVENT (`engine.binlog.events.payload`)."""

_CELL_BYTES = 12
"""Bytes of a column in a row, about: where its value is, and the value in the record batch."""
_UPDATED_CELL_BYTES = 32
"""The same for an update. Preimages and postimages lack other columns, and take turns, so that every row has
the names of the columns that it lacks."""
_USUAL_VALUE = 4
"""Bytes of a value in a row's image, about."""


@kernel
def expanded_transaction(data: Bytes, body: int, end: int) -> int:
    """The size that the compressed transaction data[body:end] claims, at most a byte more than the limit.

    Types and lengths of the known fields take one byte. Decoders report other bytes.
    """
    at = body
    size = 0
    while at < end and data[at] != _END:
        value = at + 2
        if value > end or data[at] > 250 or data[at + 1] > 250 or data[at + 1] == 0:
            return _UNKNOWN
        after = value + data[at + 1]
        if after > end:
            return _UNKNOWN
        if data[at] == _UNCOMPRESSED_SIZE:
            size = _length_encoded(data, value, after)
        elif data[at] == _PAYLOAD_SIZE and size == 0:
            # Without compression nothing else says it.
            size = _length_encoded(data, value, after)
        at = after
    return size


@kernel
def _length_encoded(data: Bytes, at: int, end: int) -> int:
    """The length-encoded integer data[at:end], which is not empty, as far as it is below the limit."""
    first, size = np.int64(data[at]), end - at - 1
    number = _UNKNOWN
    if first < 251 and size == 0:
        number = int(first)
    elif first == 252 and size == 2:
        number = read_u16(data, at + 1)
    elif first == 253 and size == 3:
        number = read_u24(data, at + 1)
    elif first == 254 and size == 8:
        number = read_u64(data, at + 1)
    return number if 0 <= number < _UNKNOWN else _UNKNOWN


@kernel
def expanded_rows(data: Bytes, start: int, end: int, kind: int) -> int:
    """What a decoder needs for the rows event data[start:end], about, at most a byte more than the limit.

    It is 0 if the event is not compressed and its images have every column, and where its lengths do not fit:
    decoders report that.
    """
    at = start + HEADER_LENGTH + 8
    if HAS_EXTRA_INFO[kind]:
        if at + 2 > end:
            return 0
        at += max(2, read_u16(data, at))
    if at + 3 > end:
        return 0
    columns = int(data[at])
    at += 1
    if columns == 0xFC:
        columns = read_u16(data, at)
        at += 2
    images = 2 if IS_UPDATE[kind] else 1
    bitmap_size = (columns + 7) >> 3
    if at + images * bitmap_size > end:
        return 0
    present = 0
    row_size = 0
    for _ in range(images):
        image = count_bits(data, at, columns)
        present += image
        row_size += ((image + 7) >> 3) + _USUAL_VALUE * image
        at += bitmap_size
    content = end - at
    size = 0
    if IS_COMPRESSED[kind]:
        size = content = _original_length(data, at, end)
    if present < images * columns:
        cell = _UPDATED_CELL_BYTES if images == 2 else _CELL_BYTES
        size += cell * columns * images * (content // row_size if row_size else 1)
    return size if size < _UNKNOWN else _UNKNOWN


@kernel
def _original_length(data: Bytes, at: int, end: int) -> int:
    """The length before compression that data[at:end] claims, at most a byte more than the limit.

    See `engine.binlog.mariadb_compression`.
    """
    length = np.int64(0)
    if at < end:
        for place in range(at + 1, min(end, at + 1 + (data[at] & 7))):
            length = length << 8 | data[place]
    return int(length) if length < _UNKNOWN else _UNKNOWN
