"""CHAR, VARCHAR and TEXT: text of any character set, as UTF-8; and bytes if the character set is `binary`.

This module selects the codec: each kind of character set has one.
"""

from __future__ import annotations

from engine.binlog.charset_tables import MULTI_BYTE_CHARSETS, SINGLE_BYTE_CHARSETS
from engine.binlog.charsets import charset_of
from engine.binlog.collations import BINARY
from engine.binlog.column import Column
from engine.binlog.field_types import FieldType
from engine.decode.arrow.codec import Codec, Options
from engine.decode.columns.binaries import binary_codec
from engine.decode.columns.text.multi_byte import multi_byte_codec
from engine.decode.columns.text.single_byte import single_byte_codec
from engine.decode.columns.text.utf8 import utf8_codec
from engine.decode.columns.text.wide import WIDE_CHARSETS, wide_codec
from engine.decode.columns.widths import length_bytes
from engine.errors import EngineError

_BLOBS = {FieldType.TINY_BLOB, FieldType.BLOB, FieldType.MEDIUM_BLOB, FieldType.LONG_BLOB}

DEFAULT_CHARSET = "utf8mb4"
"""Assumed for text whose character set is not known."""
_UTF8 = {"utf8mb4", "utf8mb3", "ascii"}


def text_codec(charset: str, width: int, column_name: str) -> Codec:
    """The codec of length-prefixed text. Raises `EngineError` for an unknown character set."""
    if charset in _UTF8:
        return utf8_codec(width)
    if charset in SINGLE_BYTE_CHARSETS:
        return single_byte_codec(charset, width)
    if charset in MULTI_BYTE_CHARSETS:
        return multi_byte_codec(charset, width)
    if charset in WIDE_CHARSETS:
        return wide_codec(charset, width)
    raise EngineError(f"column {column_name} has the unknown character set {charset}")


def string_codec(column: Column, options: Options) -> Codec:
    """The codec of a column of text or bytes.

    If the character set is not known, BLOB and TEXT (which have the same type code) become bytes, and the
    other types are decoded as UTF-8.
    """
    charset = charset_of(column)
    if charset == BINARY or (charset is None and column.type_code in _BLOBS):
        return binary_codec(column, options)
    return text_codec(charset or DEFAULT_CHARSET, -length_bytes(column), column.name)
