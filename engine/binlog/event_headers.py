"""Reads the start of an event: its common header, and the table id in the post header of rows events."""

from __future__ import annotations

from engine.binlog.event_reader import EventReader
from engine.binlog.event_types import CHECKSUM_LENGTH, SIZE_AT, EventHeader
from engine.binlog.format_description import FormatDescription
from engine.errors import EventError


def open_event(data: bytes, fmt: FormatDescription) -> tuple[EventHeader, EventReader]:
    """The header of a whole event, and a reader for its body.

    `data` may include the checksum or not; the body excludes it, and it is not verified. For an event that
    never had a checksum, such as those inside a compressed transaction, pass `fmt.without_checksums()`.
    Raises `EventError` if the size in the header is not that of `data`.
    """
    header = EventHeader.parse(data, fmt.header_length)
    cut_off = header.size - len(data)
    if cut_off not in (0, CHECKSUM_LENGTH):
        raise EventError(f"the event claims {header.size} bytes, but has {len(data)}", SIZE_AT)
    end = len(data) if cut_off else header.size - fmt.checksum_length
    if end < fmt.header_length:
        raise EventError(f"an event of {header.size} bytes is too short for a checksum", SIZE_AT)
    return header, EventReader(data, fmt.header_length, end)


def read_table_id(reader: EventReader, header: EventHeader, fmt: FormatDescription) -> tuple[int, int]:
    """Table id and flags, with which table maps and rows events start; before MySQL 5.1.4 ids had 4 bytes."""
    short = fmt.post_header_length(header.type_code) == 6
    return reader.uint(4 if short else 6), reader.uint(2)
