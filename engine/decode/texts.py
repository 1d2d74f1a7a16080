"""Short texts of events in their own character set: statements, and the members of ENUM and SET columns.

The codecs of whole columns do the work, one value at a time. What cannot be decoded is never dropped in
silence: then the bytes in question become `\\xNN`.
"""

from __future__ import annotations

import numpy as np

from engine.decode.columns.base import Counters
from engine.decode.columns.charsets import BINARY, collation_charset
from engine.decode.columns.strings import text_codec
from engine.decode.columns.wide import WIDE_CHARSETS
from engine.decode.record_message import read_arrays

_UTF8 = ("utf8mb4", "utf8mb3", BINARY)
"""`binary` statements are what their client made them: most likely UTF-8."""
_NOT_ASCII = frozenset({*WIDE_CHARSETS, "swe7"})
"""Character sets in which bytes below 0x80 may be something else than in ASCII."""
_PREFIX = 4
_PADDING = 8


def decode_text(value: bytes, collation: int | None) -> tuple[str, bool]:
    """The text of bytes in a collation's character set (null: UTF-8), and whether that was without loss."""
    charset = BINARY if collation is None else collation_charset(collation)
    if charset in _UTF8 or (value.isascii() and charset not in _NOT_ASCII):
        try:
            return value.decode(), True
        except UnicodeDecodeError:
            return value.decode("utf-8", "backslashreplace"), False
    counters = Counters()
    data = bytes(_PADDING) + len(value).to_bytes(_PREFIX, "little") + value
    cells = np.array([_PADDING], np.int32)
    codec = text_codec(charset, -_PREFIX, "")
    (text,) = read_arrays(np.frombuffer(data, np.uint8), [cells], [codec], counters)
    if counters.values:
        return value.decode("ascii", "backslashreplace"), False
    return str(text[0].as_py()), True
