"""MariaDB's COMPRESSED columns: each value is uncompressed and passed to the codec of the plain type.

A value starts with a header byte: 0 for no compression, else zlib, with the number of bytes (in the low three
bits) that hold the original size, most significant first. Source: MariaDB `sql/field_comp.cc`.
"""

from __future__ import annotations

import zlib

import numpy as np

from engine.binlog.charsets import charset_of
from engine.binlog.collations import BINARY
from engine.binlog.column import Column
from engine.binlog.field_types import FieldType
from engine.decode.arrow.arena import Arena, ArrayParts
from engine.decode.arrow.codec import NULL_CELL, Codec, Counters, Options, too_large
from engine.decode.arrow.column_kernel import LARGEST_CONTENT
from engine.decode.columns.binaries import bytes_codec
from engine.decode.columns.text.strings import DEFAULT_CHARSET, text_codec
from engine.decode.columns.widths import length_bytes
from engine.errors import EventError
from engine.kernels.kernel import Bytes, Int32s

_PLAIN = 0
_ZLIB = 0x80
_METHOD = 0xF0
_WITHOUT_HEADER = 0x08
_SIZE_BYTES = 0x07

_PREFIX = 4
"""Length bytes of the values that are passed to the inner codec."""


def _codec_of_uncompressed(inner: Codec, prefix: int) -> Codec:
    """The codec of compressed values; `inner` gets them uncompressed, with lengths of `_PREFIX` bytes."""

    def build(data: Bytes, cells: Int32s, arena: Arena, counters: Counters) -> ArrayParts:
        plain = bytearray()
        plain_cells = np.full(cells.size, NULL_CELL, np.int32)
        for index, cell in enumerate(cells.tolist()):
            if cell >= 0:
                value = _uncompressed(data, cell, prefix)
                plain_cells[index] = len(plain)
                plain += len(value).to_bytes(_PREFIX, "little") + value
                if len(plain) > LARGEST_CONTENT:
                    raise too_large(len(plain))
        return inner.build(np.frombuffer(plain, np.uint8), plain_cells, arena, counters)

    return Codec(inner.arrow_type, -prefix, kernel=None, in_python=build)


def _uncompressed(data: Bytes, cell: int, prefix: int) -> bytes:
    start = cell + prefix
    size = int.from_bytes(data[cell:start].tobytes(), "little")
    try:
        return uncompress(data[start : start + size].tobytes())
    except EventError as error:
        raise EventError(error.reason, start + error.offset) from error


def uncompress(stored: bytes) -> bytes:
    """The original of a stored value. Raises `EventError` with an offset in `stored`."""
    if not stored or stored[0] == _PLAIN:
        return stored[1:]
    header = stored[0]
    if header & _METHOD != _ZLIB:
        raise EventError(f"a compressed value has the unknown method {header >> 4}")
    body = 1 + (header & _SIZE_BYTES)
    size = int.from_bytes(stored[1:body], "big")
    if not header & _SIZE_BYTES or len(stored) < body or size > LARGEST_CONTENT:
        raise EventError("a compressed value does not contain its original size")
    window = -zlib.MAX_WBITS if header & _WITHOUT_HEADER else zlib.MAX_WBITS
    try:
        original = zlib.decompressobj(window).decompress(stored[body:], size + 1)
    except zlib.error as error:
        raise EventError(f"a compressed value cannot be uncompressed ({error})", body) from None
    if len(original) != size:
        raise EventError(f"a compressed value does not have the {size} bytes that its header states", 1)
    return original


def compressed_codec(column: Column, options: Options) -> Codec:
    """The codec of a VARCHAR, VARBINARY, TEXT or BLOB column that is COMPRESSED."""
    charset = charset_of(column)
    if charset == BINARY or (charset is None and column.type_code == FieldType.BLOB_COMPRESSED):
        inner = bytes_codec(-_PREFIX)
    else:
        inner = text_codec(charset or DEFAULT_CHARSET, -_PREFIX, column.name)
    return _codec_of_uncompressed(inner, length_bytes(column))
