"""MariaDB's compressed statements and rows (`log_bin_compress`), expanded up to a limit.

The format is a header byte (0x80 plus the number of bytes of the original length), the original length
(big-endian), and a zlib stream.
Source: `binlog_buf_uncompress` and `query_event_uncompress` in MariaDB's `log_event.cc`.
"""

from __future__ import annotations

import zlib

from engine.errors import EventError

MAX_ORIGINAL = 1 << 30
"""Size in bytes of the largest event that a server writes."""

_COMPRESSED_WITH_ZLIB = 0x80
_LENGTH_BYTES = 0x07


def uncompress(record: bytes, limit: int = MAX_ORIGINAL) -> bytes:
    """The original bytes of a compressed record.

    Raises `EventError` for bytes that are not such a record, and for an original that exceeds `limit` or
    differs in length from what the record claims.
    """
    if not record or record[0] & ~_LENGTH_BYTES != _COMPRESSED_WITH_ZLIB:
        raise EventError("a compressed value does not start with a header that MariaDB writes")
    start = 1 + (record[0] & _LENGTH_BYTES)
    length = int.from_bytes(record[1:start], "big")
    if not 1 < start <= 5 or len(record) < start or length > limit:
        raise EventError(f"a compressed value claims {length} bytes, the limit is {limit}")
    inflater = zlib.decompressobj()
    try:
        original = inflater.decompress(record[start:], length + 1)
    except zlib.error as error:
        raise EventError(f"a compressed value cannot be expanded: {error}", start) from None
    if len(original) != length:
        raise EventError(f"a compressed value does not expand to the {length} bytes that it claims", start)
    return original
