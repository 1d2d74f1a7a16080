"""Where events start in their file, as far as their headers tell."""

from __future__ import annotations

from engine.binlog.event_types import FLAG_ARTIFICIAL
from engine.kernels.kernel import Bytes, kernel, read_u16, read_u32


@kernel
def length_in_file(data: Bytes, start: int, size: int) -> int:
    """Bytes that the event at `start` takes in its file: none if the server made it up for us."""
    return 0 if read_u16(data, start + 17) & FLAG_ARTIFICIAL else size


@kernel
def start_position(data: Bytes, start: int, size: int, expected: int) -> int:
    """The file position of the event at `start`, where `expected` is what the one before it ended with.

    The header names the position behind the event, so a gap shows that the server did not send all events.
    MariaDB 11 writes 0 for events inside a transaction, and MySQL before 5.0 the event's own start: then
    there is no gap. An event that the server made up for us takes no room in the file, but may name the
    position of the next one, as MariaDB's list of GTIDs does at the start of a dump by GTID. Only the low 32
    bits are kept, but a huge transaction makes a file pass 4 GB.
    """
    next_position = read_u32(data, start + 13)
    gap = (next_position - length_in_file(data, start, size) - expected) & 0xFFFFFFFF
    return expected + gap if next_position != 0 and gap < 1 << 31 else expected
