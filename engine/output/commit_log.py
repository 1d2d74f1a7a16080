"""The commit log: numbered JSON entries that define what an output contains.

One writer appends entries atomically; every thousand entries are consolidated into one segment, which begins
with a summary of all commits before it. Readers need no lock: an entry that has disappeared was consolidated,
and its segment existed before the entry was removed.

An entry is decided once it is durable under its temporary name; only then it gets its final name, under which
readers see it. A power failure may undo the rename, but does not lose the entry: recovery renames it again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import EngineError
from engine.output.commit import (
    Commit,
    DataFile,
    SchemaKey,
    SchemaVersion,
    Summary,
    TableKey,
    TableTotals,
)
from engine.output.files import (
    TEMPORARY_SUFFIX,
    make_folder,
    sync,
    temporary_name,
    write_new,
    write_temporary,
)
from engine.output.log_json import Malformed
from engine.output.schema_state import CommittedChange, SchemaState

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "Commit",
    "CommitLog",
    "CommitLogError",
    "DataFile",
    "MissingCommitError",
    "SchemaKey",
    "SchemaVersion",
    "Summary",
    "TableKey",
    "TableTotals",
]

COMMITS_PER_SEGMENT = 1000
LOG_FOLDER = "_log"
_DETACHED_SUFFIX = ".removed"
_NEXT_SUFFIX = ".next"
"""Not the suffix of temporary names, which the writer removes when it starts."""
_SCHEMA_CHANGES = b',"schema_changes":[{'
"""In each line with some, and in no string: there, a quotation mark follows a backslash."""

_ENTRY_NAME = re.compile(r"(\d{20})\.json")
_SEGMENT_NAME = re.compile(r"(\d{20})-(\d{20})\.jsonl")


class CommitLogError(EngineError):
    """The log cannot be read, or an appended commit does not have the next number."""


class MissingCommitError(CommitLogError):
    """A commit is not in the log: not written yet, or removed."""


class CommitLog:
    """The log of the output folder `out`; the log of a missing folder is empty.

    Not thread-safe. Errors of the file system are raised as `OSError`.
    """

    def __init__(self, out: Path | str) -> None:
        self.out = Path(out)
        self.folder = self.out / LOG_FOLDER
        self._latest_known = -1
        self._summary_version = -1
        self._summary = Summary()
        self._segment_path: Path | None = None
        self._segment_lines: list[bytes] = []

    # Reading

    def latest_version(self) -> int:
        """The number of the last commit, or -1. Calls after the first one need only a few `stat` calls."""
        version = self._latest_known
        if version < 0 or self._end_of_holder(version) is None:
            # After a long time the commits that followed it may have been removed, too.
            version = max((last for _, last in self._ranges()), default=-1)
            version = max(version, self._latest_known)
        while (next_version := self._end_of_holder(version + 1)) is not None:
            version = next_version
        self._latest_known = version
        return version

    def reaches(self, version: int) -> bool:
        """Whether the log still contains commit `version`, which the caller has seen before; true for -1.

        After a power failure, until the engine is started again, the last commit may exist only under its
        temporary name; then it counts as the last commit from then on. The caller must have seen `version`: a
        visible commit is decided, but a commit that is being written has a temporary name, too.
        """
        if version == self.latest_version() + 1 and self._waiting(version) is not None:
            self._latest_known = version
        return version <= self.latest_version()

    def oldest_version(self) -> int:
        """The number of the first commit that was not removed; 0 for an empty log."""
        return min((first for first, _ in self._ranges()), default=0)

    def latest(self) -> Commit | None:
        """The last commit; None if there is none yet. Raises `CommitLogError`."""
        version = self.latest_version()
        return None if version < 0 else self.read(version)

    def read(self, version: int) -> Commit:
        """One commit. Raises `CommitLogError` if there is no commit with that number, or it is damaged."""
        return next(self.range(version, version))

    def range(self, first: int, last: int) -> Iterator[Commit]:
        """The commits `first` to `last`, both included, in order. Raises `CommitLogError` like `read`.

        Like `reaches`, it finds a last commit under its temporary name; the caller must have seen `last`.
        """
        for number, line, path in self._lines(first, last):
            yield _parsed_commit(line, number, path)

    def schema_changes(self, first: int, last: int) -> Iterator[CommittedChange]:
        """The schema changes of the commits `first` to `last`, in order. Raises like `range`.

        It parses only the commits that contain some.
        """
        for number, line, path in self._lines(first, last):
            if _SCHEMA_CHANGES in line:
                yield from _parsed_commit(line, number, path).committed_changes()

    def summary_at(self, version: int) -> Summary:
        """The summary of all commits up to and including `version`. Raises `CommitLogError`."""
        if not self._summary_version <= version or version - self._summary_version >= COMMITS_PER_SEGMENT:
            self._summary_version, self._summary = self._summary_before(version)
        for commit in self.range(self._summary_version + 1, version):
            self._summary.add(commit)
            self._summary_version = commit.version
        return self._summary.copy()

    def schemas_at(self, version: int) -> dict[SchemaKey, pa.Schema]:
        """Every schema version of the commits up to and including `version`. Raises `CommitLogError`."""
        with _damage_of(self.folder):
            schemas = self.summary_at(version).schemas
            return {key: schema.arrow_schema() for key, schema in schemas.items()}

    def schema_state_at(self, version: int) -> SchemaState:
        """What the schema changes up to and including `version` leave in force. Raises `CommitLogError`."""
        with _damage_of(self.folder):
            state = self.summary_at(version).schema_state
            state.parse()
        return state

    # Writing: only by the holder of the output's lock

    def append(self, commit: Commit) -> None:
        """Append `commit` durably. Its data files must be on disk already.

        Raises `CommitLogError` if its number is not the next one, and `OSError`; after an `OSError` only
        `recover` can determine whether the commit was decided.
        """
        expected = self.latest_version() + 1
        if commit.version != expected:
            raise CommitLogError(
                f"commit {commit.version} cannot follow the log in {self.folder}, where {expected} is next"
            )
        make_folder(self.folder)
        entry = self._entry_path(commit.version)
        # The commit is decided when `write_temporary` returns, and not visible to readers before. The rename
        # needs no fsync: the next commit's includes it, and until then recovery finds the temporary name.
        write_temporary(entry, commit.to_json() + b"\n").rename(entry)
        self._latest_known = commit.version

    def settle(self) -> None:
        """Make the final name of the last commit durable."""
        if self.folder.is_dir():
            sync(self.folder)

    def recover(self) -> None:
        """Rename each decided commit to its final name, and remove all other temporary files.

        Must be called before anything is written or removed: otherwise other rows would get the number of a
        commit that readers have seen. The content of an entry is not changed.
        """
        if not self.folder.is_dir():
            return
        while self._waiting(version := self.latest_version() + 1) is not None:
            entry = self._entry_path(version)
            # A killed process may have left an entry that is complete but not durable.
            sync(temporary_name(entry))
            sync(self.folder)
            temporary_name(entry).rename(entry)
        for leftover in self.folder.glob(f"*{TEMPORARY_SUFFIX}"):
            leftover.unlink()
        self.settle()

    @property
    def segment_is_complete(self) -> bool:
        """Whether the last commit completes a segment, so that `consolidate` has work to do."""
        return (self.latest_version() + 1) % COMMITS_PER_SEGMENT == 0

    def consolidate(self) -> None:
        """Consolidate every complete thousand of entries into a segment."""
        complete = (self.latest_version() + 1) // COMMITS_PER_SEGMENT * COMMITS_PER_SEGMENT
        singles = sorted(first for first, last in self._ranges() if first == last and last < complete)
        for start in sorted({_segment_of(version)[0] for version in singles}):
            if not self._segment_path_of(start).exists():
                self._write_segment(start)
        for version in singles:
            self._entry_path(version).unlink()
        if singles:
            self.settle()

    def _write_segment(self, start: int) -> None:
        end = _segment_of(start)[1]
        with _damage_of(self.folder):
            lines = [self.summary_at(start - 1).to_json()]
        lines += [commit.to_json() for commit in self.range(start, end)]
        segment = self._segment_path_of(start)
        write_temporary(segment, b"\n".join(lines) + b"\n").rename(segment)
        # Durable before the entries that it replaces are removed.
        self.settle()

    # Replacing and removing segments: with the maintenance lock alone, as the writer never changes a segment

    def sealed_segments(self) -> list[int]:
        """The first commits of the segments that the writer does not need any more, in order."""
        ranges = list(self._ranges())
        singles = {_segment_of(first)[0] for first, last in ranges if first == last}
        # The removal of their single entries may not be durable yet.
        self.settle()
        return sorted(first for first, last in ranges if first != last and first not in singles)

    def replace_segment(self, start: int, change: Callable[[Commit], Commit]) -> None:
        """Put changed commits in place of those of the segment that begins with `start`, in one step.

        Readers find the old ones or the new ones, also after a power failure.
        """
        path = self._segment_path_of(start)
        lines = self._segment(start)[:1]
        lines += [change(commit).to_json() for commit in self.range(start, _segment_of(start)[1])]
        following = path.with_name(path.name + _NEXT_SUFFIX)
        following.unlink(missing_ok=True)
        write_new(following, b"\n".join(lines) + b"\n")
        following.rename(path)
        self.settle()
        self._segment_path = None

    def removable_end(self, version: int) -> int | None:
        """The last commit of the segment that begins with `version`; None if that cannot be removed.

        It can be if a later segment exists, whose summary includes the removed commits.
        """
        start, end = _segment_of(version)
        complete = version == start and self._segment_path_of(start).exists()
        return end if complete and self._segment_path_of(end + 1).exists() else None

    def detach_segment(self, version: int) -> Path:
        """Take the segment that contains `version` out of the log, durably; returns the renamed file."""
        path = self._segment_path_of(version)
        detached = path.with_name(path.name + _DETACHED_SUFFIX)
        # The later segment, which makes this one removable, may not be durable yet.
        self.settle()
        path.rename(detached)
        self.settle()
        return detached

    def detached_segments(self) -> list[Path]:
        """Detached segments whose removal is not finished."""
        return sorted(self.folder.glob(f"*.jsonl{_DETACHED_SUFFIX}"))

    def detached_commits(self, path: Path) -> Iterator[Commit]:
        """The commits of a detached segment. Raises `CommitLogError`."""
        start = int(path.name.partition("-")[0])
        for number, line in enumerate(path.read_bytes().splitlines()[1:], start):
            yield _parsed_commit(line, number, path)

    # Names

    def _entry_path(self, version: int) -> Path:
        return self.folder / f"{version:020d}.json"

    def _segment_path_of(self, version: int) -> Path:
        start, end = _segment_of(version)
        return self.folder / f"{start:020d}-{end:020d}.jsonl"

    def _ranges(self) -> Iterator[tuple[int, int]]:
        """First and last commit of every file in the log, in arbitrary order."""
        if not self.folder.is_dir():
            return
        for path in self.folder.iterdir():
            if entry := _ENTRY_NAME.fullmatch(path.name):
                yield int(entry[1]), int(entry[1])
            elif segment := _SEGMENT_NAME.fullmatch(path.name):
                yield int(segment[1]), int(segment[2])

    def _end_of_holder(self, version: int) -> int | None:
        """The last commit of the file that contains `version`; None if there is no such file."""
        if self._entry_path(version).exists():
            return version
        if self._segment_path_of(version).exists():
            return _segment_of(version)[1]
        return None

    def _lines(self, first: int, last: int) -> Iterator[tuple[int, bytes, Path]]:
        """The commits `first` to `last` as JSON, each with its number and the file that contains it."""
        version = first
        while version <= last:
            entry = self._entry_line(version)
            if entry is not None:
                yield version, *entry
                version += 1
                continue
            segment_start, segment_end = _segment_of(version)
            lines, path = self._segment(version), self._segment_path_of(version)
            for number in range(version, min(last, segment_end) + 1):
                yield number, lines[number - segment_start + 1], path
            version = segment_end + 1

    def _entry_line(self, version: int) -> tuple[bytes, Path] | None:
        """The commit's entry, under its final or its temporary name, and that; None without an entry."""
        entry = self._entry_path(version)
        for _ in range(2):  # Recovery may rename it between the two reads.
            with suppress(FileNotFoundError):
                return entry.read_bytes(), entry
            waiting = self._waiting(version)
            if waiting is not None:
                return waiting, temporary_name(entry)
        return None

    def _waiting(self, version: int) -> bytes | None:
        """The entry that is complete under its temporary name; None if there is none."""
        path = temporary_name(self._entry_path(version))
        try:
            line = path.read_bytes()
            _parsed_commit(line, version, path)
        except (FileNotFoundError, CommitLogError):
            return None
        return line if line.endswith(b"\n") else None

    def _segment(self, version: int) -> list[bytes]:
        """The lines of the segment that contains `version`: the summary, then its commits."""
        path = self._segment_path_of(version)
        if path != self._segment_path:
            try:
                lines = path.read_bytes().removesuffix(b"\n").split(b"\n")
            except FileNotFoundError:
                raise MissingCommitError(f"there is no commit {version} in {self.folder}") from None
            if len(lines) != COMMITS_PER_SEGMENT + 1:
                raise CommitLogError(
                    f"{path} is damaged: it has {len(lines)} lines instead of {COMMITS_PER_SEGMENT + 1}"
                )
            self._segment_path, self._segment_lines = path, lines
        return self._segment_lines

    def _summary_before(self, version: int) -> tuple[int, Summary]:
        """The latest summary in a segment that ends at or before `version`, and its last commit."""
        for start in range(_segment_of(version + 1)[0], -1, -COMMITS_PER_SEGMENT):
            path = self._segment_path_of(start)
            if path.exists():
                with _damage_of(path):
                    return start - 1, Summary.from_json(self._segment(start)[0])
        return -1, Summary()


def _segment_of(version: int) -> tuple[int, int]:
    start = version // COMMITS_PER_SEGMENT * COMMITS_PER_SEGMENT
    return start, start + COMMITS_PER_SEGMENT - 1


@contextmanager
def _damage_of(path: Path) -> Iterator[None]:
    """Raise what is malformed inside of `path` as a `CommitLogError`."""
    try:
        yield
    except Malformed as error:
        raise CommitLogError(f"{path} is damaged: {error}") from error


def _parsed_commit(line: bytes, version: int, path: Path) -> Commit:
    with _damage_of(path):
        commit = Commit.from_json(line)
    if commit.version != version:
        raise CommitLogError(f"{path} is damaged: it holds commit {commit.version} instead of {version}")
    return commit
