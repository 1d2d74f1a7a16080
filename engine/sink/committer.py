"""Makes commits durable in the background, one at a time, while the data files of the next are written.

Data files are published first (`publication`); then the entry is appended to the commit log. `finished` and
`wait` raise the errors.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from engine.output.commit import Commit
from engine.output.commit_log import CommitLog
from engine.output.files import writing
from engine.pipeline.durations import NO_DURATIONS
from engine.sink.publication import Publication


class Committer:
    """Appends to `log`; `on_finished` is called in another thread after each commit, successful or not."""

    def __init__(self, log: CommitLog, publication: Publication, on_finished: Callable[[], None]) -> None:
        self._log = log
        self._publication = publication
        self._on_finished = on_finished
        self._commits = ThreadPoolExecutor(2, "commit")
        """One thread for the commit that is under way, and one that makes its entry meanwhile."""
        self._under_way: Future[Commit] | None = None
        self.durations = NO_DURATIONS
        """Of the commits so far."""

    @property
    def busy(self) -> bool:
        """Whether a commit was started and its result has not been retrieved."""
        return self._under_way is not None

    def start(self, commit: Commit) -> None:
        """Start a commit whose files are finished and known to the publication. Only when not busy."""
        assert not self.busy
        # The files are waited for anyway, and the entry of a commit with many new tables takes long to make.
        entry = self._commits.submit(commit.to_json)
        self._under_way = self._commits.submit(self._commit, commit, entry)
        self._under_way.add_done_callback(lambda _: self._on_finished())

    def finished(self) -> Commit | None:
        """The started commit if it is durable now, else None. Raises like `wait`."""
        return self.wait() if self._under_way and self._under_way.done() else None

    def wait(self) -> Commit | None:
        """Wait until the started commit is durable, and return it; None if none was started.

        Raises `OutputError` or `CommitLogError` if it failed.
        """
        under_way, self._under_way = self._under_way, None
        return under_way.result() if under_way else None

    def settle(self) -> None:
        """Make the final name of the last commit's entry durable, for readers after a power failure.

        Only when not busy. Raises `OutputError`.
        """
        with writing(self._log.folder):
            self._log.settle()

    def close(self) -> None:
        """Wait for the running commit, and end the threads."""
        self._commits.shutdown()
        self._publication.close()

    def _commit(self, commit: Commit, entry: Future[bytes]) -> Commit:
        begun = time.monotonic()
        self._publication.publish(commit.files)
        with writing(self._log.folder):
            self._log.append(commit, entry.result())
            if self._log.segment_is_complete:
                self._log.consolidate()
        self._publication.committed(commit.files)
        self.durations = self.durations.with_one(time.monotonic() - begun)
        return commit
