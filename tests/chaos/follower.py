"""Reads an output while it is written, and checks each commit against all that came before it.

What must hold: numbers without a double, and without a gap but where a snapshot has the rows; rows that fit
the tables as they stood; whole transactions; and commits that never change once they were seen.
"""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from collections.abc import Hashable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import pyarrow as pa

from engine.errors import EngineError
from engine.output.commit import Commit
from engine.output.commit_log import CommitLog
from engine.output.data_files import DataFiles, FileRows
from engine.output.schema_state import rewritten_names
from engine.schema.changes import SchemaChange, TableName
from tests.chaos.table_state import Row, TableState
from tests.chaos.violation import Violation
from tests.chaos.workload import BEGUN, DATABASE, LEDGER, TABLES
from tests.support.engine_run import wait_until
from tests.support.worker import Worker

Change = tuple[int, str, str, Row]
"""`_seq`, table, `_change_type` and the compared columns."""
_POLL_SECONDS = 0.02
_LONGEST_DELAY_SECONDS = 900.0
"""It reads row by row: on a busy machine the engine is faster."""
_CHECKED_AGAIN = 20
"""Of so many commits, one is read again at the end."""


class Follower(Worker):
    """Reads each commit as soon as it is there; `check` raises what it found."""

    def __init__(self, out: Path) -> None:
        super().__init__()
        self._out = out
        self._log = CommitLog(out)
        self._files = DataFiles(out)
        self._digests: list[str] = []
        self._last_seq = 0
        self._tables = {name: TableState(table, lacks_rows=True) for name, table in TABLES.items()}
        self._conditions: dict[str, str | None] = {}
        """Of the requests for snapshots, by their ids."""
        self.rows = 0
        self.snapshots: Counter[str] = Counter()
        """How those of tables ended."""

    @property
    def commits(self) -> int:
        """How many commits it has read."""
        return len(self._digests)

    def unknown_tables(self) -> list[str]:
        """Those of which not all rows are known after the last commit."""
        is_there = lambda: self.commits > self._log.latest_version()  # noqa: E731
        wait_until(is_there, "reading of all commits", _LONGEST_DELAY_SECONDS, check=self.check)
        return [name for name, state in self._tables.items() if not state.is_known]

    def finish(self) -> dict[str, Counter[Row]]:
        """Read what is left, and some commits a second time; returns the rows of each table."""
        self.end()
        self.check()
        self._read_new()
        for version in range(0, self.commits, _CHECKED_AGAIN):
            commit = self._log.read(version)
            self._require(
                _digest(commit, self._changes_of(commit)) == self._digests[version],
                f"commit {version} has changed",
            )
        return {name: state.rows() for name, state in self._tables.items()}

    def _work(self) -> None:
        while not self._ends.wait(_POLL_SECONDS):
            self._read_new()

    def _read_new(self) -> None:
        last = self._log.latest_version()
        try:
            for commit in self._log.range(self.commits, last):
                changes = self._changes_of(commit)
                self._apply(commit, changes)
                self._digests.append(_digest(commit, changes))
        except (EngineError, OSError, pa.ArrowException) as error:
            raise Violation(f"commit {self.commits} cannot be read: {error}") from error

    def _changes_of(self, commit: Commit) -> list[Change]:
        """All rows, by `_seq`."""
        changes: list[Change] = []
        for entry in commit.files:
            columns = TABLES[entry.table].columns if entry.database == DATABASE else ("_pos",)
            for batch in self._files.batches(FileRows.of(entry)):
                numbers = batch.column("_seq").to_pylist()
                kinds = batch.column("_change_type").to_pylist() if entry.table else [""] * len(numbers)
                cells = zip(*(batch.column(name).to_pylist() for name in columns), strict=True)
                changes += zip(numbers, [entry.table] * len(numbers), kinds, cells, strict=True)
        return sorted(changes, key=lambda change: change[0])

    def _apply(self, commit: Commit, changes: Sequence[Change]) -> None:
        begin = self._last_seq + 1
        may_skip = self._may_skip()
        statements = deque(commit.schema_changes)
        for seq, table, kind, row in changes:
            self._require(seq > self._last_seq, f"commit {commit.version} has `_seq` {seq} twice")
            self._last_seq = seq
            while statements and statements[0].seq < seq:
                self._execute(statements.popleft().change)
            if table in self._tables:
                problem = self._tables[table].apply(kind, row)
                self._require(not problem, f"{table}, _seq {seq}, {kind} {row}: {problem}")
                self.rows += 1
        for logged in statements:
            self._execute(logged.change)
        is_dense = self._last_seq == commit.last_seq and len(changes) == commit.last_seq + 1 - begin
        may_skip = may_skip or self._may_skip()
        self._require(is_dense or may_skip, f"commit {commit.version} has a gap in `_seq` after {begin}")
        self._last_seq = commit.last_seq
        self._end_snapshots(commit)
        if self._tables[BEGUN].is_known and self._tables[LEDGER].is_known:
            self._check_ledger(commit)

    def _may_skip(self) -> bool:
        """Whether changes may be left out, since the view of a table without a key has them."""
        return not all(self._tables[name].is_known for name, table in TABLES.items() if not table.keys)

    def _execute(self, change: SchemaChange) -> None:
        for name in change.emptied:
            if (state := self._of(name)) is not None:
                begin = state.begin_snapshot if change.source == "snapshot" else state.empty
                begin()
        for name in rewritten_names(change):
            if (state := self._of(name)) is not None:
                state.manipulate()

    def _of(self, name: TableName) -> TableState | None:
        return self._tables.get(name.table) if name.database == DATABASE else None

    def _end_snapshots(self, commit: Commit) -> None:
        self._conditions |= {request.id: request.where for request in commit.snapshots.requests}
        for table in commit.snapshots.tables:
            if table.ended:
                self.snapshots[table.reason or table.state] += 1
            state = self._of(table.name)
            if state is not None and table.state == "done" and self._conditions.get(table.request) is None:
                problem = state.end_snapshot()
                self._require(not problem, f"{table.name}, commit {commit.version}: {problem}")

    def _check_ledger(self, commit: Commit) -> None:
        """At a commit every transaction that has begun has ended, and no number is missing."""
        begun, ended = (self._tables[name].keys() for name in (BEGUN, LEDGER))
        self._require(
            begun == ended, f"commit {commit.version} divides a transaction: {sorted(begun ^ ended)[:5]}"
        )
        last: Counter[Hashable] = Counter()
        for client, number in ended:
            assert isinstance(number, int)
            last[client] = max(last[client], number)
        self._require(
            len(ended) == last.total(), f"commit {commit.version} lacks a transaction before its last"
        )

    @staticmethod
    def _require(holds: bool, problem: str) -> None:
        if not holds:
            raise Violation(problem)


def _digest(commit: Commit, changes: Sequence[Change]) -> str:
    """Of the commit and its rows, without what compaction changes: in which files the rows are."""
    files = tuple(replace(file, path="", checksum=None) for file in commit.files)
    facts = asdict(replace(commit, files=files))
    return hashlib.blake2b(repr((facts, changes)).encode(), digest_size=16).hexdigest()
