"""Converts rows events to the simplest layout, the only one that the row walk reads.

Extra row info is left out and compressed rows are expanded; table id, flags, bitmaps and row images remain.
"""

from __future__ import annotations

from engine.binlog import event_types as types
from engine.binlog.events.rows import RowsHeader
from engine.errors import EventError

_PLAIN_TYPES = {
    "write": types.WRITE_ROWS_EVENT_V1,
    "update": types.UPDATE_ROWS_EVENT_V1,
    "delete": types.DELETE_ROWS_EVENT_V1,
}


def plain_rows_event(header: bytes, body: RowsHeader, images: bytes) -> bytes:
    """An event of version 1 without checksum that holds `images`, with time, server id and flags of `header`.

    `header` is the original event's header, or starts with it. Raises `EventError` for too many columns or
    bytes.
    """
    if body.column_count >= 1 << 16:
        raise EventError(f"a table cannot have {body.column_count} columns")
    kind = types.ROWS_EVENTS[header[4]]
    count = body.column_count.to_bytes(1 if body.column_count <= 250 else 2, "little")
    if len(count) > 1:
        count = b"\xfc" + count
    content = b"".join(
        (
            body.table_id.to_bytes(6, "little"),
            body.flags.to_bytes(2, "little"),
            count,
            body.columns,
            body.columns_after or b"",
            images,
        )
    )
    size = types.HEADER_LENGTH + len(content)
    if size >= 1 << 32:
        raise EventError(f"the rows event expands to {size} bytes, more than an event can have")
    return b"".join(
        (
            header[:4],
            bytes([_PLAIN_TYPES[kind.change]]),
            header[5:9],
            size.to_bytes(4, "little"),
            header[13:19],
            content,
        )
    )
