"""Text in Unicode's fixed-size units: ucs2, utf16, utf16le and utf32.

Unpaired surrogates (in ucs2, all surrogates), numbers above Unicode's range and truncated units become
U+FFFD, counted as `invalid_characters`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numba import types

from engine.decode.arrow.codec import Codec
from engine.decode.columns.text.transcoding import TRANSCODED, TranscodingCodec, write_code_point
from engine.kernels.memory import address_of, big_endian, little_endian
from engine.kernels.typed import CELLS, DATA, OFFSETS, OUT, kernel

_LARGEST = 3
"""The most bytes of UTF-8 per stored byte: a single byte is a truncated unit, which becomes U+FFFD."""

_FORMS = {
    "ucs2": (2, False, False),
    "utf16": (2, False, True),
    "utf16le": (2, True, True),
    "utf32": (4, False, False),
}
"""Character set → bytes per unit, whether it is little-endian, whether surrogates form pairs."""

WIDE_CHARSETS = frozenset(_FORMS)


@kernel(TRANSCODED, types.int64, types.boolean, types.boolean, DATA, CELLS, types.int64, OFFSETS, OUT)
def _transcode(
    unit: int, little: bool, pairing: bool, data: Any, cells: Any, prefix: int, offsets: Any, out: Any
) -> Any:
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


def wide_codec(charset: str, width: int) -> Codec:
    """The codec of text in units of two or four bytes."""
    return TranscodingCodec(pa.string(), width, partial(_transcode, *_FORMS[charset]), _LARGEST)
