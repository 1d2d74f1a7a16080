"""The rows of all tables of a server by SELECT, as values that can be compared with the engine's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import pymysql

from engine.schema.changes import TableName
from tests.servers import Server
from tests.servers.server import OWN_DATABASES
from tests.support import same_rows
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
_CASCADES_ARE_LOGGED = frozenset({"mysql-9.7"})


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


def comparable(family: Family, value: Any) -> Any:
    """A value of the engine's, as `TableRows` has those of the server."""
    return None if value is None else family.from_spark(value)


class TableReader:
    """Reads the tables of a server.

    Args:
        most_rows: of a table with more, none are read.
    """

    def __init__(self, server: Server, *, most_rows: int) -> None:
        self._cascades_are_logged = server.flavor in _CASCADES_ARE_LOGGED
        self._most_rows = most_rows
        settings = "SET sql_mode = '', time_zone = '+00:00'"
        self._connection = server.connect(use_unicode=False, conv={}, init_command=settings)
        self.names: frozenset[TableName] = frozenset()
        """Of all tables at the last time, those that were not read included."""

    def close(self) -> None:
        """End the session."""
        self._connection.close()

    def read(self) -> dict[TableName, TableRows]:
        """All tables whose rows can be compared."""
        every = self._query(_TABLES)
        self.names = frozenset(TableName(database, table) for database, table, *_ in every)
        if any((engine or "").upper() == _MERGE for *_, engine in every):
            return {}
        columns: defaultdict[TableName, list[Column]] = defaultdict(list)
        for database, table, name, data_type in self._query(_COLUMNS):
            family = _FAMILIES.get(data_type.lower(), same_rows.TEXT)
            columns[TableName(database, table)].append(Column(name, family))
        cascading = set() if self._cascades_are_logged else set(self._query(_CASCADES))
        found = {}
        for database, table, table_type, engine in every:
            key = TableName(database, table)
            unreadable = table_type != "BASE TABLE" or (engine or "BLACKHOLE").upper() in _NOT_READ
            if unreadable or (database, table) in cascading or not columns[key]:
                continue
            # Some tables cannot be opened.
            with suppress(pymysql.err.MySQLError):
                found[key] = self._read(key, tuple(columns[key]))
        return found

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
        with self._connection.cursor() as cursor:
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
