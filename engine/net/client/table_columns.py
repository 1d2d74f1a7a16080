"""Reads a table's columns from the server's information_schema, for binlogs without complete metadata.

The result has the columns of the binlog's table maps, in their order, including generated and invisible
columns and those that MariaDB hides from information_schema (row versions and hashes of long unique keys,
always last). MySQL's hidden columns of functional indexes are in neither.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from engine.binlog.catalog import ColumnInfo, pack, parse_members
from engine.net.client.connection import Connection
from engine.net.client.server_queries import explained

_THE_TABLE = "TABLE_SCHEMA = {database} AND TABLE_NAME = {table}"
_THE_TABLES = "TABLE_SCHEMA = {database} AND TABLE_NAME {condition}"
_COLUMNS = (
    "SELECT {label}, COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, CHARACTER_SET_NAME, COLLATION_NAME, IS_NULLABLE, "
    f"EXTRA FROM information_schema.COLUMNS WHERE {_THE_TABLES} ORDER BY ORDINAL_POSITION"
)
_PRIMARY_KEYS = (
    "SELECT {label}, COLUMN_NAME, SEQ_IN_INDEX FROM information_schema.STATISTICS "
    f"WHERE {_THE_TABLES} AND INDEX_NAME = 'PRIMARY'"
)
_SHOW_GENERATED_PRIMARY_KEY = "SET SESSION show_gipk_in_create_table_and_information_schema = ON"
_GENERATED_PRIMARY_KEY_SINCE = (8, 0, 30)
_MARIADB_HIDDEN = (
    "SELECT {table}, "
    f"(SELECT COUNT(*) FROM information_schema.TABLES WHERE {_THE_TABLE} "
    "AND TABLE_TYPE = 'SYSTEM VERSIONED'), "
    f"(SELECT COUNT(*) FROM information_schema.COLUMNS WHERE {_THE_TABLE} "
    "AND GENERATION_EXPRESSION = 'ROW START'), "
    f"(SELECT COUNT(DISTINCT INDEX_NAME) FROM information_schema.STATISTICS WHERE {_THE_TABLE} "
    "AND INDEX_TYPE = 'HASH' AND NON_UNIQUE = 0), "
    f"(SELECT COUNT(*) FROM information_schema.TABLES WHERE {_THE_TABLE} AND ENGINE = 'MEMORY')"
)
_MARIADB_HIDDEN_SINCE = (10, 3)
_GENERATED = {"VIRTUAL": "virtual", "STORED": "stored", "PERSISTENT": "stored"}


def describe_table(connection: Connection, database: str, table: str) -> bytes | None:
    """The packed columns (`engine.binlog.catalog`) of a table; None if the user sees no such table.

    In members of ENUM and SET, `?` replaces the characters outside Unicode's Basic Multilingual Plane: all
    servers store these texts so. Raises `Refusal` if the server refuses the query.
    """
    name = connection.quote(table)
    # With the requested name: some servers return the table with its name in another case.
    return _describe(connection, database, [table], label=name, condition=f"= {name}").get(table)


def describe_tables(connection: Connection, database: str, tables: Collection[str]) -> dict[str, bytes]:
    """The same for many tables of a database: name → packed columns, for the tables with exactly these names.

    For several tables one query is many times faster; for a single table `describe_table` is faster, because
    a server can look up one name, but may read all names of the database for several.
    """
    names = ", ".join(connection.quote(table) for table in tables)
    return _describe(connection, database, tables, label="TABLE_NAME", condition=f"IN ({names})")


def _describe(
    connection: Connection, database: str, tables: Collection[str], *, label: str, condition: str
) -> dict[str, bytes]:
    """The packed columns by table name; `label`: the SQL expression that returns it in each row."""
    schema = connection.quote(database)
    greeting = connection.greeting
    primary_keys: defaultdict[str | None, dict[str | None, int]] = defaultdict(dict)
    described: dict[str, list[ColumnInfo]] = {}
    with explained(connection):
        if greeting.flavor == "mysql" and greeting.version >= _GENERATED_PRIMARY_KEY_SINCE:
            connection.execute(_SHOW_GENERATED_PRIMARY_KEY)
        rows = connection.query(_COLUMNS.format(label=label, database=schema, condition=condition))
        if not rows:
            return {}
        keys = connection.query(_PRIMARY_KEYS.format(label=label, database=schema, condition=condition))
        for table, name, sequence in keys:
            primary_keys[table][name] = int(sequence or 0)
        for table, *row in rows:
            # Old servers compare names without regard to case, and so return more tables than requested.
            if table is not None and table in tables:
                described.setdefault(table, []).append(_column(row, primary_keys[table]))
        if greeting.flavor == "mariadb" and greeting.version >= _MARIADB_HIDDEN_SINCE:
            questions = (
                _MARIADB_HIDDEN.format(database=schema, table=connection.quote(table)) for table in described
            )
            for table, *counts in connection.query(" UNION ALL ".join(questions)):
                described[table or ""] += _hidden(counts)
    return {table: pack(columns) for table, columns in described.items()}


def _column(row: Sequence[str | None], primary_key: Mapping[str | None, int]) -> ColumnInfo:
    name, data_type, column_type, charset, collation, nullable, extra = (cell or "" for cell in row)
    words = extra.upper().split()
    return ColumnInfo(
        name=name,
        data_type=data_type.lower(),
        column_type=column_type,
        unsigned="unsigned" in column_type.lower().split("(")[-1].split(")")[-1].split(),
        charset=charset or None,
        collation=collation or None,
        members=parse_members(column_type),
        nullable=nullable.upper() == "YES",
        primary_key=primary_key.get(name),
        visible="INVISIBLE" not in words,
        generated=next((_GENERATED[word] for word in words if word in _GENERATED), None),
    )


def _hidden(counts: Sequence[str | None]) -> list[ColumnInfo]:
    """MariaDB's hidden columns: row versions without a declaration, then one hash per long unique key."""
    versioned, declared, hashes, in_memory = (int(count or 0) for count in counts)
    hidden: list[ColumnInfo] = []
    if versioned and not declared:
        hidden += (
            _hidden_column(name, "timestamp", "timestamp(6)", "stored") for name in ("row_start", "row_end")
        )
    if not in_memory:
        hidden += (
            _hidden_column(f"DB_ROW_HASH_{number}", "bigint", "bigint(20)", "virtual")
            for number in range(1, hashes + 1)
        )
    return hidden


def _hidden_column(name: str, data_type: str, column_type: str, generated: str) -> ColumnInfo:
    return ColumnInfo(
        name=name,
        data_type=data_type,
        column_type=column_type,
        unsigned=False,
        charset=None,
        collation=None,
        members=None,
        nullable=True,
        primary_key=None,
        visible=False,
        generated=generated,
    )
