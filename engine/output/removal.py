"""Removes old commits from an output, with their data files.

It removes whole segments of the commit log: it first renames a segment to a name that readers ignore, then
removes its data files, and last the renamed segment. An interrupted removal is completed by the next one. The
engine and queries keep running; compaction waits.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Iterable
from contextlib import suppress

from engine.config.retention import Retention
from engine.dataclass import dataclass
from engine.output.commit import Commit
from engine.output.commit_log import CommitLog
from engine.output.consumers import Consumer, consumers
from engine.output.data_file_names import commits_in, file_of, is_data_file_name, is_data_folder
from engine.output.file_moves import MoveJournal
from engine.output.files import writing
from engine.output.lock import maintenance_lock
from engine.output.log_segments import LogSegments
from engine.output.storage import OutputPlace, storage_of


@dataclass(frozen=True, slots=True)
class Removed:
    """What was removed, or would be removed."""

    commits: int
    files: int
    bytes: int
    """Size of the data files."""
    oldest: int
    """The first commit that remains."""
    kept_for: Consumer | None
    """The consumer without which more would be removed."""


def remove_old_commits(out: OutputPlace, retention: Retention, *, dry_run: bool = False) -> Removed:
    """Remove the segments that need not be kept, except the last segment of the log.

    With an age: those whose commits are all older. With a size: the oldest ones, until the data files have
    at most that size. Commits that a consumer has not read stay. Raises `OutputError` and `CommitLogError`.
    """
    with writing(out):
        if dry_run:
            return _Removal(out, retention).remove(dry_run=True)
        with maintenance_lock(out):
            _recover(MoveJournal(out))
            segments = LogSegments(out)
            for segment in segments.detached():
                _finish(out, segments, segment)
            return _Removal(out, retention).remove(dry_run=False)


def _recover(journal: MoveJournal) -> None:
    try:
        journal.recover()
    except OSError as error:
        # The next compaction completes it, when there is room again.
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise


class _Removal:
    def __init__(self, out: OutputPlace, retention: Retention) -> None:
        self._out = out
        self._log = CommitLog(out)
        self._segments = LogSegments(out)
        self._sizes = _Sizes(out)
        seconds = retention.seconds
        self._before_us = None if seconds is None else int((time.time() - seconds) * 1_000_000)
        self._most_bytes = retention.bytes
        self._bytes = 0 if retention.bytes is None else self._sizes.total()
        self._slowest = min(consumers(out), key=lambda consumer: consumer.commit, default=None)

    def remove(self, *, dry_run: bool) -> Removed:
        commits = files = size = 0
        kept_for = None
        oldest = self._log.oldest_version()
        while (last := self._segments.removable_end(oldest)) is not None and self._may_go(last):
            if self._slowest is not None and self._slowest.commit < last:
                kept_for = self._slowest
                break
            paths = _files_that_end(self._log.range(oldest, last), last)
            segment_bytes = sum(map(self._sizes.of, paths))
            if not dry_run:
                _finish(self._out, self._segments, self._segments.detach(oldest))
            self._bytes -= segment_bytes
            commits, files, size = commits + last + 1 - oldest, files + len(paths), size + segment_bytes
            oldest = last + 1
        return Removed(commits, files, size, oldest, kept_for)

    def _may_go(self, last: int) -> bool:
        """Whether the segment that ends with the commit `last` is too old, or too much."""
        if self._before_us is not None and self._log.read(last).time_us >= self._before_us:
            return False
        return self._most_bytes is None or self._bytes > self._most_bytes


def _finish(out: OutputPlace, segments: LogSegments, segment: str) -> None:
    try:
        commits = list(segments.detached_commits(segment))
    except FileNotFoundError:
        # Where no lock excludes that, another removal has finished it.
        return
    # Only the segment still names the files, so it is removed after they are durably removed.
    storage_of(out).remove(_files_that_end(commits, commits[-1].version))
    segments.forget(segment)


def _files_that_end(commits: Iterable[Commit], last: int) -> set[str]:
    """The files of these commits that have no rows of a commit after `last`."""
    paths = {file_of(entry.path) for commit in commits for entry in commit.files}
    return {path for path in paths if commits_in(path)[1] <= last}


class _Sizes:
    """The sizes of data files; in an object store, a folder is listed when one of them is first wanted."""

    def __init__(self, out: OutputPlace) -> None:
        self._out = out
        self._storage = storage_of(out)
        self._folders: dict[str, dict[str, int]] = {}

    def of(self, path: str) -> int:
        """The size of a file in bytes; 0 if it does not exist."""
        folder, _, name = path.rpartition("/")
        if self._storage.has_lock and folder not in self._folders:
            # Fewer calls than listing a folder that has many more files.
            with suppress(FileNotFoundError):
                return self._storage.size(path)
            return 0
        if folder not in self._folders:
            self._folders[folder] = self._storage.sizes(folder)
        return self._folders[folder].get(name, 0)

    def total(self) -> int:
        """Size of all data files; rows that compaction has copied count once."""
        copies = MoveJournal(self._out).copies()
        folders = list(filter(is_data_folder, self._storage.top_names()))
        for folder, sizes in zip(
            folders, self._storage.side_by_side(self._storage.sizes, folders), strict=True
        ):
            self._folders[folder] = sizes
        return sum(
            size
            for folder, sizes in self._folders.items()
            for name, size in sizes.items()
            if is_data_file_name(name) and f"{folder}/{name}" not in copies
        )
