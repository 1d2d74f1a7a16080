"""The records of the commit log: a commit's files, schema versions and source position, and summaries.

Plain frozen dataclasses, each of which becomes one line of JSON (`log_json`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from engine.binlog.position import SourcePosition
from engine.output.files import table_folder
from engine.output.log_json import Malformed, from_line, to_line
from engine.output.schema_state import CommittedChange, LoggedChange, SchemaState

if TYPE_CHECKING:
    import pyarrow as pa

SchemaKey = tuple[str, str, int]
"""Database, table, schema version."""
TableKey = tuple[str, str]
"""Database, table; both empty for the events feed."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """One Arrow IPC file of one table and schema version."""

    path: str
    """Relative to the output folder."""
    database: str
    table: str
    schema_version: int
    rows: int
    bytes: int
    first_seq: int
    last_seq: int
    min_timestamp_us: int
    """Smallest and largest `_commit_timestamp`, µs since the epoch."""
    max_timestamp_us: int


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """A table's schema from some commit on; versions count from 1 per table."""

    database: str
    table: str
    schema_version: int
    arrow: bytes
    """The Arrow schema as a serialised IPC message."""

    @property
    def key(self) -> SchemaKey:
        """By which data files refer to it."""
        return self.database, self.table, self.schema_version

    def arrow_schema(self) -> pa.Schema:
        """The schema itself. Raises `Malformed`."""
        import pyarrow as pa  # Here, because the supervisor reads commits too and has no need of Arrow.

        try:
            return pa.ipc.read_schema(pa.py_buffer(self.arrow))
        except (pa.ArrowException, OSError) as error:
            reason = f"schema {self.schema_version} of {self.database}.{self.table} cannot be read: {error}"
            raise Malformed(reason) from error


@dataclass(frozen=True, slots=True)
class Commit:
    """One step of the output, committed whole or not at all. Ends at a transaction boundary."""

    version: int
    """0, 1, 2… without gaps."""
    time_us: int
    """When it was committed, µs since the epoch, by this machine's clock."""
    files: tuple[DataFile, ...]
    schemas: tuple[SchemaVersion, ...]
    """Only those that are new in this commit."""
    position: SourcePosition
    last_seq: int
    """The largest `_seq` so far; 0 before the first."""
    source_timestamp: int
    """Server clock of the last event, seconds since the epoch; 0 if not known."""
    counters: dict[str, int]
    """What was counted in this commit, such as invalid dates."""
    schema_changes: tuple[LoggedChange, ...] = ()
    """In order."""

    def to_json(self) -> bytes:
        """The commit as one line, without the line break."""
        return to_line(self, sparse_field="schema_changes")

    @classmethod
    def from_json(cls, line: bytes) -> Self:
        """The commit of a line that `to_json` made. Raises `Malformed`."""
        commit = from_line(cls, line)
        for file in commit.files:
            _check_path(file)
        return commit

    def committed_changes(self) -> list[CommittedChange]:
        """The schema changes with the commit's number and time."""
        return [CommittedChange(self.version, self.time_us, c.seq, c.change) for c in self.schema_changes]


@dataclass(frozen=True, slots=True)
class TableTotals:
    """What all commits so far contain of one table."""

    files: int = 0
    rows: int = 0
    bytes: int = 0

    def less(self, removed: TableTotals) -> tuple[int, int, int]:
        """Files, rows and bytes without the `removed` ones."""
        return self.files - removed.files, self.rows - removed.rows, self.bytes - removed.bytes


@dataclass(slots=True)
class Summary:
    """The sum of all commits from the first to some other one; each segment of the log begins with one."""

    schemas: dict[SchemaKey, SchemaVersion] = field(default_factory=dict)
    totals: dict[TableKey, TableTotals] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)
    schema_state: SchemaState = field(default_factory=SchemaState)

    def add(self, commit: Commit) -> None:
        """Add the next commit."""
        self.schemas.update((schema.key, schema) for schema in commit.schemas)
        for file in commit.files:
            table = file.database, file.table
            so_far = self.totals.get(table, TableTotals())
            self.totals[table] = TableTotals(
                so_far.files + 1, so_far.rows + file.rows, so_far.bytes + file.bytes
            )
        for name, amount in commit.counters.items():
            self.counters[name] = self.counters.get(name, 0) + amount
        self.schema_state.add(commit.committed_changes())

    def copy(self) -> Summary:
        """A copy to which later commits can be added."""
        return Summary(dict(self.schemas), dict(self.totals), dict(self.counters), self.schema_state.copy())

    def to_json(self) -> bytes:
        """The summary as one line, without the line break. Raises `Malformed` if its state is damaged."""
        tables = [
            _TableLine(database, table, totals.files, totals.rows, totals.bytes)
            for (database, table), totals in self.totals.items()
        ]
        line = to_line(_SummaryLine(list(self.schemas.values()), tables, self.counters))
        return self.schema_state.appended_to(line)

    @classmethod
    def from_json(cls, line: bytes) -> Self:
        """The summary of a line that `to_json` made. Raises `Malformed`.

        Damage in the schema state is found when it is first used.
        """
        line, schema_state = SchemaState.split(line)
        summary = from_line(_SummaryLine, line)
        return cls(
            {schema.key: schema for schema in summary.schemas},
            {(t.database, t.table): TableTotals(t.files, t.rows, t.bytes) for t in summary.tables},
            summary.counters,
            schema_state,
        )


@dataclass(frozen=True, slots=True)
class _TableLine:
    """`TableTotals` with the table's name, as a summary's JSON has them."""

    database: str
    table: str
    files: int = 0
    rows: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class _SummaryLine:
    """A summary as its JSON has it, where the schema state follows."""

    schemas: list[SchemaVersion]
    tables: list[_TableLine]
    counters: dict[str, int]


_FILE_NAME = re.compile(r"\d{20}-\d+\.arrow")


def _check_path(file: DataFile) -> None:
    folder, _, name = file.path.rpartition("/")
    if folder != table_folder(file.database, file.table) or not _FILE_NAME.fullmatch(name):
        raise Malformed(f"`{file.path}` is not a data file of {file.database}.{file.table}")
