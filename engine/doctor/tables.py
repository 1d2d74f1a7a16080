"""The tables that a stream is about: which have no primary key, change without row events, or are masked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress

from engine.config.table_filter import TableFilter
from engine.dataclass import dataclass
from engine.doctor.finding import Finding, about_tables
from engine.doctor.settings import Variables
from engine.net.client.connection import Connection
from engine.net.client.explained import explained
from engine.net.client.server_queries import gives_places
from engine.net.client.source_facts import SourceFacts
from engine.net.client.table_columns import (
    ARE_TABLES,
    ENGINES_WITH_VIEWS,
    IN_USER_DATABASES,
    SERVER_DATABASES,
)
from engine.net.client.xa_recover import logs_first
from engine.net.protocol.packets import ServerError
from engine.output.sql_text import quoted_name
from engine.schema.changes import TableName

_ACTIONS = ("CASCADE", "SET NULL", "SET DEFAULT")
_WILDCARDS = frozenset("*?[")
_FOREIGN_KEY = re.compile(
    r"^  CONSTRAINT `((?:[^`]|``)*)` FOREIGN KEY .*?"
    r"(?: ON DELETE (CASCADE|SET NULL|SET DEFAULT|NO ACTION|RESTRICT))?"
    r"(?: ON UPDATE (CASCADE|SET NULL|SET DEFAULT|NO ACTION|RESTRICT))?,?$",
    re.MULTILINE,
)
"""A line of MariaDB's SHOW CREATE TABLE."""
_MASKING_SINCE = (9, 7)
"""MySQL has masking policies."""
_VERSIONED_SINCE = (10, 3)
"""MariaDB has system versioning."""
_Actions = tuple[TableName, str, str, str]
"""A foreign key: its table, its name, and what it does ON DELETE and ON UPDATE."""


@dataclass(frozen=True, slots=True)
class TableFacts:
    """What `information_schema` shows this user of the wanted tables."""

    engines: dict[TableName, str]
    """Engine of each table, in lower case."""
    keyed: frozenset[TableName]
    """Tables with a primary key."""
    by_transaction: tuple[TableName, ...]
    """MariaDB's tables with system versioning whose versions are numbers of transactions."""
    cascading: tuple[tuple[TableName, str], ...]
    """Tables whose rows a foreign key may change, each with the constraint's name and its actions."""
    masked: tuple[TableName, ...]
    """Tables with columns of which some users are shown other values (MySQL's masking policies)."""
    named: tuple[tuple[str, str | None], ...]
    """Databases that the user's patterns name, with the table, or None for several tables."""
    unmatched: tuple[str, ...]
    """The user's patterns that match none of the tables, each with its flag."""
    gives_places: bool
    """Whether the server gives the place in the binlog of a consistent snapshot (MariaDB, Percona Server)."""

    @property
    def names(self) -> tuple[TableName, ...]:
        """All tables."""
        return tuple(self.engines)

    def locked_by_snapshots(self, facts: SourceFacts, *, prepares: bool) -> tuple[TableName, ...]:
        """The tables that a snapshot locks for an instant (docs/snapshots.md).

        `prepares`: the server has prepared XA transactions since its start.
        """
        if facts.flavor == "mysql" and facts.gtid_mode == "ON":
            return tuple(name for name in self.engines if name not in self.keyed)
        if self.gives_places:
            exact = logs_first(facts.flavor, facts.version_tuple) and prepares
            return tuple(
                name
                for name, engine in self.engines.items()
                if engine not in ENGINES_WITH_VIEWS or (exact and name not in self.keyed)
            )
        return self.names


def read_tables(connection: Connection, wanted: TableFilter) -> TableFacts:
    """Raises `Refusal`."""
    with explained(connection):
        tables = connection.query(
            "SELECT table_schema, table_name, engine FROM information_schema.tables "
            f"WHERE {ARE_TABLES} AND {IN_USER_DATABASES}"
        )
        keys = connection.query(
            "SELECT DISTINCT table_schema, table_name FROM information_schema.statistics "
            f"WHERE index_name = 'PRIMARY' AND {IN_USER_DATABASES}"
        )
        shown = [
            (TableName(database or "", table or ""), (engine or "").lower())
            for database, table, engine in tables
        ]
        mine = [row for row in shown if wanted.wants(row[0].database, row[0].table)]
        mine.sort(key=lambda row: str(row[0]))
        names = {name for name, _ in mine}
        if connection.greeting.flavor == "mariadb":
            foreign = _foreign_keys_of_mariadb(connection, names)
        else:
            foreign = _foreign_keys(connection)
        return TableFacts(
            dict(mine),
            frozenset(TableName(database or "", table or "") for database, table in keys),
            tuple(sorted(names & _by_transaction(connection), key=str)),
            tuple(
                (table, f"{name}: ON DELETE {on_delete}, ON UPDATE {on_update}")
                for table, name, on_delete, on_update in foreign
                if table in names and (on_delete in _ACTIONS or on_update in _ACTIONS)
            ),
            tuple(sorted(names & _masked(connection), key=str)),
            tuple(_named(wanted.wanted)),
            wanted.unmatched(((name.database, name.table) for name, _ in shown), SERVER_DATABASES),
            gives_places(connection),
        )


def _masked(connection: Connection) -> set[TableName]:
    if connection.greeting.flavor != "mysql" or connection.greeting.version < _MASKING_SINCE:
        return set()
    return _with_columns(connection, "extra LIKE '%MASKING POLICY%'")


def _by_transaction(connection: Connection) -> set[TableName]:
    if connection.greeting.flavor != "mariadb" or connection.greeting.version < _VERSIONED_SINCE:
        return set()
    return _with_columns(connection, "generation_expression = 'ROW START' AND data_type = 'bigint'")


def _with_columns(connection: Connection, condition: str) -> set[TableName]:
    """The tables with columns for which the condition is true."""
    rows = connection.query(
        "SELECT DISTINCT table_schema, table_name FROM information_schema.columns "
        f"WHERE {condition} AND {IN_USER_DATABASES}"
    )
    return {TableName(database or "", table or "") for database, table in rows}


def _named(patterns: Iterable[str]) -> Iterator[tuple[str, str | None]]:
    for pattern in patterns:
        database, _, table = pattern.partition(".")
        if not _WILDCARDS & set(database):
            yield database, None if _WILDCARDS & set(table) else table


def _foreign_keys(connection: Connection) -> Iterator[_Actions]:
    for database, table, *texts in connection.query(
        "SELECT constraint_schema, table_name, constraint_name, delete_rule, update_rule "
        "FROM information_schema.referential_constraints"
    ):
        name, on_delete, on_update = (text or "" for text in texts)
        yield TableName(database or "", table or ""), name, on_delete, on_update


def _foreign_keys_of_mariadb(connection: Connection, wanted: set[TableName]) -> Iterator[_Actions]:
    """MariaDB shows the actions to a user with SELECT alone only in the tables' definitions."""
    rows = connection.query(
        "SELECT DISTINCT table_schema, table_name FROM information_schema.key_column_usage "
        "WHERE referenced_table_name IS NOT NULL"
    )
    having = {TableName(database or "", table or "") for database, table in rows}
    for table in sorted(having & wanted, key=str):
        place = f"{quoted_name(table.database)}.{quoted_name(table.table)}"
        # Refused without SELECT, which is a finding of its own.
        with suppress(ServerError):
            _, definition, *_ = connection.query(f"SHOW CREATE TABLE {place}")[0]
            for name, on_delete, on_update in _FOREIGN_KEY.findall(definition or ""):
                yield table, name.replace("``", "`"), on_delete or "RESTRICT", on_update or "RESTRICT"


def check_tables(tables: TableFacts, facts: SourceFacts, variables: Variables) -> Iterator[Finding]:
    """Findings about patterns, and about tables: keys, actions, rows logged as statements, masks."""
    if tables.unmatched:
        yield about_tables(
            "patterns without a table",
            tables.unmatched,
            "advice",
            "no table that this user sees has such a name; letter case counts",
            "correct the pattern; or, if the table exists, grant SELECT on it, and check again",
        )
    if not tables.engines:
        yield Finding("tables", "this user sees none of those that are wanted")
        return
    yield about_tables(
        "tables without a primary key",
        tuple(str(name) for name in tables.names if name not in tables.keyed),
        "advice",
        "equal rows cannot be distinguished: a mirror counts them, a snapshot reads the table as a whole",
        "ALTER TABLE … ADD PRIMARY KEY (…)",
    )
    # Since MySQL 9.6 the server's SQL layer carries out the actions, and logs the rows.
    logged = variables.get("innodb_native_foreign_keys") == "OFF"
    yield about_tables(
        "foreign keys with actions",
        () if logged else tuple(f"{name} ({action})" for name, action in tables.cascading),
        "advice",
        "InnoDB changes the rows of these tables without a row event, so the output lacks the changes",
        "replace the actions by triggers or statements of the application, or use MySQL 9.6 or later",
    )
    if facts.flavor == "mysql" and facts.version_tuple >= _MASKING_SINCE:
        yield about_tables(
            "tables with masking policies",
            tuple(map(str, tables.masked)),
            "advice",
            "a snapshot has what their policies show to this user, the stream has the values",
            "let the policies show this user the values (CREATE MASKING POLICY … CURRENT_USER_IN)",
        )
    if facts.flavor == "mariadb":
        yield about_tables(
            "tables with versions by transaction",
            tuple(map(str, tables.by_transaction)),
            "advice",
            "the server logs their rows as statements, whatever binlog_format is, so the output lacks them",
            "declare ROW START and ROW END as TIMESTAMP(6), or leave the tables out with --exclude-tables",
        )
