"""What is safe on disk of what the writer has taken, and since when the rest waits.

Acknowledgements and reports say it. Batches without content need no commit: they count as safe once nothing
before them waits for one, since they would have no content either if they were read again.
"""

from __future__ import annotations

from engine.binlog.position import BinlogPosition
from engine.output.commit import Commit


class SafeOnDisk:
    """Begins with the output's last commit, and its position if that is one of this server.

    Times are by the clock of the writer's caller.
    """

    def __init__(self, commit: int, settled: tuple[BinlogPosition, int] | None) -> None:
        self.commit = commit
        """Number of the last commit that is safe on disk."""
        self.batch = -1
        """Sequence number of the last batch up to which everything to keep is safe on disk."""
        self.settled = settled
        """The position up to which nothing waits for a commit, and the server clock of the last event before
        it; None before the first transaction end of this server."""
        self.lag = 0.0
        """Seconds from the arrival of the oldest content of the last commit until it was safe on disk."""
        self._waiting_since: float | None = None
        """When the oldest content came that waits for the next commit."""
        self._committing_batch = -1
        self._committing_since: float | None = None
        """The same of the commit that is under way."""
        self._caught_up = (0, 0)

    @property
    def caught_up_us(self) -> int:
        """When the source last had nothing after what is safe on disk, µs since the epoch; 0 if not known."""
        batch, moment = self._caught_up
        return moment if batch <= self.batch else 0

    @property
    def rest_waits_since(self) -> float | None:
        """When the oldest content came that is not safe on disk; None without any."""
        return self._waiting_since if self._committing_since is None else self._committing_since

    def caught_up(self, batch: int, moment_us: int) -> None:
        """The source had nothing after this batch, µs since the epoch."""
        self._caught_up = batch, moment_us

    def content_came(self, moment: float) -> None:
        """There is content for the next commit since then."""
        if self._waiting_since is None:
            self._waiting_since = moment

    def nothing_waits(self, batch: int, position: BinlogPosition, timestamp: int) -> None:
        """Everything up to a batch, after which the stream is at this position, needs no commit any more."""
        self.batch = batch
        self.settled = position, timestamp

    def commit_begun(self, batch: int) -> None:
        """A commit of everything up to a batch is under way."""
        self._committing_batch = batch
        self._committing_since, self._waiting_since = self._waiting_since, None

    def commit_finished(self, commit: Commit, now: float | None) -> None:
        """That commit is safe on disk; `now`: None where the lag is not wanted."""
        if self._committing_since is not None and now is not None:
            self.lag = now - self._committing_since
        self._committing_since = None
        self.batch = self._committing_batch
        self.settled = commit.position, commit.source_timestamp
        self.commit = commit.version
