"""How far compaction has come in an output, and whether there is more for it to do.

A run asks this in its supervisor, which needs no Arrow.
"""

from __future__ import annotations

import time

from engine.dataclass import dataclass
from engine.output.file_moves import FOLDER, JOURNAL_NAME
from engine.output.log_json import Malformed, from_line, to_line
from engine.output.log_segments import LogSegments
from engine.output.storage import OutputPlace, storage_of

_NAME = f"{FOLDER}/progress.json"
GRACE_SECONDS = 600.0
"""How long old files stay, by default."""


def has_work(out: OutputPlace) -> bool:
    """Whether `compact` would find new segments or, with the default grace, old files; it is a fast check."""
    sealed = LogSegments(out).sealed()
    if sealed and sealed[-1] > CompactionProgress(out).through(1):
        return True
    due = time.time() - GRACE_SECONDS
    times = storage_of(out).times(FOLDER)
    return any(time < due for name, time in times.items() if JOURNAL_NAME.fullmatch(name))


@dataclass(frozen=True, slots=True)
class _Through:
    """The last commit up to which compaction has come, by how many segments it takes together."""

    through: dict[str, int]


class CompactionProgress:
    """How far compaction has come; without it, segments are only looked at again."""

    def __init__(self, out: OutputPlace) -> None:
        self._storage = storage_of(out)
        try:
            self._through = from_line(_Through, self._storage.read(_NAME)).through
        except (FileNotFoundError, Malformed):
            self._through = {}

    def through(self, together: int) -> int:
        """The last commit of the groups of so many segments that are done, or -1."""
        return self._through.get(str(together), -1)

    def reach(self, together: int, last: int) -> None:
        """Note that one more is done."""
        self._through[str(together)] = last
        self._storage.replace(_NAME, to_line(_Through(self._through)) + b"\n")
