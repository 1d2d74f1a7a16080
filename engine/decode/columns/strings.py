"""CHAR, VARCHAR and TEXT: text of any character set, as UTF-8; and bytes where the character set is `binary`.

This module only chooses: each kind of character set has a codec of its own.
"""

from __future__ import annotations

import pyarrow as pa

from engine.decode.columns.base import Codec, Column, Options
from engine.decode.columns.binaries import binary_codec
from engine.decode.columns.charsets import BINARY, charset_of
from engine.decode.columns.field_types import FieldType
from engine.decode.columns.utf8 import Utf8Codec
from engine.decode.columns.widths import length_bytes

_BLOBS = {FieldType.TINY_BLOB, FieldType.BLOB, FieldType.MEDIUM_BLOB, FieldType.LONG_BLOB}


def string_codec(column: Column, options: Options) -> Codec:
    """The codec of a column of text or bytes.

    Where nobody told the character set, BLOB and TEXT (which the binlog calls alike) are bytes, and the
    others are taken for UTF-8.
    """
    charset = charset_of(column)
    if charset == BINARY or (charset is None and column.type_code in _BLOBS):
        return binary_codec(column, options)
    return Utf8Codec(pa.string(), -length_bytes(column))
