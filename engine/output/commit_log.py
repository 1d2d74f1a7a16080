"""The commit log: numbered commits that define what an output contains.

Readers ask for commits by their numbers, and for the summary of all commits up to one; they need no lock. One
writer appends commits, each as an entry that appears atomically, and consolidates every thousand entries into
a segment (`log_files`).

In a local folder, an entry is decided once it is durable under its temporary name; only then it gets its
final name, under which readers see it. A power failure may undo the rename, but does not lose the entry:
recovery renames it again. In an object store no lock keeps an older writer away: there, the first entry that
exists with a number is the commit, and an entry beside the segment that covers it is not one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from engine.output import log_files
from engine.output.commit import Commit, SchemaKey, Summary
from engine.output.files import OutputError
from engine.output.log_files import (
    LOG_FOLDER,
    CommitLogError,
    LogFiles,
    MissingCommitError,
    damage_of,
    entry_name,
    segment_name,
    segment_of,
)
from engine.output.prepared import UndoneTransaction
from engine.output.schema_state import CommittedChange, SchemaState
from engine.output.storage import OutputPlace, storage_of

if TYPE_CHECKING:
    import pyarrow as pa

_SCHEMA_CHANGES = b',"schema_changes":[{'
_UNDONE = b',"undone":[{'
"""Both are in each line with some, and in no string: there, a quotation mark follows a backslash."""


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
        self._files = LogFiles(self._storage)
        self.folder = self._files.folder
        """As messages show it."""
        self._latest_known = -1
        self._summary_version = -1
        self._summary = Summary()

    # Reading

    def latest_version(self) -> int:
        """The number of the last commit, or -1. Calls after the first one need only a few `stat` calls.

        It is smaller than before if the output was restored from a copy, or another one is in its place.
        """
        version = self._latest_known
        if version < 0 or not self._holds(version):
            # After a long time the commits that followed it may have been removed, too.
            version = max((last for _, last in self._files.ranges()), default=-1)
        while (next_version := self._files.end_of_holder(version + 1)) is not None:
            version = next_version
        self._latest_known = version
        return version

    def reaches(self, version: int) -> bool:
        """Whether the log still contains commit `version`, which the caller has seen before; true for -1.

        After a power failure, until the engine is started again, the last commit may exist only under its
        temporary name; then it counts as the last commit from then on. The caller must have seen `version`: a
        visible commit is decided, but a commit that is being written has a temporary name, too.
        """
        if version == self.latest_version() + 1 and self._files.is_waiting(version):
            self._latest_known = version
        return version <= self.latest_version()

    def _holds(self, version: int) -> bool:
        return self._files.end_of_holder(version) is not None or self._files.is_waiting(version)

    def oldest_version(self) -> int:
        """The number of the first commit that was not removed; 0 for an empty log."""
        return min((first for first, _ in self._files.ranges()), default=0)

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
        for line in self._files.lines(first, last):
            yield line.commit()

    def schema_changes(self, first: int, last: int) -> Iterator[CommittedChange]:
        """The schema changes of the commits `first` to `last`, in order. Raises like `range`.

        It parses only the commits that contain some.
        """
        for line in self._files.lines(first, last):
            if _SCHEMA_CHANGES in line.json:
                yield from line.commit().committed_changes()

    def undone(self, first: int, last: int) -> Iterator[UndoneTransaction]:
        """The transactions that the commits `first` to `last` list as undone. Raises like `range`."""
        for line in self._files.lines(first, last):
            if _UNDONE in line.json:
                yield from line.commit().undone

    def summary_at(self, version: int) -> Summary:
        """The summary of all commits up to and including `version`. Raises `CommitLogError`."""
        is_near = 0 <= version - self._summary_version < log_files.COMMITS_PER_SEGMENT
        try:
            self._summarize(version, goes_on=is_near)
        except MissingCommitError:
            if not is_near:
                raise
            # Commits that follow may have been removed since: a later segment has the summary of them.
            self._summarize(version, goes_on=False)
        return self._summary.copy()

    def _summarize(self, version: int, *, goes_on: bool) -> None:
        """Advance the summary to `version`: from where it is, or from the last one in a segment."""
        if not goes_on:
            self._summary_version, self._summary = self._files.summary_before(version)
        for commit in self.range(self._summary_version + 1, version):
            self._summary.add(commit)
            self._summary_version = commit.version

    def schemas_at(self, version: int) -> dict[SchemaKey, pa.Schema]:
        """Every schema version of the commits up to and including `version`. Raises `CommitLogError`."""
        with damage_of(self.folder):
            schemas = self.summary_at(version).schemas
            return {key: schema.arrow_schema() for key, schema in schemas.items()}

    def schema_state_at(self, version: int) -> SchemaState:
        """What the schema changes up to and including `version` leave in force. Raises `CommitLogError`."""
        with damage_of(self.folder):
            state = self.summary_at(version).schema_state
            state.parse()
        return state

    # Writing: only by the holder of the output's lock

    def append(self, commit: Commit, line: bytes | None = None) -> None:
        """Append `commit` durably. Its data files must be durable already. `line`: its JSON, if made before.

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
        name, line = entry_name(commit.version), (line or commit.to_json()) + b"\n"
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
        if self._files.has_segment(commit.version):
            if self.read(commit.version).in_places_of(commit) == commit:
                # The commit was the last one before another writer came, and has been consolidated by it.
                return
        elif not self._files.has_later_segment(commit.version):
            return
        self._storage.remove([entry_name(commit.version)])
        raise OtherWriterError(self.out)

    def settle(self) -> None:
        """Make the final name of the last commit durable."""
        self._storage.settle(LOG_FOLDER)

    def recover(self) -> None:
        """Rename each decided commit to its final name, and remove all other temporary files.

        Must be called before anything is written or removed: otherwise other rows would get the number of a
        commit that readers have seen. The content of an entry is not changed.
        """
        while self._files.is_waiting(version := self.latest_version() + 1):
            self._storage.finish(entry_name(version))
        self._storage.remove_leftovers(LOG_FOLDER)
        self.settle()

    @property
    def segment_is_complete(self) -> bool:
        """Whether the last commit completes a segment, so that `consolidate` has work to do."""
        latest = self.latest_version()
        return latest == segment_of(latest)[1]

    def consolidate(self) -> None:
        """Consolidate every complete thousand of entries into a segment."""
        complete = segment_of(self.latest_version() + 1)[0]
        ranges = list(self._files.ranges())
        singles = sorted(first for first, last in ranges if first == last and last < complete)
        oldest = min((first for first, last in ranges if first != last), default=0)
        for start in sorted({segment_of(version)[0] for version in singles}):
            # Before the oldest segment, there can only be an entry that a suspended writer has left.
            if start >= oldest and not self._files.has_segment(start):
                self._write_segment(start)
        self._storage.remove(map(entry_name, singles))

    def _write_segment(self, start: int) -> None:
        end = segment_of(start)[1]
        with damage_of(self.folder):
            lines = [self.summary_at(start - 1).to_json()]
        lines += [commit.to_json() for commit in self.range(start, end)]
        name = segment_name(start)
        try:
            self._storage.create(name, b"\n".join(lines) + b"\n")
        except FileExistsError:
            if self._storage.has_lock:
                raise
            # Another writer has just made it: its content follows from the commits, so it is the same.
        else:
            if not self._storage.has_lock and self._files.has_later_segment(start):
                # This writer was suspended, and `vacuum` has removed the segment that another one had made.
                self._storage.remove([name])
                raise OtherWriterError(self.out)
        # Durable before the entries that it replaces are removed.
        self.settle()
