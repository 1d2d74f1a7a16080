"""What the writer counts: by name for the next commit, and the totals of its run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from engine.output.commit import Commit
from engine.pipeline.messages import SKIPPED, Result
from engine.pipeline.reports import Totals

ABORTED = "aborted_transactions"
"""The counter of transactions that the server never finished, or rolled back."""
NOT_UNDONE = "xa_rollbacks_not_undone"
"""The counter of transactions that were rolled back when `vacuum` had removed their rows."""

LOST = "xa_transactions_lost"
"""The counter of prepared transactions that a crash of the server has lost."""


class Counts:
    """Begins at zero."""

    def __init__(self) -> None:
        self.totals = Totals()
        self._counters: dict[str, int] = {}

    def count(self, name: str, amount: int = 1) -> None:
        """Add to a counter of the next commit."""
        self._counters[name] = self._counters.get(name, 0) + amount

    def kept(self, results: Iterable[Result]) -> None:
        """Results whose transactions have ended."""
        for result in results:
            for name, amount in result.counters.items():
                self.count(name, amount)
            totals = self.totals
            self.totals = replace(
                totals,
                transactions=totals.transactions + result.transactions,
                skipped_corrupt_events=totals.skipped_corrupt_events + result.counters.get(SKIPPED, 0),
            )

    def dropped(self, rows: int) -> None:
        """Rows of a transaction that is not kept."""
        self.totals = replace(self.totals, dropped_rows=self.totals.dropped_rows + rows)

    def committed(self, commit: Commit) -> None:
        """A commit is safe on disk."""
        self.totals = replace(
            self.totals,
            commits=self.totals.commits + 1,
            rows=self.totals.rows + sum(file.rows for file in commit.files),
            bytes=self.totals.bytes + sum(file.bytes for file in commit.files),
        )

    def seal(self) -> dict[str, int]:
        """The counters of the commit, which begin at zero again."""
        sealed, self._counters = self._counters, {}
        return sealed
