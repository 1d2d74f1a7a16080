"""The records of the commit log: a commit's files, schema versions and source position, and summaries.

Plain frozen dataclasses, each of which becomes one line of JSON (`log_json`). A commit lists rows of a
file by their `_seq`: all rows of a file that was written for it, or a part of one that compaction has made.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field, replace
from typing import TYPE_CHECKING, Self

from engine.binlog.position import SourcePosition
from engine.dataclass import dataclass
from engine.output.data_file_names import is_path_of
from engine.output.log_json import Malformed, from_line, to_line
from engine.output.prepared import PreparedTransaction, UndoneTransaction
from engine.output.schema_state import CommittedChange, LoggedChange, SchemaState
from engine.output.snapshot_progress import NO_CHANGE, NO_SNAPSHOTS, SnapshotChange, SnapshotState

if TYPE_CHECKING:
    import pyarrow as pa

SchemaKey = tuple[str, str, int]
"""Database, table, schema version."""
TableKey = tuple[str, str]
"""Database, table; both empty for the events feed."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """A commit's rows of one table and schema version, in one Arrow IPC file."""

    path: str
    """Relative to the output folder; of a file, or of a part of a pack (`engine.output.data_file_names`)."""
    database: str
    table: str
    schema_version: int
    rows: int
    bytes: int
    """The size of the file, or part, that was written for the commit; compaction does not change it."""
    first_seq: int
    """Smallest and largest `_seq`; rows of the file outside of this range belong to other commits."""
    last_seq: int
    min_timestamp_us: int
    """Smallest and largest `_commit_timestamp`, µs since the epoch."""
    max_timestamp_us: int
    checksum: str | None = None
    """Of the whole file or part (`engine.output.checksum`); None if it was not taken (older, large files)."""


def joined(entries: Iterable[DataFile]) -> list[DataFile]:
    """One entry for all that are about the same file, where the first of them was.

    They must be in order of `_seq`, and none in between be missing.
    """
    files: dict[str, DataFile] = {}
    for entry in entries:
        first = files.setdefault(entry.path, entry)
        if first is not entry:
            files[entry.path] = replace(
                first,
                rows=first.rows + entry.rows,
                bytes=first.bytes + entry.bytes,
                last_seq=entry.last_seq,
                min_timestamp_us=min(first.min_timestamp_us, entry.min_timestamp_us),
                max_timestamp_us=max(first.max_timestamp_us, entry.max_timestamp_us),
            )
    return list(files.values())


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


NOWHERE = SourcePosition("", 0, None, "", "mysql")


@dataclass(frozen=True, slots=True)
class Commit:
    """One step of the output, committed whole or not at all. Ends at a transaction boundary."""

    version: int
    """0, 1, 2… without gaps."""
    time_us: int
    """When it was committed, µs since the epoch, by this machine's clock; not before the previous commit."""
    files: tuple[DataFile, ...]
    schemas: tuple[SchemaVersion, ...]
    """Only those that are new in this commit."""
    position: SourcePosition
    """Where the source continues; `NOWHERE` in a claim before the first other commit."""
    last_seq: int
    """The largest `_seq` so far; 0 before the first."""
    source_timestamp: int
    """Server clock of the last event, seconds since the epoch; 0 if not known."""
    counters: dict[str, int]
    """What was counted in this commit, such as invalid dates."""
    schema_changes: tuple[LoggedChange, ...] = ()
    """In order."""
    snapshots: SnapshotChange = NO_CHANGE
    """What is new of snapshots."""
    shard: str = ""
    """The part of the server's tables that the output has, such as `2/4`; empty for all of them."""
    epoch: int = 0
    """The number of the writer's claim, from 1 on; 0 for an output with a lock."""
    writer: str = ""
    """In a claim: the writer's host, process and an id of its own."""
    prepared: tuple[PreparedTransaction, ...] = ()
    """All XA transactions that are prepared after it."""
    undone: tuple[UndoneTransaction, ...] = ()
    """Those that were rolled back and are undone since the commit before."""

    def to_json(self) -> bytes:
        """The commit as one line, without the line break."""
        sparse = "schema_changes", "snapshots", "shard", "epoch", "writer", "prepared", "undone"
        return to_line(self, sparse_fields=sparse)

    @classmethod
    def from_json(cls, line: bytes) -> Self:
        """The commit of a line that `to_json` made. Raises `Malformed`."""
        commit = from_line(cls, line)
        for file in commit.files:
            _check_path(file)
        return commit

    def in_places_of(self, other: Self) -> Self:
        """The commit with its files' paths and checksums as in `other`: compaction changes nothing else."""
        if len(self.files) != len(other.files):
            return self
        files = tuple(
            replace(file, path=theirs.path, checksum=theirs.checksum)
            for file, theirs in zip(self.files, other.files, strict=True)
        )
        return replace(self, files=files)

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
    snapshots: SnapshotState = NO_SNAPSHOTS

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
        self.snapshots = self.snapshots.after(commit.snapshots)

    def copy(self) -> Summary:
        """A copy to which later commits can be added."""
        return Summary(
            dict(self.schemas),
            dict(self.totals),
            dict(self.counters),
            self.schema_state.copy(),
            self.snapshots,
        )

    def to_json(self) -> bytes:
        """The summary as one line, without the line break. Raises `Malformed` if its state is damaged."""
        tables = [
            _TableLine(database, table, totals.files, totals.rows, totals.bytes)
            for (database, table), totals in self.totals.items()
        ]
        summary = _SummaryLine(list(self.schemas.values()), tables, self.counters, self.snapshots)
        line = to_line(summary, sparse_fields=("snapshots",))
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
            summary.snapshots,
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
    snapshots: SnapshotState = NO_SNAPSHOTS


def _check_path(file: DataFile) -> None:
    if not is_path_of(file.path, file.database, file.table):
        raise Malformed(f"`{file.path}` is not a data file of {file.database}.{file.table}")
