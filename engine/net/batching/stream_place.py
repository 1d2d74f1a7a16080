"""Places in a server's binlog, and what of them comes first."""

from __future__ import annotations

from dataclasses import dataclass

from engine.binlog.files import file_order

Place = tuple[str, int]
"""Binlog file, and position in it."""


def place_order(place: Place) -> tuple[tuple[int, str], int]:
    """What places are in order by."""
    file, position = place
    return file_order(file), position


@dataclass(frozen=True, slots=True)
class StreamPlace:
    """Where a stream is: at an event of `file` at `position`."""

    file: str
    position: int
    boundary: int
    """Where its transaction begins, or an event before that in the same file: a dump can start there."""

    def is_before(self, place: Place) -> bool:
        """Whether the stream has still to come past an event at that place."""
        return place_order((self.file, self.position)) <= place_order(place)
