"""What maintenance does with the segments of the commit log: compaction and the removal of old commits.

The writer never changes a segment that it has made, so the maintenance lock is enough for all of this.
Compaction replaces segments by some whose commits list other files. A removal *detaches* the oldest segment,
which takes it out of the log, removes its data files, and then forgets it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from engine.output.commit import Commit
from engine.output.log_files import (
    LOG_FOLDER,
    CommitLine,
    LogFiles,
    MissingCommitError,
    segment_name,
    segment_of,
)
from engine.output.storage import OutputPlace, storage_of

_DETACHED_SUFFIX = ".removed"


class LogSegments:
    """The segments of the log of the output at `out`, each by its first commit.

    Errors of the file system are raised as `OSError`.
    """

    def __init__(self, out: OutputPlace | str) -> None:
        self._storage = storage_of(out)
        self._files = LogFiles(self._storage)

    def all(self) -> list[int]:
        """All segments, in order."""
        return sorted(first for first, last in self._files.ranges() if first != last)

    def sealed(self) -> list[int]:
        """The segments that the writer does not need any more, in order."""
        ranges = list(self._files.ranges())
        singles = {segment_of(first)[0] for first, last in ranges if first == last}
        # The removal of their single entries may not be durable yet.
        self._storage.settle(LOG_FOLDER)
        return sorted(first for first, last in ranges if first != last and first not in singles)

    def replace(self, start: int, change: Callable[[Commit], Commit]) -> None:
        """Put changed commits in place of those of the segment that begins with `start`, in one step.

        Readers find the old ones or the new ones, also after a power failure. Where no lock excludes that,
        the segment may be changed or removed meanwhile; then `change` is called for its new commits, too.
        """
        name = segment_name(start)
        while True:
            try:
                summary, *commits = self._files.segment(start)
                old = b"\n".join([summary, *commits]) + b"\n"
                changed = [change(line.commit()).to_json() for line in self._lines(commits, start, name)]
                self._storage.exchange(name, old, b"\n".join([summary, *changed]) + b"\n")
            except FileExistsError:
                continue
            except (MissingCommitError, FileNotFoundError):
                if self._storage.has_lock:
                    raise
            return

    def removable_end(self, start: int) -> int | None:
        """The last commit of the segment that begins with `start`; None if that cannot be removed.

        It can be if a later segment exists, whose summary includes the removed commits.
        """
        first, end = segment_of(start)
        complete = start == first and self._files.has_segment(start)
        return end if complete and self._files.has_segment(end + 1) else None

    def detach(self, start: int) -> str:
        """Take the segment out of the log, durably; returns its name from then on."""
        name = segment_name(start)
        detached = name + _DETACHED_SUFFIX
        # The later segment, which makes this one removable, may not be durable yet.
        self._storage.settle(LOG_FOLDER)
        self._storage.move(name, detached)
        return detached

    def detached(self) -> list[str]:
        """Detached segments whose removal is not finished."""
        names = self._storage.names(LOG_FOLDER)
        return [f"{LOG_FOLDER}/{name}" for name in names if name.endswith(f".jsonl{_DETACHED_SUFFIX}")]

    def detached_commits(self, name: str) -> Iterator[Commit]:
        """The commits of a detached segment. Raises `CommitLogError`."""
        # An object store has no rename: after a crash the segment may still be there under its own name, too.
        if not self._storage.has_lock:
            self._storage.remove([name.removesuffix(_DETACHED_SUFFIX)])
        start = int(name.removeprefix(f"{LOG_FOLDER}/").partition("-")[0])
        for line in self._lines(self._storage.read(name).splitlines()[1:], start, name):
            yield line.commit()

    def forget(self, name: str) -> None:
        """Remove a detached segment; its data files must have been removed durably."""
        self._storage.remove([name])

    def _lines(self, commits: list[bytes], start: int, name: str) -> Iterator[CommitLine]:
        path = self._storage.place / name
        return (CommitLine(number, json, path) for number, json in enumerate(commits, start))
