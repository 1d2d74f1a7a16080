"""What a commit says: the files and schema versions it adds, and the source position after it.

Plain frozen dataclasses and their JSON. The JSON keys are the field names; everything that comes back
from disk is checked field by field, so that a damaged log gives an error and never a wrong file name.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterable
from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Self, TypeVar

from engine.output.files import table_folder

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = 1
"""Version of the log's layout; a reader refuses what it does not know."""

SchemaKey = tuple[str, str, int]
"""Database, table, schema version."""
TableKey = tuple[str, str]
"""Database, table; both empty for the events feed."""


class Malformed(ValueError):
    """JSON that is no valid log record; says what is wrong with it, not where it is."""


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
    """A schema that a table has from some commit on; versions count from 1 per table."""

    database: str
    table: str
    schema_version: int
    arrow: bytes
    """The Arrow schema as a serialised IPC message."""

    @property
    def key(self) -> SchemaKey:
        """What a data file names it by."""
        return self.database, self.table, self.schema_version

    def arrow_schema(self) -> pa.Schema:
        """The schema itself. Raises `Malformed`."""
        import pyarrow as pa  # Not for the supervisor, which reads commits too.

        try:
            return pa.ipc.read_schema(pa.py_buffer(self.arrow))
        except (pa.ArrowException, OSError) as error:
            reason = f"schema {self.schema_version} of {self.database}.{self.table} cannot be read: {error}"
            raise Malformed(reason) from error


@dataclass(frozen=True, slots=True)
class Position:
    """Where the source goes on after a commit."""

    file: str
    """Binlog file name."""
    position: int
    gtid_set: str | None
    """Everything that was executed up to here, in the flavour's own notation; null if not known."""
    server_uuid: str
    """Empty if the source has none."""
    flavor: str
    """`mysql` or `mariadb`."""
    file_created: int = 0
    """Server clock when `file` was begun, seconds since the epoch, by which to know the file again; 0 if not
    known."""


@dataclass(frozen=True, slots=True)
class Commit:
    """One step of the output: all of it is there, or nothing. Ends at a transaction boundary."""

    version: int
    """0, 1, 2… without gaps."""
    time_us: int
    """When it was committed, µs since the epoch, by this machine's clock."""
    files: tuple[DataFile, ...]
    schemas: tuple[SchemaVersion, ...]
    """Only those that are new in this commit."""
    position: Position
    last_seq: int
    """The largest `_seq` given out so far; 0 before the first."""
    source_timestamp: int
    """Server clock of the last event, seconds since the epoch; 0 if not known."""
    counters: dict[str, int] = field(default_factory=dict)
    """What had to be counted in this commit, such as dates that no calendar has."""

    def to_json(self) -> bytes:
        """The commit as one line, without the line break."""
        return _line(
            {
                **_plain(self),
                "files": [_plain(file) for file in self.files],
                "schemas": [_schema_to_json(schema) for schema in self.schemas],
                "position": _plain(self.position),
                "format": FORMAT,
            }
        )

    @classmethod
    def from_json(cls, line: bytes) -> Self:
        """The commit of a line that `to_json` made. Raises `Malformed`."""
        value = _parsed(line)
        commit = _checked(
            cls,
            {
                **value,
                "files": tuple(_file_from_json(file) for file in _list(value, "files")),
                "schemas": tuple(_schema_from_json(schema) for schema in _list(value, "schemas")),
                "position": _checked(Position, value.get("position")),
            },
        )
        _check_counters(commit.counters)
        return commit


@dataclass(frozen=True, slots=True)
class TableTotals:
    """What all commits so far hold of one table."""

    files: int = 0
    rows: int = 0
    bytes: int = 0

    def less(self, removed: TableTotals) -> tuple[int, int, int]:
        """Files, rows and bytes, without those that were `removed`."""
        return self.files - removed.files, self.rows - removed.rows, self.bytes - removed.bytes


@dataclass(slots=True)
class Summary:
    """What a run of commits from the first on adds up to; each segment of the log opens with one."""

    schemas: dict[SchemaKey, SchemaVersion] = field(default_factory=dict)
    totals: dict[TableKey, TableTotals] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)

    def add(self, commit: Commit) -> None:
        """Take in the next commit."""
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
        """One that later commits can be added to."""
        return Summary(dict(self.schemas), dict(self.totals), dict(self.counters))

    def to_json(self) -> bytes:
        """The summary as one line, without the line break."""
        return _line(
            {
                "schemas": [_schema_to_json(schema) for schema in self.schemas.values()],
                "tables": [
                    {"database": database, "table": table, **_plain(totals)}
                    for (database, table), totals in self.totals.items()
                ],
                "counters": self.counters,
                "format": FORMAT,
            }
        )

    @classmethod
    def from_json(cls, line: bytes) -> Self:
        """The summary of a line that `to_json` made. Raises `Malformed`."""
        value = _parsed(line)
        schemas = [_schema_from_json(schema) for schema in _list(value, "schemas")]
        tables = [(_checked(_TableName, table), table) for table in _list(value, "tables")]
        counters: Any = value.get("counters")
        _check_counters(counters)
        return cls(
            {schema.key: schema for schema in schemas},
            {(name.database, name.table): _checked(TableTotals, table) for name, table in tables},
            dict(counters),
        )


@dataclass(frozen=True, slots=True)
class _TableName:
    database: str
    table: str


_Record = TypeVar("_Record")

_ACCEPTED: dict[Any, tuple[type, ...]] = {
    "int": (int,),
    "str": (str,),
    "bytes": (bytes,),
    "str | None": (str, type(None)),
    "dict[str, int]": (dict,),
}
"""Python types of a value that JSON gives, by a field's annotation; other fields are built before."""

_FILE_NAME = re.compile(r"\d{20}-\d+\.arrow")


def _plain(record: Any) -> dict[str, Any]:
    return {f.name: getattr(record, f.name) for f in fields(record)}


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"it is no valid JSON ({error})") from error
    if not isinstance(value, dict):
        raise Malformed("it holds no JSON object")
    if value.get("format") != FORMAT:
        raise Malformed(
            f"its format is {value.get('format')!r} and this version of binlog-engine reads format {FORMAT}; "
            "use the version that wrote it, or a newer one"
        )
    return value


def _list(value: dict[str, Any], name: str) -> Iterable[Any]:
    items = value.get(name)
    if not isinstance(items, list):
        raise Malformed(f"`{name}` is no list")
    return items


def _checked(record: type[_Record], value: Any) -> _Record:
    """A dataclass from a JSON object, each field of its declared type; one with a default may be missing."""
    if not isinstance(value, dict):
        raise Malformed(f"a {record.__name__} is no JSON object")
    declared: Any = fields(record)  # type: ignore[arg-type]
    given = [f for f in declared if f.name in value or f.default is MISSING]
    for f in given:
        if f.name not in value:
            raise Malformed(f"`{f.name}` of a {record.__name__} is missing")
        if f.type in _ACCEPTED and type(value[f.name]) not in _ACCEPTED[f.type]:
            raise Malformed(f"`{f.name}` of a {record.__name__} is no {f.type}")
    return record(**{f.name: value[f.name] for f in given})


def _check_counters(counters: Any) -> None:
    if not isinstance(counters, dict) or not all(type(amount) is int for amount in counters.values()):
        raise Malformed("`counters` are no numbers by name")


def _file_from_json(value: Any) -> DataFile:
    file = _checked(DataFile, value)
    folder, _, name = file.path.rpartition("/")
    if folder != table_folder(file.database, file.table) or not _FILE_NAME.fullmatch(name):
        raise Malformed(f"`{file.path}` is no data file of {file.database}.{file.table}")
    return file


def _schema_to_json(schema: SchemaVersion) -> dict[str, Any]:
    return {**_plain(schema), "arrow": base64.b64encode(schema.arrow).decode()}


def _schema_from_json(value: Any) -> SchemaVersion:
    try:
        arrow = base64.b64decode(value["arrow"], validate=True)
    except (KeyError, TypeError, binascii.Error, ValueError) as error:
        raise Malformed("`arrow` of a SchemaVersion is no base64 text") from error
    return _checked(SchemaVersion, {**value, "arrow": arrow})
