"""A value of MariaDB's COMPRESSED columns."""

from __future__ import annotations

import zlib


def compressed(value: bytes, raw: bool) -> bytes:
    size = len(value).to_bytes(max(1, (len(value).bit_length() + 7) // 8), "big")
    compressor = zlib.compressobj(wbits=-15 if raw else 15)
    return bytes([0x80 | 8 * raw | len(size)]) + size + compressor.compress(value) + compressor.flush()
