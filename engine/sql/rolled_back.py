"""The entries of transactions that were rolled back after XA PREPARE, and those that undo them.

Each has its own place and GTID, so that a script of chosen changes could contain the ones without the others.
Commits list both (`engine.output.prepared`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from engine.output.commit_log import CommitLog


class RolledBackEntries:
    """Those of the commits from number `first` to `last`."""

    def __init__(self, log: CommitLog, first: int, last: int) -> None:
        """Raises `CommitLogError`."""
        self._ranges = sorted(_ranges(log, first, last))

    def contain(self, seq: int) -> bool:
        """Whether the entry with that `_seq` is one of them."""
        index = bisect_right(self._ranges, seq, key=lambda first_and_last: first_and_last[0])
        return index > 0 and seq <= self._ranges[index - 1][1]


def _ranges(log: CommitLog, first: int, last: int) -> Iterator[tuple[int, int]]:
    """The first and last `_seq` of entries that follow each other; no ranges overlap."""
    for each in log.undone(first, last):
        yield each.first_seq, each.last_seq
        yield each.first_undoing_seq, each.last_undoing_seq
    for transaction in log.read(last).prepared:
        if transaction.rolled_back is not None:
            yield transaction.first_seq, transaction.last_seq
