"""The records of the commit log: a commit's files, schema versions and source position, and summaries.

Plain frozen dataclasses and their JSON, whose keys are the field names. What is read from disk is checked
field by field (`engine.records`), so that a damaged log gives an error and never a wrong file name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, TypeVar

from engine.binlog.position import SourcePosition
from engine.output.files import table_folder
from engine.records import Misfit, from_json, to_json

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = 1
"""Version of the log's layout; a reader refuses any other."""

SchemaKey = tuple[str, str, int]
"""Database, table, schema version."""
TableKey = tuple[str, str]
"""Database, table; both empty for the events feed."""


class Malformed(ValueError):
    """JSON that is not a valid log record; says what is wrong with it, not where it is."""


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

    def to_json(self) -> bytes:
        """The commit as one line, without the line break."""
        return _line(self)

    @classmethod
    def from_json(cls, line: bytes) -> Self:
        """The commit of a line that `to_json` made. Raises `Malformed`."""
        commit = _record(cls, line)
        for file in commit.files:
            _check_path(file)
        return commit


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

    def copy(self) -> Summary:
        """A copy to which later commits can be added."""
        return Summary(dict(self.schemas), dict(self.totals), dict(self.counters))

    def to_json(self) -> bytes:
        """The summary as one line, without the line break."""
        tables = [
            _TableLine(database, table, totals.files, totals.rows, totals.bytes)
            for (database, table), totals in self.totals.items()
        ]
        return _line(_SummaryLine(list(self.schemas.values()), tables, self.counters))

    @classmethod
    def from_json(cls, line: bytes) -> Self:
        """The summary of a line that `to_json` made. Raises `Malformed`."""
        summary = _record(_SummaryLine, line)
        return cls(
            {schema.key: schema for schema in summary.schemas},
            {(t.database, t.table): TableTotals(t.files, t.rows, t.bytes) for t in summary.tables},
            summary.counters,
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
    """A summary as its JSON has it."""

    schemas: list[SchemaVersion]
    tables: list[_TableLine]
    counters: dict[str, int]


_Record = TypeVar("_Record")

_FILE_NAME = re.compile(r"\d{20}-\d+\.arrow")


@dataclass(frozen=True, slots=True)
class _Format:
    format: Any = None


def _line(record: Commit | _SummaryLine) -> bytes:
    return to_json(record, {"format": FORMAT})


def _record(record: type[_Record], line: bytes) -> _Record:
    try:
        written = from_json(_Format, line).format
        if written != FORMAT:
            raise Malformed(
                f"its format is {written!r} and this version of binlog-engine reads format {FORMAT}; "
                "use the version that wrote it, or a newer one"
            )
        return from_json(record, line)
    except Misfit as error:
        raise Malformed(str(error)) from error


def _check_path(file: DataFile) -> None:
    folder, _, name = file.path.rpartition("/")
    if folder != table_folder(file.database, file.table) or not _FILE_NAME.fullmatch(name):
        raise Malformed(f"`{file.path}` is not a data file of {file.database}.{file.table}")
