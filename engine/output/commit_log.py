"""The commit log: numbered JSON entries, the only truth about what an output holds.

One writer appends entries, each in place whole or not at all; every thousand are consolidated into one
segment that opens with a summary of all before it. Readers need no lock: an entry that is gone was
consolidated a moment ago, and its segment was there before it went.

An entry is decided once it is durable under its temporary name, and only then gets its final name, by which
readers see it. A power cut may take the final name back, but not the entry: recovery renames it again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import EngineError
from engine.output.commit import (
    Commit,
    DataFile,
    Malformed,
    SchemaKey,
    SchemaVersion,
    Summary,
    TableKey,
    TableTotals,
)
from engine.output.files import TEMPORARY_SUFFIX, make_folder, sync, temporary_name, write_temporary

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

_ENTRY_NAME = re.compile(r"(\d{20})\.json")
_SEGMENT_NAME = re.compile(r"(\d{20})-(\d{20})\.jsonl")


class CommitLogError(EngineError):
    """A log that cannot be read, or an append that does not fit it."""


class MissingCommitError(CommitLogError):
    """A commit that is not in the log: not yet, or no longer."""


class CommitLog:
    """The log of the output folder `out`; the folder need not exist to be read as empty.

    Not for use by several threads at once. Errors of the file system pass through as `OSError`.
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
        """The number of the last commit, or -1; cheap after the first call: a few stat calls, no listing."""
        version = self._latest_known
        if version < 0:
            version = max((last for _, last in self._ranges()), default=-1)
        while (next_version := self._end_of_holder(version + 1)) is not None:
            version = next_version
        self._latest_known = version
        return version

    def reaches(self, version: int) -> bool:
        """Whether commit `version`, which the caller has seen here before, or -1, is in the log still.

        After a power cut, and until the engine is started again, the last commit may be there under its
        temporary name alone; then it counts as the last one from now on. Only for a number that was seen: a
        commit that was visible is decided, but one that is being written has a temporary name as well.
        """
        if version == self.latest_version() + 1 and self._waiting(version) is not None:
            self._latest_known = version
        return version <= self.latest_version()

    def oldest_version(self) -> int:
        """The number of the first commit that was not removed; 0 for an empty log."""
        return min((first for first, _ in self._ranges()), default=0)

    def latest(self) -> Commit | None:
        """The last commit, or null when there is none yet. Raises `CommitLogError`."""
        version = self.latest_version()
        return None if version < 0 else self.read(version)

    def read(self, version: int) -> Commit:
        """One commit. Raises `CommitLogError` where there is none of that number, or it is damaged."""
        return next(self.range(version, version))

    def range(self, first: int, last: int) -> Iterator[Commit]:
        """The commits `first` to `last`, both included, in order. Raises `CommitLogError` like `read`.

        Like `reaches`, it finds the last commit under its temporary name; so `last` must have been seen.
        """
        version = first
        while version <= last:
            commit = self._single(version)
            if commit is not None:
                yield commit
                version += 1
                continue
            segment_start, segment_end = _segment_of(version)
            for number in range(version, min(last, segment_end) + 1):
                line = self._segment(number)[number - segment_start + 1]
                yield _parsed_commit(line, number, self._segment_path_of(number))
            version = segment_end + 1

    def summary_at(self, version: int) -> Summary:
        """What the commits up to and including `version` add up to. Raises `CommitLogError`."""
        if not self._summary_version <= version or version - self._summary_version >= COMMITS_PER_SEGMENT:
            self._summary_version, self._summary = self._summary_before(version)
        for commit in self.range(self._summary_version + 1, version):
            self._summary.add(commit)
            self._summary_version = commit.version
        return self._summary.copy()

    def schemas_at(self, version: int) -> dict[SchemaKey, pa.Schema]:
        """Every schema version known up to and including commit `version`. Raises `CommitLogError`."""
        try:
            schemas = self.summary_at(version).schemas
            return {key: schema.arrow_schema() for key, schema in schemas.items()}
        except Malformed as error:
            raise CommitLogError(f"the commit log in {self.folder} is damaged: {error}") from error

    # Writing: by the holder of the output's lock alone

    def append(self, commit: Commit) -> None:
        """Make `commit` the last one, durably. Its data files must be on disk already.

        Raises `CommitLogError` for a number that is taken or leaves a gap, and `OSError`; after that only
        `recover` knows whether the commit was decided.
        """
        expected = self.latest_version() + 1
        if commit.version != expected:
            raise CommitLogError(
                f"commit {commit.version} does not fit the log in {self.folder}, where {expected} is next"
            )
        make_folder(self.folder)
        entry = self._entry_path(commit.version)
        # Decided when this returns, and not seen by a reader before. The rename needs no fsync of its own:
        # that of the next commit covers it, and without it the next start finds the temporary name.
        write_temporary(entry, commit.to_json() + b"\n").rename(entry)
        self._latest_known = commit.version

    def settle(self) -> None:
        """Make the final name of the last commit durable as well."""
        if self.folder.is_dir():
            sync(self.folder)

    def recover(self) -> None:
        """Give each commit that was decided its final name, and remove what else has a temporary one.

        Comes before anything is written or removed: else other rows would get the number of a commit that
        readers have seen. The entry stays as it is, byte for byte.
        """
        if not self.folder.is_dir():
            return
        while self._waiting(version := self.latest_version() + 1) is not None:
            entry = self._entry_path(version)
            # A process that was killed may have left it complete and not durable.
            sync(temporary_name(entry))
            sync(self.folder)
            temporary_name(entry).rename(entry)
        for leftover in self.folder.glob(f"*{TEMPORARY_SUFFIX}"):
            leftover.unlink()
        self.settle()

    @property
    def segment_is_complete(self) -> bool:
        """The last commit completes a thousand, so that there is something to consolidate."""
        return (self.latest_version() + 1) % COMMITS_PER_SEGMENT == 0

    def consolidate(self) -> None:
        """Turn every full thousand of entries into a segment."""
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
        lines = [self.summary_at(start - 1).to_json()]
        lines += [commit.to_json() for commit in self.range(start, end)]
        segment = self._segment_path_of(start)
        write_temporary(segment, b"\n".join(lines) + b"\n").rename(segment)
        # Before the entries that it replaces go.
        self.settle()

    # Removing old segments: by anybody, since nobody else changes what is complete

    def removable_end(self, version: int) -> int | None:
        """The last commit of the segment that opens with `version`, if what follows can do without it.

        Only a later segment knows what the commits before it add up to.
        """
        start, end = _segment_of(version)
        complete = version == start and self._segment_path_of(start).exists()
        return end if complete and self._segment_path_of(end + 1).exists() else None

    def detach_segment(self, version: int) -> Path:
        """Take the segment that holds `version` out of the log, durably; gives the file that still has it."""
        path = self._segment_path_of(version)
        detached = path.with_name(path.name + _DETACHED_SUFFIX)
        # The later segment, which makes this one removable, may be there and not durable yet.
        self.settle()
        path.rename(detached)
        self.settle()
        return detached

    def detached_segments(self) -> list[Path]:
        """Segments whose removal was begun and not finished."""
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
        """First and last commit of every file in the log, in no order."""
        if not self.folder.is_dir():
            return
        for path in self.folder.iterdir():
            if entry := _ENTRY_NAME.fullmatch(path.name):
                yield int(entry[1]), int(entry[1])
            elif segment := _SEGMENT_NAME.fullmatch(path.name):
                yield int(segment[1]), int(segment[2])

    def _end_of_holder(self, version: int) -> int | None:
        """The last commit of the file that holds `version`, if there is one."""
        if self._entry_path(version).exists():
            return version
        if self._segment_path_of(version).exists():
            return _segment_of(version)[1]
        return None

    def _single(self, version: int) -> Commit | None:
        """The commit from a file of its own, under its final or its temporary name; None without one."""
        entry = self._entry_path(version)
        for _ in range(2):  # As recovery may rename it between the two looks.
            with suppress(FileNotFoundError):
                return _parsed_commit(entry.read_bytes(), version, entry)
            waiting = self._waiting(version)
            if waiting is not None:
                return waiting
        return None

    def _waiting(self, version: int) -> Commit | None:
        """The commit that waits for its final name: there in full under the temporary one."""
        path = temporary_name(self._entry_path(version))
        try:
            line = path.read_bytes()
            return _parsed_commit(line, version, path) if line.endswith(b"\n") else None
        except (FileNotFoundError, CommitLogError):
            return None

    def _segment(self, version: int) -> list[bytes]:
        """The lines of the segment that holds `version`: the summary, then its commits."""
        path = self._segment_path_of(version)
        if path != self._segment_path:
            try:
                lines = path.read_bytes().removesuffix(b"\n").split(b"\n")
            except FileNotFoundError:
                raise MissingCommitError(f"there is no commit {version} in {self.folder}") from None
            if len(lines) != COMMITS_PER_SEGMENT + 1:
                raise CommitLogError(
                    f"{path} is damaged: it has {len(lines)} lines in place of {COMMITS_PER_SEGMENT + 1}"
                )
            self._segment_path, self._segment_lines = path, lines
        return self._segment_lines

    def _summary_before(self, version: int) -> tuple[int, Summary]:
        """The nearest summary that a segment holds at or before `version`, and the commit it ends with."""
        for start in range(_segment_of(version + 1)[0], -1, -COMMITS_PER_SEGMENT):
            path = self._segment_path_of(start)
            if path.exists():
                try:
                    return start - 1, Summary.from_json(self._segment(start)[0])
                except Malformed as error:
                    raise CommitLogError(f"{path} is damaged: {error}") from error
        return -1, Summary()


def _segment_of(version: int) -> tuple[int, int]:
    start = version // COMMITS_PER_SEGMENT * COMMITS_PER_SEGMENT
    return start, start + COMMITS_PER_SEGMENT - 1


def _parsed_commit(line: bytes, version: int, path: Path) -> Commit:
    try:
        commit = Commit.from_json(line)
    except Malformed as error:
        raise CommitLogError(f"{path} is damaged: {error}") from error
    if commit.version != version:
        raise CommitLogError(f"{path} is damaged: it holds commit {commit.version} in place of {version}")
    return commit
