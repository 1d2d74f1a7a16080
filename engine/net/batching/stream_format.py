"""The format of the binlog file that a stream is in, as its last format description event says."""

from __future__ import annotations

from engine.binlog import event_types as types
from engine.binlog.files import MAGIC_LENGTH
from engine.binlog.format_description import FormatDescription, verify_checksum
from engine.errors import UnsupportedError

UNKNOWN_FORMAT = -1
"""As `query_header`: no format description came yet, so that no event can be read."""
FORMAT_EVENTS = (types.FORMAT_DESCRIPTION_EVENT, types.START_EVENT_V3)


class StreamFormat:
    """Until the first format description, only the checksum algorithm (0: none, 1: CRC32) is known."""

    def __init__(self, checksum_algorithm: int) -> None:
        self._event = b""
        self.description = FormatDescription.assumed(checksum_algorithm)
        """The format of the events from here on."""
        self.checksum_length = self.description.checksum_length
        """Bytes of the checksum after each event."""
        self.query_header = UNKNOWN_FORMAT
        """Length of a query event's post header; `UNKNOWN_FORMAT` before the first format description."""

    @property
    def context(self) -> list[bytes]:
        """The format description event, with which every batch begins; empty before the first one."""
        return [self._event] if self._event else []

    @property
    def created(self) -> int | None:
        """Server clock, in seconds, when the file was begun; None before the first format description."""
        return types.EventHeader.parse(self._event).timestamp if self._event else None

    def contradicts(self, header: bytes, position: int) -> bool:
        """Whether the header of an event at `position` contains a wrong position; false if incomplete."""
        if len(header) < types.HEADER_LENGTH or self.description.binlog_version < 4:
            return False
        parsed = types.EventHeader.parse(header)
        return parsed.next_position not in (0, (position + parsed.size) & 0xFFFFFFFF)

    def replace(self, event: bytes, description: FormatDescription) -> None:
        """Use the format of another format description event, as `parse_format` returns it."""
        self._event = event
        self.description = description
        self.checksum_length = description.checksum_length
        self.query_header = description.post_header_length(types.QUERY_EVENT)


def parse_format(event: bytes) -> FormatDescription:
    """The format that the event describes. Raises `EventError`, and `UnsupportedError` for MySQL 3.23."""
    description = FormatDescription.parse(event)
    verify_checksum(event, description)
    if description.header_length != types.HEADER_LENGTH:
        raise UnsupportedError(
            f"events with headers of {description.header_length} bytes, as MySQL 3.23 and some patched "
            "servers write them, can be read with the `events` command only"
        )
    return description


def position_after_format(event: bytes) -> int | None:
    """The position after a format description event; None if its header does not contain it."""
    header = types.EventHeader.parse(event)
    if not header.next_position:
        return None
    # Before MySQL 5.0 the header contained the event's own position.
    return max(header.next_position, MAGIC_LENGTH + header.size)
