"""MariaDB's compressed statements and rows (`log_bin_compress`), with a bound on what they may grow to.

A header byte (0x80, and how many bytes the original length takes), the original length, big-endian, and a
zlib stream. Source: `binlog_buf_uncompress` and `query_event_uncompress` in MariaDB's `log_event.cc`.
"""

from __future__ import annotations

import zlib

from engine.errors import EventError

MAX_ORIGINAL = 1 << 30
"""Bytes: no server writes a larger event."""

_COMPRESSED_WITH_ZLIB = 0x80
_LENGTH_BYTES = 0x07


def uncompress(record: bytes, limit: int = MAX_ORIGINAL) -> bytes:
    """The original bytes of a compressed record.

    Raises `EventError` for bytes that are no such record, and for an original that is larger than `limit`
    or than the record itself says.
    """
    if not record or record[0] & ~_LENGTH_BYTES != _COMPRESSED_WITH_ZLIB:
        raise EventError("a compressed part starts with no header that MariaDB writes")
    start = 1 + (record[0] & _LENGTH_BYTES)
    length = int.from_bytes(record[1:start], "big")
    if not 1 < start <= 5 or len(record) < start or length > limit:
        raise EventError(f"a compressed part claims {length} bytes; {limit} are the most")
    inflater = zlib.decompressobj()
    try:
        original = inflater.decompress(record[start:], length + 1)
    except zlib.error as error:
        raise EventError(f"a compressed part cannot be expanded: {error}", start) from None
    if len(original) != length:
        raise EventError(f"a compressed part does not expand to the {length} bytes that it claims", start)
    return original
