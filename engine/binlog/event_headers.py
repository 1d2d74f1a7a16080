"""From an event's bytes to its header and a reader over its body: what all event decoders begin with."""

from __future__ import annotations

from engine.binlog.event_reader import EventReader
from engine.binlog.event_types import CHECKSUM_LENGTH, EventHeader
from engine.binlog.format_description import FormatDescription
from engine.errors import EventError


def open_event(data: bytes, fmt: FormatDescription) -> tuple[EventHeader, EventReader]:
    """The header of a whole event and a reader over its body.

    The checksum may be there or cut off already; it is left out of the body and not verified. An event that
    never had one, such as those inside a compressed transaction, needs `fmt.without_checksums()`. Raises
    `EventError` where the size in the header is not that of `data`.
    """
    header = EventHeader.parse(data, fmt.header_length)
    cut_off = header.size - len(data)
    if cut_off not in (0, CHECKSUM_LENGTH):
        raise EventError(f"the event claims {header.size} bytes, here are {len(data)}", 9)
    end = len(data) if cut_off else header.size - fmt.checksum_length
    if end < fmt.header_length:
        raise EventError(f"an event of {header.size} bytes has no room for its checksum", 9)
    return header, EventReader(data, fmt.header_length, end)


def read_table_id(reader: EventReader, header: EventHeader, fmt: FormatDescription) -> tuple[int, int]:
    """Table id and flags, which table maps and rows events start with; before MySQL 5.1.4 ids had 4 bytes."""
    short = fmt.post_header_length(header.type_code) == 6
    return reader.uint(4 if short else 6), reader.uint(2)
