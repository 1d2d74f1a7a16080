"""Positions in binlogs: a file and a byte offset in it, with what is known of the source there.

Positions are ordered as the server wrote them. The records below `BinlogPosition` add what belongs to a
position: the GTID set executed before it, and the server and file that it is a position of.
"""

from __future__ import annotations

from engine.binlog.files import file_order
from engine.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class BinlogPosition:
    """A position in a binlog file; shown as `FILE:POSITION`."""

    file: str
    """Name of the binlog file."""
    position: int
    """Byte offset in it."""

    def __str__(self) -> str:
        return f"{self.file}:{self.position}"

    def __lt__(self, other: BinlogPosition) -> bool:
        return self._order < other._order

    def __le__(self, other: BinlogPosition) -> bool:
        return self._order <= other._order

    @property
    def _order(self) -> tuple[tuple[int, str], int]:
        return file_order(self.file), self.position


@dataclass(frozen=True, slots=True)
class ExecutedPosition(BinlogPosition):
    """A position with the transactions executed before it."""

    gtid_set: str | None
    """In the flavor's own notation; None if not known, or if the server has no GTIDs."""


@dataclass(frozen=True, slots=True)
class SourcePosition(ExecutedPosition):
    """A position in the binlog of a known source: where a run resumes after a commit."""

    server_uuid: str
    """Empty if the source has none."""
    flavor: str
    """`mysql` or `mariadb`."""
    file_created: int = 0
    """Server clock when `file` was created, seconds since the epoch, by which the file is recognized; 0 if
    not known."""
