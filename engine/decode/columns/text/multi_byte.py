"""Text in character sets that extend ASCII by sequences of bytes (gbk, sjis, euckr, gb18030…).

Tables contain the characters of one, two, three (0x8F and two more, in Japanese EUC) and four bytes (in
gb18030). Invalid sequences become `?`, as in the servers' conversion, and are counted as
`invalid_characters`.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numba
import numpy as np
import pyarrow as pa
from numba import types
from numpy.typing import NDArray

from engine.binlog.charset_tables import (
    GB18030_FOURS,
    GB18030_SUPPLEMENTARY,
    UNDEFINED,
    multi_byte_characters,
)
from engine.decode.arrow.codec import Codec
from engine.decode.columns.text.transcoding import (
    REPLACEMENT,
    TRANSCODED,
    TranscodingCodec,
    copy_ascii,
    packed_utf8,
    write_code_point,
    write_packed,
)
from engine.kernels.memory import address_of, little_endian, load_byte
from engine.kernels.typed import CELLS, DATA, OFFSETS, OUT, kernel

_TABLE = types.Array(types.uint32, 1, "C", readonly=True)
_NONE = 0xFFFFFFFF
_LARGEST = 3
"""The most bytes of UTF-8 per stored byte."""
_TRIPLE = 0x8F


@numba.njit
def _four(batch: int, at: int, end: int) -> Any:
    """The index of the gb18030 sequence of four bytes at `at`; -1 if there is none."""
    if at + 4 > end:
        return -1
    a, b = load_byte(batch, at) - 0x81, load_byte(batch, at + 1) - 0x30
    c, d = load_byte(batch, at + 2) - 0x81, load_byte(batch, at + 3) - 0x30
    if not (0 <= a < 126 and 0 <= b < 10 and 0 <= c < 126 and 0 <= d < 10):
        return -1
    return ((a * 10 + b) * 126 + c) * 10 + d


@kernel(TRANSCODED, _TABLE, _TABLE, _TABLE, _TABLE, DATA, CELLS, types.int64, OFFSETS, OUT)
def _transcode(
    ones: Any,
    twos: Any,
    threes: Any,
    fours: Any,
    data: Any,
    cells: Any,
    prefix: int,
    offsets: Any,
    out: Any,
) -> Any:
    batch, text = address_of(data), address_of(out)
    to = np.int64(0)
    invalid = np.int64(0)
    offsets[0] = 0
    for index in range(cells.size):
        cell = np.int64(cells[index])
        if cell >= 0:
            size = np.int64(little_endian(batch, cell, prefix))
            at = cell + prefix
            end = at + size
            if copy_ascii(text, to, batch, at, size, data.size):
                to += size
                at = end
            while at < end:
                lead = load_byte(batch, at)
                packed = np.uint64(ones[lead])
                length = 1
                if packed == _NONE and at + 2 <= end:
                    four = _four(batch, at, end) if fours.size else -1
                    if four >= 0:
                        length = 4
                        code_point = 0x10000 + four - GB18030_SUPPLEMENTARY
                        if four < fours.size:
                            packed = np.uint64(fours[four])
                        elif 0x10000 <= code_point <= 0x10FFFF:
                            to = write_code_point(text, to, code_point)
                            at += 4
                            continue
                    elif threes.size and lead == _TRIPLE and at + 3 <= end:
                        length = 3
                        packed = np.uint64(threes[load_byte(batch, at + 1) << 8 | load_byte(batch, at + 2)])
                    else:
                        packed = np.uint64(twos[lead << 8 | load_byte(batch, at + 1)])
                        length = 1 if packed == _NONE and load_byte(batch, at + 1) < 0x80 else 2
                if packed == _NONE:
                    packed = np.uint64(63)
                    invalid += 1
                invalid += packed == REPLACEMENT
                to = write_packed(text, to, packed)
                at += length
        offsets[index + 1] = to
    return to, invalid


@cache
def _tables(charset: str) -> tuple[NDArray[np.uint32], ...]:
    """Packed UTF-8 by sequence of one, two, three and four bytes; empty for lengths that do not occur."""
    tables = [np.full(size, _NONE, np.uint32) for size in (1 << 8, 1 << 16, 1 << 16, GB18030_FOURS)]
    used = {1, 2}
    for sequence, character in multi_byte_characters(charset):
        used.add(len(sequence))
        index = _table_index(sequence)
        undefined = character == UNDEFINED and sequence != UNDEFINED.encode()
        tables[len(sequence) - 1][index] = _NONE if undefined else packed_utf8(character)
    return tuple(
        table if length in used else np.empty(0, np.uint32) for length, table in enumerate(tables, start=1)
    )


def _table_index(sequence: bytes) -> int:
    """The sequence's index in the table of its length."""
    if len(sequence) < 4:
        return int.from_bytes(sequence[-2:], "big")
    a, b, c, d = sequence
    return (((a - 0x81) * 10 + b - 0x30) * 126 + c - 0x81) * 10 + d - 0x30


def multi_byte_codec(charset: str, width: int) -> Codec:
    """The codec of text in a multi-byte character set that extends ASCII."""
    return TranscodingCodec(pa.string(), width, partial(_transcode, *_tables(charset)), _LARGEST)
