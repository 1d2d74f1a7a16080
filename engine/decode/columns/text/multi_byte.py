"""Text in character sets that extend ASCII by sequences of bytes (gbk, sjis, euckr, gb18030…).

Tables contain the characters of one, two, three (0x8F and two more, in Japanese EUC) and four bytes (in
gb18030). Sequences that are no character become `?`, as in the servers' conversion, and are counted as
`invalid_characters`.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numba
import numpy as np
import pyarrow as pa

from engine.binlog.charset_tables import (
    GB18030_FOURS,
    GB18030_SUPPLEMENTARY,
    UNDEFINED,
    ascii_trails,
    multi_byte_characters,
)
from engine.decode.arrow.codec import Codec
from engine.decode.arrow.column_kernel import FULL, buffer_at, column_kernel, offsets_at
from engine.decode.columns.text.transcoding import (
    REPLACEMENT,
    copy_ascii,
    finish_texts,
    packed_utf8,
    text_room,
    write_code_point,
    write_packed,
)
from engine.kernels.kernel import Bytes
from engine.kernels.memory import address_of, little_endian, load_byte

_NONE = 0xFFFFFFFF
"""No character, and perhaps no pair of bytes either."""
_UNASSIGNED = 0xFFFFFFFE
"""A pair of bytes that servers store, but no character."""
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


@numba.njit
def _transcode(tables: Any, data: Any, cells: Any, prefix: int, offsets: Any, out: Any) -> Any:
    """Fill offsets and content; returns the bytes of text, and how many characters are replaced."""
    ones, twos, threes, fours = tables
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
                if packed >= _UNASSIGNED:
                    packed = np.uint64(63)
                    invalid += 1
                invalid += packed == REPLACEMENT
                to = write_packed(text, to, packed)
                at += length
        offsets[index + 1] = to
    return to, invalid


@column_kernel
def _texts(
    data: Any, cells: Any, form: Any, constants: Any, memory: Any, at: int, parts: Any, notes: Any
) -> Any:
    """`form`: bytes of a length, then where each of the four tables ends among the words of `constants`."""
    words = constants.view(np.uint32)
    ones, twos = words[: form[1]], words[form[1] : form[2]]
    tables = ones, twos, words[form[2] : form[3]], words[form[3] : form[4]]
    content, room = text_room(data, cells, form[0], memory, at, notes)
    if content < 0:
        return FULL
    offsets, out = offsets_at(memory, at, cells.size), buffer_at(memory, content, room)
    size, invalid = _transcode(tables, data, cells, form[0], offsets, out)
    return finish_texts(cells, size, invalid, memory, at, content, parts, notes)


@cache
def _tables(charset: str) -> tuple[Bytes, tuple[int, ...]]:
    """Packed UTF-8 by sequence of one, two, three and four bytes, and the end of each table, in words.

    Tables for lengths that do not occur are empty.
    """
    tables = [np.full(size, _NONE, np.uint32) for size in (1 << 8, 1 << 16, 1 << 16, GB18030_FOURS)]
    used = {1, 2}
    for sequence, character in multi_byte_characters(charset):
        used.add(len(sequence))
        index = _table_index(sequence)
        undefined = character == UNDEFINED and sequence != UNDEFINED.encode()
        tables[len(sequence) - 1][index] = _NONE if undefined else packed_utf8(character)
    unassigned = np.zeros((1 << 8, 1 << 8), np.bool_)
    unassigned[0x81:0xFF, list(ascii_trails(charset))] = True
    tables[1][unassigned.ravel() & (tables[1] == _NONE)] = _UNASSIGNED
    kept = [table if length in used else table[:0] for length, table in enumerate(tables, start=1)]
    ends = np.cumsum([len(table) for table in kept]).tolist()
    return np.concatenate(kept).view(np.uint8), tuple(ends)


def _table_index(sequence: bytes) -> int:
    """The sequence's index in the table of its length."""
    if len(sequence) < 4:
        return int.from_bytes(sequence[-2:], "big")
    a, b, c, d = sequence
    return (((a - 0x81) * 10 + b - 0x30) * 126 + c - 0x81) * 10 + d - 0x30


def multi_byte_codec(charset: str, width: int) -> Codec:
    """The codec of text in a multi-byte character set that extends ASCII."""
    constants, ends = _tables(charset)
    return Codec(pa.string(), width, _texts, (-width, *ends), constants)
