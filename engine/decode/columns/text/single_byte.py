"""Text in character sets of one byte per character (latin1, cp1251, koi8r…), by a table of 256 entries.

Pure ASCII text is copied, except from swe7, which has other letters in that range.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numba
import numpy as np
import pyarrow as pa

from engine.binlog.charset_tables import UNDEFINED, single_byte_characters
from engine.decode.arrow.codec import Codec
from engine.decode.arrow.column_kernel import FULL, buffer_at, column_kernel, offsets_at
from engine.decode.columns.text.transcoding import (
    copy_ascii,
    finish_texts,
    packed_utf8,
    text_room,
    write_packed,
)
from engine.kernels.kernel import Bytes
from engine.kernels.memory import address_of, little_endian, load_byte

_TABLE_BYTES = 8 * 256


@numba.njit
def _transcode(tables: Any, data: Any, cells: Any, prefix: int, offsets: Any, out: Any) -> Any:
    """Fill offsets and content; returns the bytes of text, and how many characters are replaced."""
    table, undefined, has_ascii = tables
    batch, text = address_of(data), address_of(out)
    to = np.int64(0)
    invalid = np.int64(0)
    offsets[0] = 0
    for index in range(cells.size):
        cell = np.int64(cells[index])
        if cell >= 0:
            size = np.int64(little_endian(batch, cell, prefix))
            start = cell + prefix
            if has_ascii and copy_ascii(text, to, batch, start, size, data.size):
                to += size
            else:
                for at in range(start, start + size):
                    byte = load_byte(batch, at)
                    to = write_packed(text, to, table[byte])
                    invalid += undefined[byte]
        offsets[index + 1] = to
    return to, invalid


@column_kernel
def _texts(
    data: Any, cells: Any, form: Any, constants: Any, memory: Any, at: int, parts: Any, notes: Any
) -> Any:
    tables = constants[:_TABLE_BYTES].view(np.uint64), constants[_TABLE_BYTES:], form[1] != 0
    content, room = text_room(data, cells, form[0], memory, at, notes)
    if content < 0:
        return FULL
    offsets, out = offsets_at(memory, at, cells.size), buffer_at(memory, content, room)
    size, invalid = _transcode(tables, data, cells, form[0], offsets, out)
    return finish_texts(cells, size, invalid, memory, at, content, parts, notes)


@cache
def _tables(charset: str) -> tuple[Bytes, bool]:
    """By byte: packed UTF-8 in a word, then whether it is undefined; also whether the lower half is ASCII."""
    characters = single_byte_characters(charset)
    table = np.array([packed_utf8(character) for character in characters], np.uint64)
    undefined = [c == "\ufffd" or (c == UNDEFINED and byte != ord("?")) for byte, c in enumerate(characters)]
    has_ascii = all(ord(characters[byte]) == byte for byte in range(128))
    return np.concatenate([table.view(np.uint8), np.array(undefined, np.uint8)]), has_ascii


def single_byte_codec(charset: str, width: int) -> Codec:
    """The codec of text in a single-byte character set."""
    constants, has_ascii = _tables(charset)
    return Codec(pa.string(), width, _texts, (-width, has_ascii), constants)
