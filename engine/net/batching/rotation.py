"""Rotate events as a stream uses them: which file comes next, and whether the present one has ended."""

from __future__ import annotations

from engine.binlog import event_types as types
from engine.binlog.files import MAGIC_LENGTH
from engine.binlog.format_description import FormatDescription
from engine.dataclass import dataclass
from engine.errors import EventError

_LONGEST_NAME = 512
"""Bytes, as in the servers."""
_LONGEST_SHOWN = 40
"""Characters of such a name in a message."""


@dataclass(frozen=True, slots=True)
class Rotation:
    """A rotate event."""

    file: str
    """The next file."""
    position: int
    """The position of the next event in it."""
    artificial: bool
    """The server made it up at the start of a dump or of a file; else it is the last event of its file."""
    next_position: int
    """Low 32 bits of the position after the event; 0 for most artificial ones."""


def parse_rotation(event: bytes, description: FormatDescription) -> Rotation:
    """Raises `EventError` for a body without the name of a file or with an impossible position."""
    header = types.EventHeader.parse(event)
    body = event[types.HEADER_LENGTH : len(event) - description.checksum_length]
    if len(body) < 9:
        raise EventError("the rotate event is too short to name a file", types.HEADER_LENGTH)
    position, name = int.from_bytes(body[:8], "little"), body[8:].decode("utf-8", "replace")
    if len(body) - 8 > _LONGEST_NAME or not name.isprintable() or "/" in name:
        raise EventError(
            f"no server has a binlog file named {name[:_LONGEST_SHOWN]!r} ({len(body) - 8} bytes)",
            types.HEADER_LENGTH,
        )
    if not MAGIC_LENGTH <= position < 1 << 63:
        raise EventError(f"no binlog file has a position {position}", types.HEADER_LENGTH)
    artificial = bool(header.flags & types.FLAG_ARTIFICIAL) or header.next_position == 0
    return Rotation(name, position, artificial, header.next_position)
