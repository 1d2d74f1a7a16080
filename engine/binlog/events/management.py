"""Events about the binlog itself: its format, its files, lost events, heartbeats."""

from __future__ import annotations

from typing import Self

from engine.binlog.event_body import EventBody
from engine.binlog.event_reader import EventReader, text
from engine.binlog.event_types import ROTATE_EVENT, EventHeader
from engine.binlog.format_description import CHECKSUM_CRC32, FormatDescription
from engine.dataclass import dataclass
from engine.errors import EventError

_INCIDENTS = {0: "NONE", 1: "LOST_EVENTS"}
_FIRST_EVENT = 4


@dataclass(frozen=True, slots=True)
class Format(EventBody):
    """FORMAT_DESCRIPTION_EVENT and START_EVENT_V3; see `FormatDescription` for the meaning of the fields."""

    binlog_version: int
    server_version: str
    created: int
    """Seconds since the epoch if the server had just started, else 0."""
    header_length: int
    post_header_lengths: bytes
    checksum: str

    @classmethod
    def decode(cls, reader: EventReader, header: EventHeader, fmt: FormatDescription) -> Self:
        """From `fmt`, which was read from this event."""
        return cls(
            binlog_version=fmt.binlog_version,
            server_version=fmt.server_version,
            created=fmt.created,
            header_length=fmt.header_length,
            post_header_lengths=fmt.post_header_lengths,
            checksum="CRC32" if fmt.checksum_algorithm == CHECKSUM_CRC32 else "NONE",
        )


@dataclass(frozen=True, slots=True)
class Stop(EventBody):
    """STOP_EVENT: the server shut down; it is the last event of the file."""

    @classmethod
    def decode(cls, reader: EventReader, header: EventHeader, fmt: FormatDescription) -> Self:
        """The body is empty."""
        return cls()


@dataclass(frozen=True, slots=True)
class Rotate(EventBody):
    """ROTATE_EVENT: the binlog continues in another file."""

    next_file: str
    position: int

    @classmethod
    def decode(cls, reader: EventReader, header: EventHeader, fmt: FormatDescription) -> Self:
        """Position (absent in MySQL 3.23) and file name."""
        position = reader.uint(8) if fmt.post_header_length(ROTATE_EVENT) else _FIRST_EVENT
        name = reader.rest()
        if not name:
            raise EventError("the rotation names no file", reader.offset)
        return cls(text(name), position)


@dataclass(frozen=True, slots=True)
class Slave(EventBody):
    """SLAVE_EVENT, which servers wrote only in their developers' tests: where a replica reads from."""

    position: int
    port: int
    host: str
    file: str

    @classmethod
    def decode(cls, reader: EventReader, header: EventHeader, fmt: FormatDescription) -> Self:
        """Position, port, host and file."""
        position, port = reader.uint(8), reader.uint(2)
        return cls(position, port, text(reader.terminated()), text(reader.rest().rstrip(b"\0")))


@dataclass(frozen=True, slots=True)
class Incident(EventBody):
    """INCIDENT_EVENT: the source lost events, so a replica's data may differ from the source's."""

    incident: int
    name: str
    message: str | None

    @classmethod
    def decode(cls, reader: EventReader, header: EventHeader, fmt: FormatDescription) -> Self:
        """Number and message; early servers did not write the message."""
        incident = reader.uint(2)
        message = text(reader.take(reader.uint(1))) if reader.remaining else None
        return cls(incident, _INCIDENTS.get(incident, "UNKNOWN"), message)


@dataclass(frozen=True, slots=True)
class Heartbeat(EventBody):
    """HEARTBEAT_LOG_EVENT: the source has no events to send. Never in a file."""

    file: str
    position: int

    @classmethod
    def decode(cls, reader: EventReader, header: EventHeader, fmt: FormatDescription) -> Self:
        """The file's name; the position is the header's."""
        return cls(text(reader.rest()), header.next_position)


@dataclass(frozen=True, slots=True)
class HeartbeatV2(Heartbeat):
    """HEARTBEAT_LOG_EVENT_V2: for positions above 4 GB. Fields of type, length, value; type 0 ends them."""

    @classmethod
    def decode(cls, reader: EventReader, header: EventHeader, fmt: FormatDescription) -> Self:
        """Fields of unknown types are skipped."""
        file, position = "", header.next_position
        while reader.remaining and (field_type := reader.length_encoded()):
            field = reader.part(reader.length_encoded())
            if field_type == 1:
                file = text(field.rest())
            elif field_type == 2:
                position = field.length_encoded()
        return cls(file, position)


@dataclass(frozen=True, slots=True)
class Opaque(EventBody):
    """IGNORABLE_LOG_EVENT, and events of all types that the engine does not decode: the bytes of the body."""

    bytes: bytes

    @classmethod
    def decode(cls, reader: EventReader, header: EventHeader, fmt: FormatDescription) -> Self:
        """All of it."""
        return cls(reader.rest())
