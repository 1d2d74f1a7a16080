"""Compares an output with its commit log: every entry and every data file that the log lists.

A file must have the size, the checksum and the schema that the log says, and exactly the rows of the commits
that list it, in order of `_seq`. It changes nothing, and an engine may write meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field

import numpy as np
import pyarrow as pa

from engine.dataclass import dataclass
from engine.output.checksum import checksum_of_content
from engine.output.commit import Commit, DataFile, SchemaKey
from engine.output.commit_log import CommitLog
from engine.output.data_file_names import commits_in, is_compacted
from engine.output.data_files import ReaderError
from engine.output.log_files import CommitLogError, MissingCommitError
from engine.output.storage import OutputPlace, storage_of


@dataclass(slots=True)
class Verified:
    """What was looked at, and what was found."""

    commits: int = 0
    files: int = 0
    rows: int = 0
    bytes: int = 0
    without_checksum: int = 0
    """Files of which no checksum was taken; their content is checked for its form only."""
    problems: list[str] = field(default_factory=list)
    """A sentence for each thing that is wrong."""


@dataclass(slots=True)
class _Listed:
    """What the commits so far list of a file."""

    first_commit: int
    last_commit: int
    """The first and the last one of these that lists it."""
    entries: list[DataFile] = field(default_factory=list)


def verify(out: OutputPlace | str, report: Callable[[Verified], None] = lambda _: None) -> Verified:
    """Look at all commits from the oldest to the last; `report` is called after each of them."""
    return _Verification(out, report).run()


class _Verification:
    def __init__(self, out: OutputPlace | str, report: Callable[[Verified], None]) -> None:
        self._storage = storage_of(out)
        self._out = self._storage.place
        self._log = CommitLog(self._out)
        self._report = report
        self._oldest = self._log.oldest_version()
        self._latest = self._log.latest_version()
        self._schemas: dict[SchemaKey, pa.Schema] = {}
        self._open: dict[str, _Listed] = {}
        """The files so far that later commits may list, too."""
        self._done = Verified()

    def run(self) -> Verified:
        last_seq = 0
        self._read_schemas(self._oldest - 1)
        for commit in self._commits():
            self._done.commits += 1
            self._schemas.update((schema.key, schema.arrow_schema()) for schema in commit.schemas)
            self._check_order(commit, last_seq)
            last_seq = commit.last_seq
            for entry in commit.files:
                listed = self._open.setdefault(entry.path, _Listed(commit.version, commit.version))
                listed.last_commit = commit.version
                listed.entries.append(entry)
            for path in [path for path in self._open if commits_in(path)[1] <= commit.version]:
                self._check_file(path, self._open.pop(path))
            self._report(self._done)
        for path, listed in self._open.items():
            self._check_file(path, listed)
        if not self._done.problems:
            self._read_schemas(self._latest)
        return self._done

    def _read_schemas(self, version: int) -> None:
        """From the last summary before; what is wrong with that is a problem."""
        try:
            self._schemas |= self._log.schemas_at(version)
        except MissingCommitError as error:
            if not self._was_removed(version):
                self._add(str(error))
        except CommitLogError as error:
            self._add(str(error))

    def _was_removed(self, version: int) -> bool:
        """Whether `vacuum` has removed a commit."""
        return version < self._log.oldest_version()

    def _commits(self) -> Iterator[Commit]:
        """All commits that can be read."""
        first_missing: int | None = None
        for version in range(self._oldest, self._latest + 1):
            try:
                commit = self._log.read(version)
            except MissingCommitError:
                if first_missing is None and not self._was_removed(version):
                    first_missing = version
                continue
            except CommitLogError as error:
                self._add(str(error))
                continue
            if first_missing is not None:
                self._add(f"commits {first_missing} to {version - 1} are not in {self._log.folder}")
                first_missing = None
            yield commit

    def _add(self, problem: str) -> None:
        # A damaged segment is the same problem for each of its commits.
        if problem not in self._done.problems[-1:]:
            self._done.problems.append(problem)

    def _check_order(self, commit: Commit, last_seq: int) -> None:
        for entry in commit.files:
            if not last_seq < entry.first_seq <= entry.last_seq <= commit.last_seq:
                self._add(
                    f"commit {commit.version} lists `_seq` {entry.first_seq} to {entry.last_seq} in "
                    f"{entry.path}, but it has those from {last_seq + 1} to {commit.last_seq}"
                )

    def _check_file(self, path: str, listed: _Listed) -> None:
        self._done.files += 1
        self._done.rows += sum(entry.rows for entry in listed.entries)
        try:
            problem = self._damage(path, listed)
        except OSError:
            problem = "it does not exist, or cannot be read"
        except (ReaderError, pa.ArrowException) as error:
            problem = f"it cannot be read as an Arrow file ({error})"
        if problem is not None and not self._was_moved(path, listed.last_commit):
            first, last = commits_in(path)
            lister = f"commit {first} lists" if first == last else f"commits {first} to {last} list"
            self._add(f"{self._out / path}, which {lister}, is damaged: {problem}")

    def _was_moved(self, path: str, commit: int) -> bool:
        """Whether compaction or `vacuum` has removed the file meanwhile, which the commit has listed."""
        if self._was_removed(commit):
            return True
        return path not in (entry.path for entry in CommitLog(self._out).read(commit).files)

    def _damage(self, path: str, listed: _Listed) -> str | None:
        """What is wrong with a file, as a part of a sentence; None if nothing is."""
        first = listed.entries[0]
        size = self._storage.size(path)
        self._done.bytes += size
        if not is_compacted(path) and size != first.bytes:
            return f"it has {size:,} bytes, not {first.bytes:,}"
        if first.checksum is None:
            self._done.without_checksum += 1
        content = self._storage.open(path)
        if first.checksum is not None and checksum_of_content(content).text() != first.checksum:
            return "its content has another checksum"
        content.seek(0)
        with pa.ipc.open_file(content) as file:
            schema = self._schemas.get((first.database, first.table, first.schema_version))
            if schema is not None and not file.schema.equals(schema, check_metadata=True):
                return f"it does not have version {first.schema_version} of the table's schema"
            numbers = [np.empty(0, np.int64)]
            for index in range(file.num_record_batches):
                batch = file.get_batch(index)
                batch.validate(full=first.checksum is None)
                numbers.append(batch.column("_seq").to_numpy())
        return self._wrong_rows(path, listed, np.concatenate(numbers))

    def _wrong_rows(self, path: str, listed: _Listed, numbers: np.ndarray) -> str | None:
        if np.any(np.diff(numbers) <= 0):
            return "its rows are not in order of `_seq`"
        for entry in listed.entries:
            begin = np.searchsorted(numbers, entry.first_seq)
            rows = numbers[begin : np.searchsorted(numbers, entry.last_seq, side="right")]
            if len(rows) != entry.rows or (rows[0], rows[-1]) != (entry.first_seq, entry.last_seq):
                return (
                    f"it has {len(rows):,} rows from `_seq` {entry.first_seq} to {entry.last_seq}, not "
                    f"{entry.rows:,} of which these are the first and the last"
                )
        # The first commits of a compacted file may have been removed, or been read before compaction made it,
        # and the last ones may be new.
        count = sum(entry.rows for entry in listed.entries)
        is_whole = commits_in(path) == (listed.first_commit, listed.last_commit)
        if len(numbers) != count and is_whole and self._is_listed_so(path, listed):
            return f"it has {len(numbers):,} rows, of which {count:,} are listed"
        return None

    def _is_listed_so(self, path: str, listed: _Listed) -> bool:
        """Whether the log still lists the file so: compaction may have replaced segments meanwhile."""
        commits = CommitLog(self._out).range(listed.first_commit, listed.last_commit)
        try:
            return listed.entries == [
                entry for commit in commits for entry in commit.files if entry.path == path
            ]
        except CommitLogError:
            return not self._was_removed(listed.first_commit)
