"""Text in Unicode's fixed-size units: ucs2, utf16, utf16le and utf32.

Unpaired surrogates (in ucs2, all surrogates), numbers above Unicode's range and truncated units become
U+FFFD, counted as `invalid_characters`.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pyarrow as pa

from engine.decode.arrow.codec import Codec
from engine.decode.arrow.column_kernel import FULL, buffer_at, column_kernel, offsets_at
from engine.decode.columns.text.transcoding import finish_texts, text_room, write_code_point
from engine.kernels.memory import address_of, big_endian, little_endian

_FORMS = {
    "ucs2": (2, False, False),
    "utf16": (2, False, True),
    "utf16le": (2, True, True),
    "utf32": (4, False, False),
}
"""Character set → bytes per unit, whether it is little-endian, whether surrogates form pairs."""

WIDE_CHARSETS = frozenset(_FORMS)


@numba.njit
def _transcode(units: Any, data: Any, cells: Any, prefix: int, offsets: Any, out: Any) -> Any:
    """Fill offsets and content; returns the bytes of text, and how many characters are replaced: a truncated
    unit becomes U+FFFD."""
    unit, little, pairing = units
    batch, text = address_of(data), address_of(out)
    to = np.int64(0)
    invalid = np.int64(0)
    offsets[0] = 0
    for index in range(cells.size):
        cell = np.int64(cells[index])
        if cell >= 0:
            at = cell + prefix
            end = at + np.int64(little_endian(batch, cell, prefix))
            while at < end:
                code_point = np.int64(0xFFFFFFFF)
                if at + unit <= end:
                    code_point = np.int64(
                        little_endian(batch, at, unit) if little else big_endian(batch, at, unit)
                    )
                at += unit
                if pairing and 0xD800 <= code_point < 0xDC00 and at + unit <= end:
                    low = np.int64(little_endian(batch, at, unit) if little else big_endian(batch, at, unit))
                    if 0xDC00 <= low < 0xE000:
                        code_point = 0x10000 + ((code_point - 0xD800) << 10) + low - 0xDC00
                        at += unit
                if code_point > 0x10FFFF or 0xD800 <= code_point < 0xE000:
                    code_point = np.int64(0xFFFD)
                    invalid += 1
                to = write_code_point(text, to, code_point)
        offsets[index + 1] = to
    return to, invalid


@column_kernel
def _texts(
    data: Any, cells: Any, form: Any, constants: Any, memory: Any, at: int, parts: Any, notes: Any
) -> Any:
    units = form[1], form[2] != 0, form[3] != 0
    content, room = text_room(data, cells, form[0], memory, at, notes)
    if content < 0:
        return FULL
    offsets, out = offsets_at(memory, at, cells.size), buffer_at(memory, content, room)
    size, invalid = _transcode(units, data, cells, form[0], offsets, out)
    return finish_texts(cells, size, invalid, memory, at, content, parts, notes)


def wide_codec(charset: str, width: int) -> Codec:
    """The codec of text in units of two or four bytes."""
    return Codec(pa.string(), width, _texts, (-width, *_FORMS[charset]))
