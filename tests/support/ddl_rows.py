"""What DDL does to rows: predicted from the model's schema changes, and compared with the server's rows.

A statement that is not in the binlog as rows may empty a table, give it another name, rename columns and fill
new ones. Where the model says that a table was rewritten, nothing is predicted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

import pymysql

from engine.binlog.table_definition import ColumnDefinition
from engine.schema.changes import SchemaChange, TableChange, TableName
from tests.servers import Server

_MOST_ROWS = 50
_NUMBERS = frozenset(
    ["tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "float", "double", "year"]
)
_TIMES = frozenset(["time", "datetime", "timestamp"])
_SKIPPED = re.compile(r"DB_ROW_HASH_|row_start\Z|row_end\Z|rs\Z|re\Z")

Row = dict[str, str | None]


@dataclass
class Contents:
    """Rows of a table, by names of columns as texts in a form that is equal for equal values."""

    rows: list[Row]


class Rows:
    """The rows of all tables as they should be."""

    def __init__(self, server: Server) -> None:
        self._connection = server.connect(conv={}, use_unicode=False)
        with self._connection.cursor() as cursor:
            cursor.execute("SET sql_mode = ''")
        self._tables: dict[TableName, list[Row]] = {}
        self.compared = 0
        """Tables with rows that were compared after a statement."""

    def close(self) -> None:
        """Close the connection to the server."""
        self._connection.close()

    def written(self, name: TableName, columns: Sequence[ColumnDefinition] | None) -> None:
        """The table's rows may have changed in a way that the binlog or the model shows."""
        rows = None if columns is None else self._read(name, columns)
        if rows is None:
            self._tables.pop(name, None)
        else:
            self._tables[name] = rows

    def changed(self, change: SchemaChange) -> None:
        """Predict what the change does to rows."""
        before = dict(self._tables)
        for emptied in change.emptied:
            for name in list(self._tables):
                if name == emptied or (name.database == emptied.database and not emptied.table):
                    self._tables[name] = []
        for name in change.rewritten:
            self._tables.pop(name, None)
        rewritten = set(change.rewritten)
        for table in change.tables:
            source = table.renamed_from or table.name
            if source in rewritten or table.name in rewritten or table.columns is None:
                self._tables.pop(table.name, None)
            elif source in before and table.previous_names is not None:
                rows = self._tables.get(source, []) if table.renamed_from is None else before[source]
                self._tables[table.name] = [_altered(row, table) for row in rows]
            elif table.renamed_from is not None:
                self._tables.pop(table.name, None)
                if source in before:
                    self._tables[table.name] = before[source]

    def difference(self, name: TableName, columns: Sequence[ColumnDefinition]) -> str | None:
        """How the server's rows differ from the predicted ones, in words; None if they do not."""
        predicted = self._tables.get(name)
        found = self._read(name, columns)
        if found is None:
            self._tables.pop(name, None)
            return None
        self._tables[name] = found
        if predicted is None:
            return None
        self.compared += bool(found or predicted)
        generated = {column.name for column in columns if column.generated is not None}
        ours, theirs = (_comparable(rows, columns, generated) for rows in (predicted, found))
        if ours == theirs:
            return None
        missing, unexpected = list((theirs - ours).elements())[:1], list((ours - theirs).elements())[:1]
        return f"rows {unexpected} are predicted, the server has {missing}"

    def _read(self, name: TableName, columns: Sequence[ColumnDefinition]) -> list[Row] | None:
        shown = [column for column in columns if not _SKIPPED.match(column.name)]
        if not shown:
            return None
        listed = ", ".join(_quoted(column.name) for column in shown)
        table = f"{_quoted(name.database)}.{_quoted(name.table)}"
        try:
            with self._connection.cursor() as cursor:
                cursor.execute(f"SELECT {listed} FROM {table} LIMIT {_MOST_ROWS + 1}")
                rows = cursor.fetchall()
        except pymysql.err.MySQLError:
            return None
        if len(rows) > _MOST_ROWS:
            return None
        names = [column.name for column in shown]
        return [dict(zip(names, map(_text, row), strict=True)) for row in rows]


def _altered(row: Row, table: TableChange) -> Row:
    """The row after the change."""
    columns, before = table.columns or (), table.previous_names or ()
    filled = table.filled or (None,) * len(columns)
    return {
        column.name: row.get(old) if old is not None else value
        for column, old, value in zip(columns, before, filled, strict=True)
    }


def _comparable(
    rows: Iterable[Row], columns: Sequence[ColumnDefinition], generated: set[str]
) -> Counter[tuple[str | None, ...]]:
    shown = [column for column in columns if column.name not in generated and not _SKIPPED.match(column.name)]
    return Counter(tuple(_normal(row.get(column.name), column) for column in shown) for row in rows)


def _normal(value: str | None, column: ColumnDefinition) -> str | None:
    """One text for all texts of the value, which depend on the column's width, digits and ZEROFILL."""
    if value is None:
        return None
    if column.data_type in _NUMBERS:
        try:
            number = Decimal(value)
        except InvalidOperation:
            return value
        return f"{number:.6g}" if column.data_type in ("float", "double") else str(number.normalize() + 0)
    if column.data_type in _TIMES and "." in value:
        return value.rstrip("0").rstrip(".")
    if column.data_type == "bit":
        return str(int.from_bytes(value.encode("latin1"), "big"))
    return value


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("utf-8", "surrogateescape")


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
