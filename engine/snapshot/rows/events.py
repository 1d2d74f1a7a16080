"""The events around row images: format description, table map, and the start of a rows event.

Their headers state that they are not part of the file (they are artificial, with end position 0), so that
each row gets the position of the whole batch.
"""

from __future__ import annotations

import struct

from engine.binlog.event_types import (
    CHECKSUM_LENGTH,
    FLAG_ARTIFICIAL,
    FORMAT_DESCRIPTION_EVENT,
    HEADER_LENGTH,
    TABLE_MAP_EVENT,
    WRITE_ROWS_EVENT,
)
from engine.binlog.format_description import CHECKSUM_OFF, FormatDescription, has_checksum_field
from engine.binlog.table_map_writer import length_encoded, write_table_map
from engine.snapshot.rows.row_format import RowFormat

_HEADER = struct.Struct("<IBIIIH")
_TABLE_ID = 1
_NO_EXTRA = b"\x02\x00"
_STATEMENT_END = b"\x01\x00"


def opening(row_format: RowFormat, timestamp: int) -> tuple[bytes, tuple[int, int, int]]:
    """The bytes of a batch up to its first row image, and the offsets of its three events.

    The size of the third, the rows event, is that of its part here. `timestamp`: seconds since the epoch.
    """
    events = (
        _event(FORMAT_DESCRIPTION_EVENT, _format_description(row_format), timestamp),
        _event(
            TABLE_MAP_EVENT,
            write_table_map(row_format.definition, _TABLE_ID, mariadb=row_format.mariadb),
            timestamp,
        ),
        _event(WRITE_ROWS_EVENT, _rows_start(row_format), timestamp),
    )
    return b"".join(events), (0, len(events[0]), len(events[0]) + len(events[1]))


def _event(type_code: int, body: bytes, timestamp: int) -> bytes:
    size = HEADER_LENGTH + len(body)
    return _HEADER.pack(timestamp, type_code, 0, size, 0, FLAG_ARTIFICIAL) + body


def _format_description(row_format: RowFormat) -> bytes:
    version = ".".join(map(str, row_format.version)) + ("-MariaDB" if row_format.mariadb else "")
    body = struct.pack("<H50sIB", 4, version.encode(), 0, HEADER_LENGTH)
    body += FormatDescription.assumed().post_header_lengths
    if has_checksum_field(version):
        # Readers expect the bytes of a checksum here, even if events have none.
        body += bytes([CHECKSUM_OFF]) + bytes(CHECKSUM_LENGTH)
    return body


def _rows_start(row_format: RowFormat) -> bytes:
    columns = len(row_format.cells)
    bitmap = ((1 << columns) - 1).to_bytes((columns + 7) // 8, "little")
    return _TABLE_ID.to_bytes(6, "little") + _STATEMENT_END + _NO_EXTRA + length_encoded(columns) + bitmap
