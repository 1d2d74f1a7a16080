"""The commit log: numbered JSON entries that define what an output contains.

One writer appends entries atomically; every thousand entries are consolidated into one segment, which begins
with a summary of all commits before it. Readers need no lock: an entry that has disappeared was consolidated,
and its segment existed before the entry was removed.

In a local folder, an entry is decided once it is durable under its temporary name; only then it gets its
final name, under which readers see it. A power failure may undo the rename, but does not lose the entry:
recovery renames it again. In an object store no lock keeps an older writer away: there, the first entry that
exists with a number is the commit, and an entry beside the segment that covers it is not one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from engine.errors import EngineError
from engine.output.commit import Commit, SchemaKey, Summary
from engine.output.files import TEMPORARY_SUFFIX, OutputError
from engine.output.log_json import Malformed
from engine.output.schema_state import CommittedChange, SchemaState
from engine.output.storage import OutputPlace, storage_of

if TYPE_CHECKING:
    import pyarrow as pa

COMMITS_PER_SEGMENT = 1000
LOG_FOLDER = "_log"
_DETACHED_SUFFIX = ".removed"
_READ_AT_ONCE = 100
"""Entries that are read together where each read waits for a network."""
_SCHEMA_CHANGES = b',"schema_changes":[{'
"""In each line with some, and in no string: there, a quotation mark follows a backslash."""

_ENTRY_NAME = re.compile(r"(\d{20})\.json")
_SEGMENT_NAME = re.compile(r"(\d{20})-(\d{20})\.jsonl")


class CommitLogError(EngineError):
    """The log cannot be read, or an appended commit does not have the next number."""


class MissingCommitError(CommitLogError):
    """A commit is not in the log: not written yet, or removed."""


class OtherWriterError(OutputError):
    """Another engine has written to the output, which is its own from then on."""

    def __init__(self, out: OutputPlace) -> None:
        super().__init__(
            f"another binlog-engine has taken over the output {out}: this one has stopped, and what it "
            "committed is kept; run one engine for each output"
        )


class CommitLog:
    """The log of the output at `out`; the log of an output that does not exist is empty.

    Not thread-safe. Errors of the file system are raised as `OSError`.
    """

    def __init__(self, out: OutputPlace | str) -> None:
        self._storage = storage_of(out)
        self.out = self._storage.place
        self.folder = self.out / LOG_FOLDER
        """As messages show it."""
        self._latest_known = -1
        self._summary_version = -1
        self._summary = Summary()
        self._segment_name: str | None = None
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
        for number, line, name in self._lines(first, last):
            yield _parsed_commit(line, number, self.out / name)

    def schema_changes(self, first: int, last: int) -> Iterator[CommittedChange]:
        """The schema changes of the commits `first` to `last`, in order. Raises like `range`.

        It parses only the commits that contain some.
        """
        for number, line, name in self._lines(first, last):
            if _SCHEMA_CHANGES in line:
                yield from _parsed_commit(line, number, self.out / name).committed_changes()

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
        """Append `commit` durably. Its data files must be durable already.

        Raises `CommitLogError` if its number is not the next one, `OtherWriterError`, and `OSError`; after an
        `OSError` only `recover` can determine whether the commit was decided.
        """
        if self._storage.has_lock:
            expected = self.latest_version() + 1
            if commit.version != expected:
                raise CommitLogError(
                    f"commit {commit.version} cannot follow the log in {self.folder}, where {expected} is "
                    "next"
                )
        name, line = _entry_name(commit.version), commit.to_json() + b"\n"
        try:
            # In a local folder, the commit is decided when its content is durable under the temporary name,
            # and not visible to readers before. The rename needs no fsync: the next commit's includes it, and
            # until then recovery finds the temporary name.
            self._storage.create(name, line)
        except FileExistsError:
            if self._storage.has_lock:
                raise
            # If it is this very commit, the answer to an earlier attempt was lost.
            if self._storage.read_all([name]) != [line]:
                raise OtherWriterError(self.out) from None
        if not self._storage.has_lock:
            self._require_still_last(commit)
        self._latest_known = commit.version

    def _require_still_last(self, commit: Commit) -> None:
        """Raise `OtherWriterError` if the entry that was just created has a number of long ago.

        An entry that was consolidated is removed, so its name can be created again by a writer that was
        suspended meanwhile. Then a segment covers the number, or, if `vacuum` has removed that, a later one
        is there: segments are removed from the oldest on, and the last one stays.
        """
        name, segment = _entry_name(commit.version), _segment_name(commit.version)
        if self._storage.exists(segment):
            if self.read(commit.version).in_places_of(commit) == commit:
                # The commit was the last one before another writer came, and has been consolidated by it.
                return
        elif not self._later_segments(commit.version):
            return
        self._storage.remove([name])
        raise OtherWriterError(self.out)

    def _later_segments(self, version: int) -> bool:
        """Whether there is a segment after the one that has, or will have, the commit."""
        end = f"{_segment_of(version)[1]:020d}"
        return any(_SEGMENT_NAME.fullmatch(name) for name in self._storage.names(LOG_FOLDER, after=end))

    def settle(self) -> None:
        """Make the final name of the last commit durable."""
        self._storage.settle(LOG_FOLDER)

    def recover(self) -> None:
        """Rename each decided commit to its final name, and remove all other temporary files.

        Must be called before anything is written or removed: otherwise other rows would get the number of a
        commit that readers have seen. The content of an entry is not changed.
        """
        while self._waiting(version := self.latest_version() + 1) is not None:
            self._storage.finish(_entry_name(version))
        self._storage.remove_leftovers(LOG_FOLDER)
        self.settle()

    @property
    def segment_is_complete(self) -> bool:
        """Whether the last commit completes a segment, so that `consolidate` has work to do."""
        return (self.latest_version() + 1) % COMMITS_PER_SEGMENT == 0

    def consolidate(self) -> None:
        """Consolidate every complete thousand of entries into a segment."""
        complete = (self.latest_version() + 1) // COMMITS_PER_SEGMENT * COMMITS_PER_SEGMENT
        ranges = list(self._ranges())
        singles = sorted(first for first, last in ranges if first == last and last < complete)
        oldest = min((first for first, last in ranges if first != last), default=0)
        for start in sorted({_segment_of(version)[0] for version in singles}):
            # Before the oldest segment, there can only be an entry that a suspended writer has left.
            if start >= oldest and not self._storage.exists(_segment_name(start)):
                self._write_segment(start)
        self._storage.remove(map(_entry_name, singles))

    def _write_segment(self, start: int) -> None:
        end = _segment_of(start)[1]
        with _damage_of(self.folder):
            lines = [self.summary_at(start - 1).to_json()]
        lines += [commit.to_json() for commit in self.range(start, end)]
        name = _segment_name(start)
        try:
            self._storage.create(name, b"\n".join(lines) + b"\n")
        except FileExistsError:
            if self._storage.has_lock:
                raise
            # Another writer has just made it: its content follows from the commits, so it is the same.
        else:
            if not self._storage.has_lock and self._later_segments(start):
                # This writer was suspended, and `vacuum` has removed the segment that another one had made.
                self._storage.remove([name])
                raise OtherWriterError(self.out)
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

    def forget_content(self) -> None:
        """Read segments again when they are next wanted: others may have changed them."""
        self._segment_name = None

    def segments(self) -> list[int]:
        """The first commits of all segments, in order."""
        return sorted(first for first, last in self._ranges() if first != last)

    def replace_segment(self, start: int, change: Callable[[Commit], Commit]) -> None:
        """Put changed commits in place of those of the segment that begins with `start`, in one step.

        Readers find the old ones or the new ones, also after a power failure. Where no lock excludes that,
        the segment may be changed or removed meanwhile; then `change` is called for its new commits, too.
        """
        name = _segment_name(start)
        while True:
            self._segment_name = None
            try:
                summary, *commits = self._segment(start)
                old = b"\n".join([summary, *commits]) + b"\n"
                changed = [
                    change(_parsed_commit(line, number, self.out / name)).to_json()
                    for number, line in enumerate(commits, start)
                ]
                self._segment_name = None
                self._storage.exchange(name, old, b"\n".join([summary, *changed]) + b"\n")
            except FileExistsError:
                continue
            except (MissingCommitError, FileNotFoundError):
                if self._storage.has_lock:
                    raise
            return

    def removable_end(self, version: int) -> int | None:
        """The last commit of the segment that begins with `version`; None if that cannot be removed.

        It can be if a later segment exists, whose summary includes the removed commits.
        """
        start, end = _segment_of(version)
        complete = version == start and self._storage.exists(_segment_name(start))
        return end if complete and self._storage.exists(_segment_name(end + 1)) else None

    def detach_segment(self, version: int) -> str:
        """Take the segment that contains `version` out of the log, durably; returns its name from then on."""
        name = _segment_name(version)
        detached = name + _DETACHED_SUFFIX
        # The later segment, which makes this one removable, may not be durable yet.
        self.settle()
        self._storage.move(name, detached)
        return detached

    def detached_segments(self) -> list[str]:
        """Detached segments whose removal is not finished."""
        names = self._storage.names(LOG_FOLDER)
        return [f"{LOG_FOLDER}/{name}" for name in names if name.endswith(f".jsonl{_DETACHED_SUFFIX}")]

    def detached_commits(self, name: str) -> Iterator[Commit]:
        """The commits of a detached segment. Raises `CommitLogError`."""
        # An object store has no rename: after a crash the segment may still be there under its own name, too.
        if not self._storage.has_lock:
            self._storage.remove([name.removesuffix(_DETACHED_SUFFIX)])
        start = int(name.removeprefix(f"{LOG_FOLDER}/").partition("-")[0])
        for number, line in enumerate(self._storage.read(name).splitlines()[1:], start):
            yield _parsed_commit(line, number, self.out / name)

    def forget_segment(self, name: str) -> None:
        """Remove a detached segment; its data files must have been removed durably."""
        self._storage.remove([name])

    # Names

    def _ranges(self) -> Iterator[tuple[int, int]]:
        """First and last commit of every file in the log, in arbitrary order."""
        for name in self._storage.names(LOG_FOLDER):
            if entry := _ENTRY_NAME.fullmatch(name):
                yield int(entry[1]), int(entry[1])
            elif segment := _SEGMENT_NAME.fullmatch(name):
                yield int(segment[1]), int(segment[2])

    def _end_of_holder(self, version: int) -> int | None:
        """The last commit of the file that contains `version`; None if there is no such file."""
        if self._storage.exists(_entry_name(version)):
            return version
        if self._storage.exists(_segment_name(version)):
            return _segment_of(version)[1]
        return None

    # Content

    def _lines(self, first: int, last: int) -> Iterator[tuple[int, bytes, str]]:
        """The commits `first` to `last` as JSON, each with its number and the file that contains it."""
        version = first
        while version <= last:
            segment_start, segment_end = _segment_of(version)
            end = min(last, segment_end)
            for entry in self._entries(version, end):
                yield entry
                version = entry[0] + 1
            if version <= end:
                lines, name = self._segment(version), _segment_name(version)
                for number in range(version, end + 1):
                    yield number, lines[number - segment_start + 1], name
                version = end + 1

    def _entries(self, first: int, last: int) -> Iterator[tuple[int, bytes, str]]:
        """The entries of these commits of one segment, as `_lines` has them, until one is missing."""
        if self._storage.has_lock:
            for version in range(first, last + 1):
                entry = self._entry_line(version)
                if entry is None:
                    return
                yield version, *entry
            return
        for begin in range(first, last + 1, _READ_AT_ONCE):
            versions = range(begin, min(begin + _READ_AT_ONCE, last + 1))
            # Otherwise each entry that has gone into the segment would be asked for.
            if len(versions) > 1 and self._storage.exists(_segment_name(first)):
                return
            contents = self._storage.read_all([_entry_name(version) for version in versions])
            # Asked after the entries were read: beside their segment, they may be a suspended writer's.
            if self._storage.exists(_segment_name(first)):
                return
            for version, content in zip(versions, contents, strict=True):
                if content is None:
                    return
                yield version, content, _entry_name(version)

    def _entry_line(self, version: int) -> tuple[bytes, str] | None:
        """The commit's entry, under its final or its temporary name, and that; None without an entry."""
        name = _entry_name(version)
        for _ in range(2):  # Recovery may rename it between the two reads.
            with suppress(FileNotFoundError):
                return self._storage.read(name), name
            waiting = self._waiting(version)
            if waiting is not None:
                return waiting, name + TEMPORARY_SUFFIX
        return None

    def _waiting(self, version: int) -> bytes | None:
        """The entry that is complete under its temporary name; None if there is none."""
        name = _entry_name(version)
        try:
            line = self._storage.unfinished(name)
            _parsed_commit(line, version, self.out / (name + TEMPORARY_SUFFIX))
        except (FileNotFoundError, CommitLogError):
            return None
        return line if line.endswith(b"\n") else None

    def _segment(self, version: int) -> list[bytes]:
        """The lines of the segment that contains `version`: the summary, then its commits."""
        name = _segment_name(version)
        if name != self._segment_name:
            try:
                lines = self._storage.read(name).removesuffix(b"\n").split(b"\n")
            except FileNotFoundError:
                raise MissingCommitError(f"there is no commit {version} in {self.folder}") from None
            if len(lines) != COMMITS_PER_SEGMENT + 1:
                raise CommitLogError(
                    f"{self.out / name} is damaged: it has {len(lines)} lines instead of "
                    f"{COMMITS_PER_SEGMENT + 1}"
                )
            self._segment_name, self._segment_lines = name, lines
        return self._segment_lines

    def _summary_before(self, version: int) -> tuple[int, Summary]:
        """The latest summary in a segment that ends at or before `version`, and its last commit."""
        for start in range(_segment_of(version + 1)[0], -1, -COMMITS_PER_SEGMENT):
            name = _segment_name(start)
            if self._storage.exists(name):
                with _damage_of(self.out / name):
                    return start - 1, Summary.from_json(self._segment(start)[0])
        return -1, Summary()


def _segment_of(version: int) -> tuple[int, int]:
    start = version // COMMITS_PER_SEGMENT * COMMITS_PER_SEGMENT
    return start, start + COMMITS_PER_SEGMENT - 1


def _entry_name(version: int) -> str:
    return f"{LOG_FOLDER}/{version:020d}.json"


def _segment_name(version: int) -> str:
    start, end = _segment_of(version)
    return f"{LOG_FOLDER}/{start:020d}-{end:020d}.jsonl"


@contextmanager
def _damage_of(path: OutputPlace) -> Iterator[None]:
    """Raise what is malformed inside of `path` as a `CommitLogError`."""
    try:
        yield
    except Malformed as error:
        raise CommitLogError(f"{path} is damaged: {error}") from error


def _parsed_commit(line: bytes, version: int, path: OutputPlace) -> Commit:
    with _damage_of(path):
        commit = Commit.from_json(line)
    if commit.version != version:
        raise CommitLogError(f"{path} is damaged: it holds commit {commit.version} instead of {version}")
    return commit
