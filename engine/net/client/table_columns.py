"""Reads a table's columns from the server's information_schema, for binlogs without complete metadata.

The result has the columns of the binlog's table maps, in their order, including generated and invisible
columns and those that MariaDB hides from information_schema (row versions and hashes of long unique keys,
always last). MySQL's hidden columns of functional indexes are in neither.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache

from engine.binlog.collations import canonical
from engine.binlog.table_definition import COMPRESSED, ColumnDefinition, TableDefinition, unquoted
from engine.net.client.connection import Connection
from engine.net.client.explained import explained
from engine.net.client.hidden_members import with_hidden_members
from engine.net.protocol.resultset import Row
from engine.schema.changes import TableName

Cell = str | None
"""A cell of a result set."""
MemberDoubts = Callable[[TableName, str], object]
"""Is told of a column with ENUM or SET members that may have other characters where their texts have `?`."""

_THE_TABLES = "TABLE_SCHEMA = {database} AND TABLE_NAME {condition}"
_COLUMNS = (
    "SELECT {label}, ORDINAL_POSITION, COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME, COLLATION_NAME, "
    "IS_NULLABLE, EXTRA, COLUMN_DEFAULT, {begins_period} "
    f"FROM information_schema.COLUMNS WHERE {_THE_TABLES}"
)
"""Without an order: with one the server takes half as long again, and sends no row before it has all."""
_BEGINS_PERIOD = "GENERATION_EXPRESSION = 'ROW START'"
"""A declared column for the versions of rows; MariaDB's tables with system versioning hide it otherwise."""
_KEYS = (
    "SELECT {label}, INDEX_NAME, COLUMN_NAME, SEQ_IN_INDEX, INDEX_TYPE FROM information_schema.STATISTICS "
    f"WHERE {_THE_TABLES} AND NON_UNIQUE = 0 AND (INDEX_NAME = 'PRIMARY' OR INDEX_TYPE = 'HASH')"
)
_TABLES = (
    "SELECT {label}, TABLE_COLLATION, TABLE_TYPE, ENGINE "
    f"FROM information_schema.TABLES WHERE {_THE_TABLES}"
)
_DATABASES = "SELECT SCHEMA_NAME, DEFAULT_COLLATION_NAME FROM information_schema.SCHEMATA"
ENGINES_WITH_VIEWS = frozenset({"innodb", "rocksdb", "tokudb"})
"""In lower case: a transaction reads their tables as they were at one moment."""
SERVER_DATABASES = ("mysql", "sys", "performance_schema", "information_schema")
"""The databases of the server itself."""
IN_USER_DATABASES = f"TABLE_SCHEMA NOT IN {SERVER_DATABASES}"
"""A condition on rows of `information_schema`."""
ARE_TABLES = "TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED')"
"""The same of `information_schema.TABLES`, without views."""
_USER_TABLES = (
    "SELECT TABLE_SCHEMA, TABLE_NAME "
    f"FROM information_schema.TABLES WHERE {ARE_TABLES} AND {IN_USER_DATABASES}"
)
_MARIADB_GENERATING = (
    "SELECT TABLE_SCHEMA, TABLE_NAME "
    f"FROM information_schema.COLUMNS WHERE IS_GENERATED = 'ALWAYS' AND {IN_USER_DATABASES} UNION "
    "SELECT TABLE_SCHEMA, TABLE_NAME "
    f"FROM information_schema.TABLES WHERE TABLE_TYPE = 'SYSTEM VERSIONED' AND {IN_USER_DATABASES}"
)
"""The columns of a period that a table does not declare are shown with the table alone."""
_SHOW_GENERATED_PRIMARY_KEY = "SET SESSION show_gipk_in_create_table_and_information_schema = ON"
_GENERATED_PRIMARY_KEY_SINCE = (8, 0, 30)
_MARIADB_HIDES_COLUMNS_SINCE = (10, 3)
_MARIADB_QUOTES_DEFAULTS_SINCE = (10, 2, 7)
_OLD_COMPRESSED = " /*!100301 COMPRESSED*/"
"""How older MariaDB servers show this attribute."""
_CURRENT_TIME = re.compile("CURRENT_TIMESTAMP|NOW", re.IGNORECASE)
_NUMBER = re.compile(r"-?[0-9.]+(?:e[+-]?[0-9]+)?|b'[01]*'|x'[0-9a-f]*'", re.IGNORECASE)
_MOST_COLUMNS = 1024
"""Columns that are remembered, since many tables have some in common."""
_LONGEST_REMEMBERED = 1024
"""Characters of such a column's type and default."""
_COMPUTED = frozenset({"AUTO_INCREMENT", "DEFAULT_GENERATED"})
_ROW_VERSIONS = tuple(
    ColumnDefinition(
        name, "timestamp(6)", nullable=False, visible=False, generated="stored", computed_default=True
    )
    for name in ("row_start", "row_end")
)
_GENERATED = {"VIRTUAL": "virtual", "STORED": "stored", "PERSISTENT": "stored"}


def user_tables(connection: Connection) -> dict[str, list[str]]:
    """The tables that the user sees, by database, without those of the server itself. Raises `Refusal`."""
    tables: dict[str, list[str]] = defaultdict(list)
    with explained(connection):
        for database, table in connection.query(_USER_TABLES):
            tables[database or ""].append(table or "")
    return tables


def tables_with_generated_columns(connection: Connection) -> set[TableName]:
    """Those of a MariaDB server (10.2 or later) that the user sees, also with row versions alone.

    Raises `Refusal`.
    """
    with explained(connection):
        rows = connection.query(_MARIADB_GENERATING)
        return {TableName(database or "", table or "") for database, table in rows}


def database_collations(connection: Connection) -> dict[str, str]:
    """The default collation of each database that the user sees, by its canonical name. Raises `Refusal`."""
    with explained(connection):
        rows = connection.query(_DATABASES)
        return {name: canonical(collation) for name, collation in rows if name and collation}


def _ignored(table: TableName, column: str) -> None:
    pass


def describe_table(
    connection: Connection, database: str, table: str, doubts: MemberDoubts = _ignored
) -> TableDefinition | None:
    """A table's definition; None if the user sees no such table.

    In defaults, and in members of which `doubts` is told, `?` may stand for a character that catalogs do not
    show (`as_shown`). Raises `Refusal` if the server refuses the query.
    """
    name = connection.quote(table)
    # With the requested name: some servers return the table with its name in another case.
    return _describe(connection, database, [table], doubts, label=name, condition=f"= {name}").get(table)


def describe_tables(
    connection: Connection, database: str, tables: Collection[str], doubts: MemberDoubts = _ignored
) -> dict[str, TableDefinition]:
    """The same for many tables of a database: name → definition, for the tables with exactly these names.

    For several tables one query is many times faster; for a single table `describe_table` is faster, because
    a server can look up one name, but may read all names of the database for several.
    """
    # MariaDB looks up a single name where all are equal without regard to case; no table has the empty one.
    names = ", ".join(connection.quote(table) for table in (*tables, ""))
    return _describe(connection, database, tables, doubts, label="TABLE_NAME", condition=f"IN ({names})")


def _describe(
    connection: Connection,
    database: str,
    tables: Collection[str],
    doubts: MemberDoubts,
    *,
    label: str,
    condition: str,
) -> dict[str, TableDefinition]:
    """The definitions by table name; `label`: the SQL expression that returns it in each row."""
    given = {"label": label, "database": connection.quote(database), "condition": condition}
    greeting = connection.greeting
    is_mariadb = greeting.flavor == "mariadb"
    hides = is_mariadb and greeting.version >= _MARIADB_HIDES_COLUMNS_SINCE
    quotes = is_mariadb and greeting.version >= _MARIADB_QUOTES_DEFAULTS_SINCE
    described: dict[str, list[ColumnDefinition]] = {}
    have_period = set()
    collations = {}
    with explained(connection):
        if greeting.flavor == "mysql" and greeting.version >= _GENERATED_PRIMARY_KEY_SINCE:
            connection.execute(_SHOW_GENERATED_PRIMARY_KEY)
        begins_period = _BEGINS_PERIOD if hides else "FALSE"
        rows = connection.query(_COLUMNS.format(**given, begins_period=begins_period))
        if not rows:
            return {}
        primary_keys, hashes = _keys(connection.query(_KEYS.format(**given)))
        for table, _, name, column_type, *others, default, begins in sorted(rows, key=_ordinal_position):
            # Old servers compare names without regard to case, and so return more tables than requested.
            if table is not None and table in tables:
                number = primary_keys[table].get(name)
                # Long texts, such as those of large ENUMs, are neither shared nor worth their memory.
                is_short = len(column_type or "") + len(default or "") < _LONGEST_REMEMBERED
                column = _column if is_short else _column.__wrapped__
                described.setdefault(table, []).append(
                    column(name or "", number, quotes, column_type, *others, default)
                )
                if begins == "1":
                    have_period.add(table)
        for table, collation, kind, engine in connection.query(_TABLES.format(**given)):
            collations[table] = collation
            if hides and table in described:
                versions = kind == "SYSTEM VERSIONED" and table not in have_period
                described[table] += _hidden(versions, 0 if engine == "MEMORY" else len(hashes[table]))
        for table, columns in described.items():
            columns[:] = [
                _with_true_members(connection, TableName(database, table), column, doubts)
                for column in columns
            ]
    return {
        table: TableDefinition(database, table, tuple(columns), _canonical(collations.get(table)))
        for table, columns in described.items()
    }


def _with_true_members(
    connection: Connection, table: TableName, column: ColumnDefinition, doubts: MemberDoubts
) -> ColumnDefinition:
    if not column.may_hide_characters:
        return column
    found = with_hidden_members(connection, table, column)
    if found is None:
        doubts(table, column.name)
    return found or column


def _keys(rows: Sequence[Row]) -> tuple[defaultdict[Cell, dict[Cell, int]], defaultdict[Cell, set[Cell]]]:
    """By table: the numbers of the primary key's columns, and the names of unique keys that are hashes."""
    primary_keys: defaultdict[Cell, dict[Cell, int]] = defaultdict(dict)
    hashes: defaultdict[Cell, set[Cell]] = defaultdict(set)
    for table, index, name, sequence, kind in rows:
        if index == "PRIMARY":
            primary_keys[table][name] = int(sequence or 0)
        elif kind == "HASH":
            # MariaDB shows this for a primary key USING HASH, too, which has no hidden column.
            hashes[table].add(index)
    return primary_keys, hashes


def _canonical(collation: str | None) -> str | None:
    return canonical(collation) if collation else None


def _ordinal_position(row: Sequence[str | None]) -> int:
    return int(row[1] or 0)


@lru_cache(_MOST_COLUMNS)
def _column(
    name: str,
    primary_key: int | None,
    quotes: bool,
    column_type: str | None,
    charset: str | None,
    collation: str | None,
    nullable: str | None,
    extra: str | None,
    default: str | None,
) -> ColumnDefinition:
    """`quotes`: the server shows constant defaults as literals, and NULL as a word."""
    words = (extra or "").upper().replace(",", " ").split()
    constant, computed = (
        (None, True) if not _COMPUTED.isdisjoint(words) else _default(default, column_type or "", quotes)
    )
    return ColumnDefinition(
        name=name,
        column_type=(column_type or "").replace(_OLD_COMPRESSED, COMPRESSED),
        charset=charset or None,
        collation=collation or None,
        nullable=(nullable or "").upper() == "YES",
        primary_key=primary_key,
        visible="INVISIBLE" not in words,
        generated=next((_GENERATED[word] for word in words if word in _GENERATED), None),
        default=constant,
        computed_default=computed,
    )


def _default(shown: str | None, column_type: str, quotes: bool) -> tuple[str | None, bool]:
    """The constant default, and whether it is computed for each row, from `COLUMN_DEFAULT`."""
    if shown is None or (quotes and shown == "NULL"):
        return None, False
    if quotes and shown.startswith("'"):
        return unquoted(shown), False
    is_time = column_type.startswith(("timestamp", "datetime"))
    if (is_time and _CURRENT_TIME.match(shown)) or (quotes and not _NUMBER.fullmatch(shown)):
        return None, True
    return shown, False


def _hidden(versions: bool, hashes: int) -> list[ColumnDefinition]:
    """MariaDB's hidden columns: row versions without a declaration, then one hash per long unique key."""
    return [*(_ROW_VERSIONS if versions else ()), *map(_hash, range(1, hashes + 1))]


def _hash(number: int) -> ColumnDefinition:
    return ColumnDefinition(
        f"DB_ROW_HASH_{number}", "bigint(20) unsigned", visible=False, generated="virtual"
    )
