"""Reads an output while it is written, and checks each commit against all that came before it.

What must hold: numbers without gap or double; rows that fit the tables as they stood; whole transactions; and
commits that never change once they were seen.
"""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Self

import pyarrow as pa

from engine.errors import EngineError
from engine.output.commit import Commit
from engine.output.commit_log import CommitLog
from engine.output.data_files import DataFiles, FileRows
from tests.chaos.violation import Violation
from tests.chaos.workload import BEGUN, DATABASE, LEDGER, TABLES, TableSpec

Row = tuple[Hashable, ...]
Change = tuple[int, str, str, Row]
"""`_seq`, table, `_change_type` and the compared columns."""
_POLL_SECONDS = 0.02
_GONE = ("delete", "update_preimage")
_CHECKED_AGAIN = 20
"""Of so many commits, one is read again at the end."""


class Follower(threading.Thread):
    """Reads each commit as soon as it is there; `check` raises what it found."""

    def __init__(self, out: Path) -> None:
        super().__init__(daemon=True)
        self._out = out
        self._log = CommitLog(out)
        self._files = DataFiles(out)
        self._ends = threading.Event()
        self._digests: list[str] = []
        self._last_seq = 0
        self._tables = {name: TableState(table) for name, table in TABLES.items()}
        self._error: BaseException | None = None
        self.rows = 0

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self.join()

    @property
    def commits(self) -> int:
        """How many commits it has read."""
        return len(self._digests)

    def check(self) -> None:
        """Raise the violation that it found, if there is one."""
        if self._error is not None:
            raise self._error

    def finish(self) -> dict[str, Counter[Row]]:
        """Read what is left, and some commits a second time; returns the rows of each table."""
        self._ends.set()
        self.join()
        self.check()
        self._read_new()
        for version in range(0, self.commits, _CHECKED_AGAIN):
            commit = self._log.read(version)
            self._require(
                _digest(commit, self._changes_of(commit)) == self._digests[version],
                f"commit {version} has changed",
            )
        return {name: state.rows() for name, state in self._tables.items()}

    def run(self) -> None:
        try:
            while not self._ends.wait(_POLL_SECONDS):
                self._read_new()
        except BaseException as error:
            self._error = error

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
        numbers = [change[0] for change in changes]
        expected = list(range(self._last_seq + 1, commit.last_seq + 1))
        self._require(numbers == expected, f"commit {commit.version} has a gap or a double in `_seq`")
        self._last_seq = commit.last_seq
        for seq, table, kind, row in changes:
            if table in self._tables:
                problem = self._tables[table].apply(kind, row)
                self._require(not problem, f"{table}, _seq {seq}, {kind} {row}: {problem}")
                self.rows += 1
        self._check_ledger(commit)

    def _check_ledger(self, commit: Commit) -> None:
        """At a commit every transaction that has begun has ended, and no number is missing."""
        begun, ended = (self._tables[name].keys() for name in (BEGUN, LEDGER))
        self._require(
            begun == ended, f"commit {commit.version} divides a transaction: {sorted(begun ^ ended)}"
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


class TableState:
    """The rows of a table, as the changes so far lead to them."""

    def __init__(self, spec: TableSpec) -> None:
        self._places = [spec.columns.index(name) for name in spec.keys]
        self._keyed: dict[Row, Row] = {}
        self._counted: Counter[Row] = Counter()

    def apply(self, kind: str, row: Row) -> str:
        """Take a change; returns why it does not fit, or an empty string."""
        if kind == "truncate":
            self._keyed.clear()
            self._counted.clear()
            return ""
        return self._remove(row) if kind in _GONE else self._add(row)

    def _remove(self, row: Row) -> str:
        if self._places:
            before = self._keyed.pop(self._key(row), None)
            return "" if before == row else f"the row was {before}"
        if not self._counted[row]:
            return "there is no such row"
        self._counted[row] -= 1
        return ""

    def _add(self, row: Row) -> str:
        if not self._places:
            self._counted[row] += 1
            return ""
        if self._key(row) in self._keyed:
            return f"there is {self._keyed[self._key(row)]} already"
        self._keyed[self._key(row)] = row
        return ""

    def _key(self, row: Row) -> Row:
        return tuple(row[place] for place in self._places)

    def keys(self) -> set[Row]:
        return set(self._keyed)

    def rows(self) -> Counter[Row]:
        """Each row with how often it is there."""
        return Counter(self._keyed.values()) if self._places else +self._counted


def _digest(commit: Commit, changes: Sequence[Change]) -> str:
    """Of the commit and its rows, without what compaction changes: in which files the rows are."""
    files = tuple(replace(file, path="", checksum=None) for file in commit.files)
    facts = asdict(replace(commit, files=files))
    return hashlib.blake2b(repr((facts, changes)).encode(), digest_size=16).hexdigest()
