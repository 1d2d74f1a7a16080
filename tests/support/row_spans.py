"""Spans of a binlog in which only rows of a table change, with its rows by SELECT at both ends.

A recorder executes statements in a session. Before and after each that may define tables, another session
reads all tables; between two of these moments a table has the same definition, so whatever a reader of the
binlog says of its rows in between has to lead from the first rows to the last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import pymysql

from engine.binlog.position import BinlogPosition
from engine.output.change_schema import METADATA_NAMES
from engine.schema.changes import TableName
from tests.servers import Server
from tests.support.engine_run import end_of_binlog
from tests.support.selected_tables import TableReader, TableRows, comparable

_ROW_STATEMENTS = """
    INSERT UPDATE DELETE REPLACE SET BEGIN START COMMIT ROLLBACK SAVEPOINT RELEASE DO USE
"""
ROW_STATEMENTS = frozenset(_ROW_STATEMENTS.split())
"""The first words of statements that define no table."""
_WEIGHTS = {"snapshot": 1, "insert": 1, "update_postimage": 1, "update_preimage": -1, "delete": -1}
"""Type of change → how many of its row a table has more."""
_LOST_CONNECTION = frozenset({2006, 2013})


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
        return difference_of_rows(self.before.rows, within, self.after)


def difference_of_rows(
    before: Iterable[Sequence[Any]], changes: Sequence[Mapping[str, Any]], after: TableRows
) -> str | None:
    """Why change rows, in order, do not lead from rows to those that SELECT gives; None if they do."""
    names = [column.name for column in after.columns]
    for row in changes:
        own = [name for name in row if name not in METADATA_NAMES]
        # A statement that empties a table has a row with the columns of before.
        if own != names and row["_change_type"] != "truncate":
            return f"the columns are {own}, not {names}"
    absent = {name for row in changes for name in row["_absent_columns"] or ()}
    places = [place for place, name in enumerate(names) if name not in absent]
    state = Counter(_row_text(row, places) for row in before)
    for row in changes:
        if row["_change_type"] == "truncate":
            state.clear()
            continue
        values = [comparable(column.family, row[column.name]) for column in after.columns]
        state[_row_text(values, places)] += _WEIGHTS[row["_change_type"]]
    state.subtract(_row_text(row, places) for row in after.rows or ())
    differing = {row: number for row, number in state.items() if number}
    return f"{len(changes)} changes, too many (or too few) of {differing}" if differing else None


class SpanRecorder:
    """Executes statements in a session of the server's database `database`.

    Args:
        most_rows: tables with more are not compared.
    """

    def __init__(self, server: Server, database: str, settings: Iterable[str], *, most_rows: int) -> None:
        self._server = server
        self._session = server.connect(database=database, use_unicode=False, conv={})
        self._reader = TableReader(server, most_rows=most_rows)
        for setting in settings:
            self._execute(setting.encode())
        self._begun: dict[TableName, tuple[str, BinlogPosition, TableRows]] = {}
        self._tables: dict[TableName, TableRows] = {}
        self._names: frozenset[TableName] = frozenset()
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
        if kind in ROW_STATEMENTS:
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
            self._tables, self._names = self._reader.read(), self._reader.names
            self._position = BinlogPosition(*end_of_binlog(self._server))
            self._rows_changed = False


def _position(row: Mapping[str, Any]) -> BinlogPosition:
    return BinlogPosition(row["_file"], row["_pos"])


def _row_text(row: Sequence[Any], places: Sequence[int]) -> str:
    return repr([row[place] for place in places])
