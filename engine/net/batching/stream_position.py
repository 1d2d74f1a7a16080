"""Positions of a stream: where it is in the server's binlog, and which position comes first."""

from __future__ import annotations

from dataclasses import dataclass

from engine.binlog.files import file_order

FilePosition = tuple[str, int]
"""Binlog file, and byte offset in it."""


def position_order(position: FilePosition) -> tuple[tuple[int, str], int]:
    """The sort key of positions."""
    file, offset = position
    return file_order(file), offset


@dataclass(frozen=True, slots=True)
class StreamPosition:
    """Where a stream is: at an event of `file` at `position`."""

    file: str
    position: int
    boundary: int
    """Where its transaction begins, or an earlier event of the same file: a dump can start there."""

    def is_before(self, position: FilePosition) -> bool:
        """Whether the stream has not yet passed an event at that position."""
        return position_order((self.file, self.position)) <= position_order(position)
