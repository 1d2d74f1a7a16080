"""The files of the commit log: how they are named, which commits each contains, and the lines that it has.

An *entry* is one commit, as a line of JSON. A *segment* takes the place of a thousand entries: a line with
the summary of all commits before it, then a line for each of its commits. Readers need no lock: an entry that
has disappeared was consolidated, and its segment existed before the entry was removed.

In a local folder an entry may *wait*: it is complete under its temporary name, and was not renamed yet. In an
object store an entry beside the segment that covers it is not a commit, but what a suspended writer has left.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from engine.dataclass import dataclass
from engine.errors import EngineError
from engine.output.commit import Commit, Summary
from engine.output.files import TEMPORARY_SUFFIX
from engine.output.log_json import Malformed
from engine.output.storage import OutputPlace, Storage

COMMITS_PER_SEGMENT = 1000
LOG_FOLDER = "_log"
_READ_AT_ONCE = 100
"""Entries that are read together where each read waits for a network."""

_ENTRY_NAME = re.compile(r"(\d{20})\.json")
_SEGMENT_NAME = re.compile(r"(\d{20})-(\d{20})\.jsonl")


class CommitLogError(EngineError):
    """The log cannot be read, or an appended commit does not have the next number."""


class MissingCommitError(CommitLogError):
    """A commit is not in the log: not written yet, or removed."""


def segment_of(version: int) -> tuple[int, int]:
    """The first and the last commit of the segment that contains, or will contain, a commit."""
    start = version // COMMITS_PER_SEGMENT * COMMITS_PER_SEGMENT
    return start, start + COMMITS_PER_SEGMENT - 1


def entry_name(version: int) -> str:
    """The name of a commit's entry in the output."""
    return f"{LOG_FOLDER}/{version:020d}.json"


def segment_name(version: int) -> str:
    """The name of the segment that contains, or will contain, a commit."""
    start, end = segment_of(version)
    return f"{LOG_FOLDER}/{start:020d}-{end:020d}.jsonl"


@contextmanager
def damage_of(path: OutputPlace) -> Iterator[None]:
    """Raise what is malformed inside of `path` as a `CommitLogError`."""
    try:
        yield
    except Malformed as error:
        raise CommitLogError(f"{path} is damaged: {error}") from error


@dataclass(frozen=True, slots=True)
class CommitLine:
    """A commit as JSON, and where it was read."""

    version: int
    """Which commit it has to be."""
    json: bytes
    path: OutputPlace
    """The file that contains it."""

    def commit(self) -> Commit:
        """The commit itself. Raises `CommitLogError` if the line is damaged or has another commit."""
        with damage_of(self.path):
            commit = Commit.from_json(self.json)
        if commit.version != self.version:
            raise CommitLogError(
                f"{self.path} is damaged: it holds commit {commit.version} instead of {self.version}"
            )
        return commit


class LogFiles:
    """The files of the log in `storage`; an output that does not exist has none.

    It keeps the lines of the segment that was read last, and is not thread-safe. Errors of the file system
    are raised as `OSError`.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self.folder = storage.place / LOG_FOLDER
        """As messages show it."""
        self._segment_name: str | None = None
        self._segment_lines: list[bytes] = []

    # What there is

    def ranges(self) -> Iterator[tuple[int, int]]:
        """First and last commit of every file in the log, in arbitrary order; an entry's are the same."""
        for name in self._storage.names(LOG_FOLDER):
            if entry := _ENTRY_NAME.fullmatch(name):
                yield int(entry[1]), int(entry[1])
            elif segment := _SEGMENT_NAME.fullmatch(name):
                yield int(segment[1]), int(segment[2])

    def end_of_holder(self, version: int) -> int | None:
        """The last commit of the file that contains `version`; None if there is no such file."""
        if self._storage.exists(entry_name(version)):
            return version
        return segment_of(version)[1] if self.has_segment(version) else None

    def has_segment(self, version: int) -> bool:
        """Whether there is a segment that contains `version`."""
        return self._storage.exists(segment_name(version))

    def has_later_segment(self, version: int) -> bool:
        """Whether there is a segment after the one that has, or will have, the commit."""
        end = f"{segment_of(version)[1]:020d}"
        return any(_SEGMENT_NAME.fullmatch(name) for name in self._storage.names(LOG_FOLDER, after=end))

    def is_waiting(self, version: int) -> bool:
        """Whether the entry is complete under its temporary name."""
        return self._waiting_entry(version) is not None

    # What they contain

    def lines(self, first: int, last: int) -> Iterator[CommitLine]:
        """The commits `first` to `last`, both included, in order; an entry may still be waiting.

        Raises `MissingCommitError`, and `CommitLogError` for a damaged segment.
        """
        version = first
        while version <= last:
            segment_start, segment_end = segment_of(version)
            end = min(last, segment_end)
            for entry in self._entries(version, end):
                yield entry
                version = entry.version + 1
            if version <= end:
                lines, path = self._kept_segment(version), self._storage.place / segment_name(version)
                for number in range(version, end + 1):
                    yield CommitLine(number, lines[number - segment_start + 1], path)
                version = end + 1

    def segment(self, version: int) -> list[bytes]:
        """The lines of the segment that contains `version`, as they are now: the summary, then its commits.

        Raises like `lines`.
        """
        name = segment_name(version)
        try:
            lines = self._storage.read(name).removesuffix(b"\n").split(b"\n")
        except FileNotFoundError:
            raise MissingCommitError(f"there is no commit {version} in {self.folder}") from None
        if len(lines) != COMMITS_PER_SEGMENT + 1:
            raise CommitLogError(
                f"{self._storage.place / name} is damaged: it has {len(lines)} lines instead of "
                f"{COMMITS_PER_SEGMENT + 1}"
            )
        return lines

    def summary_before(self, version: int) -> tuple[int, Summary]:
        """The latest summary in a segment that ends at or before `version`, and its last commit.

        Raises like `lines`.
        """
        for start in range(segment_of(version + 1)[0], -1, -COMMITS_PER_SEGMENT):
            if self.has_segment(start):
                with damage_of(self._storage.place / segment_name(start)):
                    return start - 1, Summary.from_json(self._kept_segment(start)[0])
        return -1, Summary()

    def _kept_segment(self, version: int) -> list[bytes]:
        name = segment_name(version)
        if name != self._segment_name:
            self._segment_lines = self.segment(version)
            self._segment_name = name
        return self._segment_lines

    def _entries(self, first: int, last: int) -> Iterator[CommitLine]:
        """The entries of these commits of one segment, until one is missing."""
        if self._storage.has_lock:
            for version in range(first, last + 1):
                entry = self._entry(version)
                if entry is None:
                    return
                yield entry
            return
        for begin in range(first, last + 1, _READ_AT_ONCE):
            versions = range(begin, min(begin + _READ_AT_ONCE, last + 1))
            # Otherwise each entry that has gone into the segment would be asked for.
            if len(versions) > 1 and self.has_segment(first):
                return
            contents = self._storage.read_all([entry_name(version) for version in versions])
            # Asked after the entries were read: beside their segment, they may be a suspended writer's.
            if self.has_segment(first):
                return
            for version, content in zip(versions, contents, strict=True):
                if content is None:
                    return
                yield CommitLine(version, content, self._storage.place / entry_name(version))

    def _entry(self, version: int) -> CommitLine | None:
        """The commit's entry, under its final or its temporary name; None without an entry."""
        name = entry_name(version)
        for _ in range(2):  # Recovery may rename it between the two reads.
            with suppress(FileNotFoundError):
                return CommitLine(version, self._storage.read(name), self._storage.place / name)
            if (waiting := self._waiting_entry(version)) is not None:
                return waiting
        return None

    def _waiting_entry(self, version: int) -> CommitLine | None:
        name = entry_name(version)
        try:
            content = self._storage.unfinished(name)
        except FileNotFoundError:
            return None
        line = CommitLine(version, content, self._storage.place / (name + TEMPORARY_SUFFIX))
        try:
            line.commit()
        except CommitLogError:
            return None
        return line if content.endswith(b"\n") else None
