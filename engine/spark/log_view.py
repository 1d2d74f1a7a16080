"""What the commit log says up to one commit, read once for all tables that are asked about.

A view can move on to a later commit; it then reads only the commits in between. Histories, schemas and files
of hundreds of tables so cost one pass over the log.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator
from itertools import chain
from operator import itemgetter
from threading import RLock

import pyarrow as pa

from engine.config.output_place import OutputPlace
from engine.output.commit import Commit, DataFile, SchemaKey, SchemaVersion, TableKey
from engine.output.commit_log import CommitLog
from engine.output.schema_history import table_history
from engine.output.schema_state import CommittedChange
from engine.output.snapshot_progress import TableSnapshot
from engine.schema.changes import TableName


class LogView:
    """The log up to the commit `last`, which the caller has seen. Methods raise `CommitLogError`.

    Several threads may ask at once, but not while it moves on.
    """

    def __init__(self, log: CommitLog, last: int) -> None:
        self._log = log
        self._lock = RLock()
        self._schemas: dict[SchemaKey, pa.Schema] = {}
        self.oldest = log.oldest_version()
        """The oldest commit that the log still has."""
        self._changes = list(log.schema_state_at(self.oldest - 1).changes())
        self.last = self.oldest - 1
        self._move(last, [])

    @property
    def out(self) -> OutputPlace:
        """The output folder."""
        return self._log.out

    def move_to(self, last: int) -> list[Commit]:
        """Go on to a later commit; returns the commits in between."""
        self.oldest = self._log.oldest_version()
        commits = list(self._log.range(self.last + 1, last))
        self._move(last, commits)
        return commits

    def history(self, name: TableName) -> list[CommittedChange]:
        """Every change of a table, under its earlier names, too (`schema_history`)."""
        return table_history(self._changes, name, follow_renames=True)

    def is_defined(self, name: TableName) -> bool:
        """Whether the table has a definition, or had one. Data manipulation also names views."""
        return any(entry.change.tables for entry in self.history(name))

    def has_key(self, name: TableName) -> bool:
        """Whether the table has a primary key, in its last definition that is known."""
        for entry in reversed(self.history(name)):
            for table in entry.change.tables:
                if table.columns is not None:
                    return any(column.primary_key for column in table.columns)
        return False

    def schema(self, key: SchemaKey) -> pa.Schema:
        """A schema version of a table's files."""
        if key not in self._schemas:
            self._schemas[key] = self._versions[key].arrow_schema()
        return self._schemas[key]

    def files(self, names: Collection[TableName], first: int) -> Iterator[tuple[int, DataFile]]:
        """The files of tables from the commit `first` on, in order of `_seq`, each with its commit."""
        with self._lock:
            self._read_from(first)
            lists = [self._files.get((name.database, name.table), []) for name in names]
        later = (files[bisect_left(files, first, key=itemgetter(0)) :] for files in lists)
        return iter(sorted(chain.from_iterable(later), key=lambda found: (found[0], found[1].first_seq)))

    def commit_after(self, seq: int) -> int:
        """The first commit that contains a larger `_seq`, or the one after the last."""
        with self._lock:
            first = self._commits[0].version if self._commits else self.last + 1
            if first > self.oldest and self._log.read(first - 1).last_seq > seq:
                earlier = range(self.oldest, first)
                return self.oldest + bisect_right(earlier, seq, key=lambda n: self._log.read(n).last_seq)
            return first + bisect_right(self._commits, seq, key=lambda commit: commit.last_seq)

    def first_seq(self) -> int:
        """The smallest `_seq` that the log still has, or the one after the last if it has none."""
        if self.oldest == 0:
            return 1
        with self._lock:
            for commit in self._log.range(self.oldest, self.last):
                if commit.files:
                    return min(file.first_seq for file in commit.files)
        return self.last_seq + 1

    def time_us(self, version: int) -> int:
        """When a commit was written, µs since the epoch."""
        with self._lock:
            return self._log.read(version).time_us

    def is_mariadb(self) -> bool:
        """Whether the changes are those of a MariaDB server."""
        with self._lock:
            return self._log.read(self.last).position.flavor == "mariadb"

    def had_rows(self, name: TableName, before: int) -> bool:
        """Whether commits before `before` had rows of a table of this name."""
        with self._lock:
            return (name.database, name.table) in self._log.summary_at(before - 1).totals

    def snapshot(self, name: TableName) -> tuple[TableSnapshot, bool] | None:
        """The latest snapshot of a table, and whether it is one of all rows, as far as that is known."""
        with self._lock:
            state = self._log.summary_at(self.last).snapshots
        conditions = {request.id: request.where for request in state.requests}
        latest = next((table for table in state.tables if table.name == name), None)
        return None if latest is None else (latest, conditions.get(latest.request) is None)

    def was_read(self, name: TableName, begin: int) -> bool:
        """Whether the snapshot of a table that began in the commit `begin` is done."""
        with self._lock:
            self._read_from(begin)
            later = self._commits[bisect_left(self._commits, begin, key=lambda commit: commit.version) :]
        states = [each for commit in later for each in commit.snapshots.tables if each.name == name]
        of_request = (each for each in states if each.request == states[0].request)
        return not states or any(each.state == "done" for each in of_request)

    def _move(self, last: int, commits: list[Commit]) -> None:
        self._changes += self._log.schema_changes(self.last + 1, last)
        self._versions: dict[SchemaKey, SchemaVersion] = self._log.summary_at(last).schemas
        self.last = last
        self.last_seq = self._log.read(last).last_seq
        """The largest `_seq` up to the last commit."""
        self._keep(commits)

    def _read_from(self, first: int) -> None:
        """Have the commits from `first` on at hand."""
        first = max(first, self.oldest)
        if first <= self.last and (not self._commits or self._commits[0].version > first):
            self._keep(list(self._log.range(first, self.last)))

    def _keep(self, commits: list[Commit]) -> None:
        self._commits = commits
        """The last commits: those since the last move, or more if they were asked for."""
        self._files: dict[TableKey, list[tuple[int, DataFile]]] = {}
        for commit in commits:
            for file in commit.files:
                self._files.setdefault((file.database, file.table), []).append((commit.version, file))
