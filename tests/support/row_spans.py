"""Spans of a binlog in which only rows of a table change, with its rows by SELECT at both ends.

A recorder executes statements in a session. Before and after each that may define tables, another session
reads all tables; between two of these moments a table has the same definition, so whatever a reader of the
binlog says of its rows in between has to lead from the first rows to the last.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Self

import pymysql

from engine.binlog.position import BinlogPosition
from engine.schema.changes import TableName
from tests.servers import Server
from tests.servers.server import OWN_DATABASES
from tests.support import same_rows
from tests.support.engine_run import end_of_binlog
from tests.support.same_rows import Family, quoted

_GEOMETRIES = """
    geometry point linestring polygon multipoint multilinestring multipolygon geometrycollection
    geomcollection
"""
_FAMILY_TYPES: Mapping[Family, str] = {
    same_rows.INTEGER: "tinyint smallint mediumint int bigint year",
    same_rows.BITS: "bit",
    Family(from_server=Decimal, from_spark=Decimal): "decimal",
    # Shown as it is, DOUBLE(8,2) is rounded. The server's sum has no negative zero.
    replace(same_rows.FLOAT, from_spark=lambda value: value + 0.0): "float double",
    same_rows.BINARY: "binary varbinary tinyblob blob mediumblob longblob",
    same_rows.GEOMETRY: _GEOMETRIES,
    same_rows.VECTOR: "vector",
}
_FAMILIES = {name: family for family, names in _FAMILY_TYPES.items() for name in names.split()}
"""DATA_TYPE of information_schema → how its values are compared; all others as text."""
_NOT_READ = frozenset({"BLACKHOLE", "FEDERATED"})
"""Storage engines whose tables do not have the rows that were written to them."""
_MERGE = "MRG_MYISAM"
"""A storage engine whose tables have the rows of others, and write to them."""
_ROW_STATEMENTS = """
    INSERT UPDATE DELETE REPLACE SET BEGIN START COMMIT ROLLBACK SAVEPOINT RELEASE DO USE
"""
_CASCADES_ARE_LOGGED = frozenset({"mysql-9.7"})
_LOST_CONNECTION = frozenset({2006, 2013})


@dataclass(frozen=True)
class Column:
    """A column of a table, and how its values are compared."""

    name: str
    family: Family


@dataclass(frozen=True)
class TableRows:
    """What SELECT gives of a table."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...] | None
    """Comparable values by column; None of a table with too many."""


@dataclass(frozen=True)
class Span:
    """A table between two moments."""

    table: TableName
    statement: str
    """After which it begins."""
    start: BinlogPosition
    end: BinlogPosition
    before: TableRows
    after: TableRows

    def difference(self, changes: Iterable[Mapping[str, Any]]) -> str | None:
        """Why change rows, in order, do not lead from the first rows to the last; None if they do."""
        if self.before.rows is None or self.after.rows is None:
            return None
        within = [row for row in changes if self.start <= _position(row) < self.end]
        names = [column.name for column in self.after.columns]
        for row in within:
            own = [name for name in row if name not in METADATA]
            # A statement that empties a table has a row with the columns of before.
            if own != names and row["_change_type"] != "truncate":
                return f"the columns are {own}, not {names}"
        absent = {name for row in within for name in row["_absent_columns"] or ()}
        places = [place for place, name in enumerate(names) if name not in absent]
        state = Counter(_comparable(row, places) for row in self.before.rows)
        for row in within:
            if row["_change_type"] == "truncate":
                state.clear()
                continue
            values = [_value(column.family, row[column.name]) for column in self.after.columns]
            state[_comparable(values, places)] += _WEIGHTS[row["_change_type"]]
        state.subtract(_comparable(row, places) for row in self.after.rows)
        differing = {row: number for row, number in state.items() if number}
        return f"{len(within)} changes, too many (or too few) of {differing}" if differing else None


METADATA = frozenset(
    ("_change_type", "_commit_timestamp", "_seq", "_gtid", "_file", "_pos", "_absent_columns")
)
_WEIGHTS = {"insert": 1, "update_postimage": 1, "update_preimage": -1, "delete": -1}


class SpanRecorder:
    """Executes statements in a session of the server's database `database`.

    Args:
        most_rows: tables with more are not compared.
    """

    def __init__(self, server: Server, database: str, settings: Iterable[str], *, most_rows: int) -> None:
        self._server = server
        self._most_rows = most_rows
        self._session = server.connect(database=database, use_unicode=False, conv={})
        settings_of_reader = "SET sql_mode = '', time_zone = '+00:00'"
        self._reader = server.connect(use_unicode=False, conv={}, init_command=settings_of_reader)
        for setting in settings:
            self._execute(setting.encode())
        self._begun: dict[TableName, tuple[str, BinlogPosition, TableRows]] = {}
        self._tables: dict[TableName, TableRows] = {}
        self._names: set[TableName] = set()
        """Of all tables, those that are not read included."""
        self._position = BinlogPosition(*end_of_binlog(server))
        self._rows_changed = True
        self.spans: list[Span] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._session.close()
        self._reader.close()

    def execute(self, kind: str, statement: bytes) -> None:
        """Execute a statement; `kind`: its first word. An error is ignored.

        Raises `RuntimeError` if the server died of it.
        """
        if kind in _ROW_STATEMENTS.split():
            self._execute(statement)
            self._rows_changed = True
            return
        self._look()
        tables, names, position = self._tables, self._names, self._position
        self._execute(statement)
        self._rows_changed = True
        self._look()
        if self._position == position:
            return
        self._end_spans(tables, position)
        text = statement.decode("utf-8", "replace")
        for name, rows in self._tables.items():
            if kind == "CREATE" and name not in names:
                # With those of CREATE TABLE … SELECT, which the statement's own events are.
                self._begun[name] = text, position, TableRows(rows.columns, ())
            else:
                self._begun[name] = text, self._position, rows

    def commit(self) -> None:
        """End the session's transaction."""
        self._execute(b"COMMIT")

    def finish(self) -> list[Span]:
        """All spans, those that have not ended included."""
        self._look()
        self._end_spans(self._tables, self._position)
        return self.spans

    def _end_spans(self, tables: Mapping[TableName, TableRows], position: BinlogPosition) -> None:
        for name, (statement, start, before) in self._begun.items():
            if name in tables:
                self.spans.append(Span(name, statement, start, position, before, tables[name]))
        self._begun = {}

    def _execute(self, statement: bytes) -> None:
        try:
            with self._session.cursor() as cursor:
                cursor.execute(statement)
        except pymysql.err.MySQLError as error:
            if error.args[0] in _LOST_CONNECTION or not self._server.running:
                raise RuntimeError(f"the server ended the session after {statement!r}") from error

    def _look(self) -> None:
        """Read all tables, if they may have changed since the last time."""
        if self._rows_changed:
            self.commit()
            self._tables = dict(self._read_tables())
            self._position = BinlogPosition(*end_of_binlog(self._server))
            self._rows_changed = False

    def _read_tables(self) -> Iterator[tuple[TableName, TableRows]]:
        columns: defaultdict[TableName, list[Column]] = defaultdict(list)
        for database, table, name, data_type in self._query(_COLUMNS):
            family = _FAMILIES.get(data_type.lower(), same_rows.TEXT)
            columns[TableName(database, table)].append(Column(name, family))
        cascading = set() if self._server.flavor in _CASCADES_ARE_LOGGED else set(self._query(_CASCADES))
        every = self._query(_TABLES)
        self._names = {TableName(database, table) for database, table, *_ in every}
        if any((engine or "").upper() == _MERGE for *_, engine in every):
            return
        for database, table, table_type, engine in every:
            key = TableName(database, table)
            unreadable = table_type != "BASE TABLE" or (engine or "BLACKHOLE").upper() in _NOT_READ
            if unreadable or (database, table) in cascading or not columns[key]:
                continue
            # Some tables cannot be opened.
            with suppress(pymysql.err.MySQLError):
                yield key, self._read(key, tuple(columns[key]))

    def _read(self, name: TableName, columns: tuple[Column, ...]) -> TableRows:
        wanted = ", ".join(column.family.select.format(column=quoted(column.name)) for column in columns)
        table = f"{quoted(name.database)}.{quoted(name.table)}"
        found = self._query(f"SELECT {wanted} FROM {table} LIMIT {self._most_rows + 1}")
        if len(found) > self._most_rows:
            return TableRows(columns, None)
        rows = (
            tuple(
                None if cell is None else column.family.from_server(cell)
                for column, cell in zip(columns, row, strict=True)
            )
            for row in found
        )
        return TableRows(columns, tuple(rows))

    def _query(self, sql: str) -> list[tuple[Any, ...]]:
        """All rows, in text; what is not valid as text has replacement characters, as the engine has."""
        with self._reader.cursor() as cursor:
            cursor.execute(sql)
            return [
                tuple(None if cell is None else cell.decode("utf-8", "replace") for cell in row)
                for row in cursor.fetchall()
            ]


_OWN = ", ".join(f"'{database}'" for database in sorted(OWN_DATABASES))
_TABLES = (
    "SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE, ENGINE FROM information_schema.TABLES "
    f"WHERE TABLE_SCHEMA NOT IN ({_OWN})"
)
_COLUMNS = (
    "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, DATA_TYPE FROM information_schema.COLUMNS "
    f"WHERE TABLE_SCHEMA NOT IN ({_OWN}) ORDER BY TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION"
)
_CASCADES = (
    "SELECT CONSTRAINT_SCHEMA, TABLE_NAME FROM information_schema.REFERENTIAL_CONSTRAINTS "
    "WHERE DELETE_RULE IN ('CASCADE', 'SET NULL') OR UPDATE_RULE IN ('CASCADE', 'SET NULL')"
)
"""Tables whose rows change with those of others, which a storage engine does by itself."""


def _position(row: Mapping[str, Any]) -> BinlogPosition:
    return BinlogPosition(row["_file"], row["_pos"])


def _value(family: Family, value: Any) -> Any:
    return None if value is None else family.from_spark(value)


def _comparable(row: Sequence[Any], places: Sequence[int]) -> str:
    return repr([row[place] for place in places])
