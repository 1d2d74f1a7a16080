"""Where events start in their file, computed from their headers."""

from __future__ import annotations

from engine.binlog.event_types import FLAG_ARTIFICIAL, FLAGS_AT, NEXT_POSITION_AT
from engine.kernels.kernel import Bytes, kernel, read_u16, read_u32


@kernel
def length_in_file(data: Bytes, start: int, size: int) -> int:
    """Size in bytes of the event at `start` in its file: 0 if the server generated it for the dump."""
    return 0 if read_u16(data, start + FLAGS_AT) & FLAG_ARTIFICIAL else size


@kernel
def start_position(data: Bytes, start: int, size: int, expected: int) -> int:
    """The file position of the event at `start`; `expected` is the end position of the event before it.

    The header contains the position after the event, so a gap shows that the server did not send all events.
    MariaDB 11 writes 0 for events inside a transaction, and MySQL before 5.0 the event's own start: these are
    not gaps. An event that the server generated for the dump is not in the file, but its header may contain
    the position of the next one, as in MariaDB's GTID_LIST at the start of a dump by GTID. Headers contain
    only the low 32 bits, but a huge transaction can make a file larger than 4 GB.
    """
    next_position = read_u32(data, start + NEXT_POSITION_AT)
    gap = (next_position - length_in_file(data, start, size) - expected) & 0xFFFFFFFF
    return expected + gap if next_position != 0 and gap < 1 << 31 else expected
