"""Where a stream is in the server's binlog, and where a second dump can start to read ahead of it."""

from __future__ import annotations

from engine.binlog.position import BinlogPosition
from engine.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class StreamPosition:
    """Where a stream is: at an event of `file` at `position`."""

    file: str
    position: int
    boundary: int
    """Where its transaction begins, or an earlier event of the same file: a dump can start there."""

    @property
    def event(self) -> BinlogPosition:
        """The position of the event."""
        return BinlogPosition(self.file, self.position)

    def is_before(self, position: BinlogPosition) -> bool:
        """Whether the stream has not yet passed an event at that position."""
        return self.event <= position
