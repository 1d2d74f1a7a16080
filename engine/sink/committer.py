"""Makes commits durable in the background, one at a time, while the data files of the next are written.

Data files and their folders are flushed to disk first, concurrently, because a journaling file system
combines such flushes; then the entry is appended to the commit log. `finished` and `wait` raise the errors.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from engine.output.commit_log import Commit, CommitLog
from engine.output.files import sync, writing
from engine.pipeline.durations import NO_DURATIONS
from engine.sink.cached_files import CachedFiles

_FLUSHES_AT_ONCE = 8


class Committer:
    """Appends to `log`; `on_finished` is called in another thread after each commit, successful or not."""

    def __init__(self, log: CommitLog, on_finished: Callable[[], None]) -> None:
        self._log = log
        self._on_finished = on_finished
        self._commits = ThreadPoolExecutor(1, "commit")
        self._flushes = ThreadPoolExecutor(_FLUSHES_AT_ONCE, "flush")
        self._under_way: Future[Commit] | None = None
        self._durable_folders: set[Path] = set()
        """Tables' folders whose names are durable in the output folder."""
        self._cached_files = CachedFiles()
        self.durations = NO_DURATIONS
        """Of the commits so far."""

    @property
    def busy(self) -> bool:
        """Whether a commit was started and its result has not been retrieved."""
        return self._under_way is not None

    def start(self, commit: Commit) -> None:
        """Start a commit whose files are closed. Only when not busy."""
        assert not self.busy
        self._under_way = self._commits.submit(self._commit, commit)
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
        self._flushes.shutdown()

    def _commit(self, commit: Commit) -> Commit:
        begun = time.monotonic()
        files = [self._log.out / file.path for file in commit.files]
        folders = {file.parent for file in files}
        # A new table folder is a name in the output folder, which has to be flushed, too.
        parents = [] if folders <= self._durable_folders else [self._log.out]
        self._flush([*files, *folders, *parents])
        self._durable_folders |= folders
        with writing(self._log.folder):
            self._log.append(commit)
            if self._log.segment_is_complete:
                self._log.consolidate()
        for path, file in zip(files, commit.files, strict=True):
            self._cached_files.add(path, file.bytes)
        self.durations = self.durations.with_one(time.monotonic() - begun)
        return commit

    def _flush(self, paths: Sequence[Path]) -> None:
        # One list per thread: submitting each path separately took longer than many of the flushes.
        shares = [paths[first::_FLUSHES_AT_ONCE] for first in range(_FLUSHES_AT_ONCE)]
        list(self._flushes.map(_sync, filter(None, shares)))


def _sync(paths: Iterable[Path]) -> None:
    for path in paths:
        with writing(path):
            sync(path)
