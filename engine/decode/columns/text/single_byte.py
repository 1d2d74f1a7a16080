"""Text in character sets of one byte per character (latin1, cp1251, koi8r…), by a table of 256 entries.

Pure ASCII text is copied, except from swe7, which has other letters in that range.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np
import pyarrow as pa
from numba import types
from numpy.typing import NDArray

from engine.binlog.charset_tables import UNDEFINED, single_byte_characters
from engine.decode.arrow.codec import Codec
from engine.decode.columns.text.transcoding import (
    TRANSCODED,
    TranscodingCodec,
    copy_ascii,
    packed_utf8,
    write_packed,
)
from engine.kernels.memory import address_of, little_endian, load_byte
from engine.kernels.typed import CELLS, DATA, OFFSETS, OUT, kernel

_TABLE = types.Array(types.uint64, 1, "C", readonly=True)
_LARGEST = 3
"""The most bytes of UTF-8 per character of the tables."""


@kernel(TRANSCODED, _TABLE, DATA, types.boolean, DATA, CELLS, types.int64, OFFSETS, OUT)
def _transcode(
    table: Any, undefined: Any, has_ascii: bool, data: Any, cells: Any, prefix: int, offsets: Any, out: Any
) -> Any:
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


@cache
def _tables(charset: str) -> tuple[NDArray[np.uint64], NDArray[np.uint8], bool]:
    """By byte: packed UTF-8, and whether the byte is undefined; also whether the lower half is ASCII."""
    characters = single_byte_characters(charset)
    table = np.array([packed_utf8(character) for character in characters], np.uint64)
    undefined = [c == "\ufffd" or (c == UNDEFINED and byte != ord("?")) for byte, c in enumerate(characters)]
    has_ascii = all(ord(characters[byte]) == byte for byte in range(128))
    return table, np.array(undefined, np.uint8), has_ascii


def single_byte_codec(charset: str, width: int) -> Codec:
    """The codec of text in a single-byte character set."""
    return TranscodingCodec(pa.string(), width, partial(_transcode, *_tables(charset)), _LARGEST)
