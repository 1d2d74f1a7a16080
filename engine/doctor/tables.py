"""The tables that a stream is about: which have no primary key, which change without row events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from engine.config.table_filter import TableFilter
from engine.doctor.finding import Finding, about_tables
from engine.doctor.settings import Variables
from engine.net.client.connection import Connection
from engine.net.client.server_queries import SourceFacts, explained, gives_places
from engine.net.client.table_columns import ARE_TABLES, ENGINES_WITH_VIEWS, IN_USER_DATABASES
from engine.schema.changes import TableName

_ACTIONS = ("CASCADE", "SET NULL", "SET DEFAULT")


@dataclass(frozen=True, slots=True)
class TableFacts:
    """What `information_schema` shows this user of the wanted tables."""

    engines: dict[TableName, str]
    """Engine of each table, in lower case."""
    keyed: frozenset[TableName]
    """Tables with a primary key."""
    versioned: frozenset[TableName]
    """MariaDB's tables with system versioning."""
    cascading: tuple[tuple[TableName, str], ...]
    """Tables whose rows a foreign key may change, each with the constraint's name and its actions."""
    named_databases: tuple[str, ...]
    """Databases that the user's patterns name."""
    gives_places: bool
    """Whether the server gives the place in the binlog of a consistent snapshot (MariaDB, Percona Server)."""

    @property
    def names(self) -> tuple[TableName, ...]:
        """All tables."""
        return tuple(self.engines)

    def locked_by_snapshots(self, facts: SourceFacts) -> tuple[TableName, ...]:
        """The tables that a snapshot locks for an instant (docs/snapshots.md)."""
        if facts.flavor == "mysql" and facts.gtid_mode == "ON":
            return tuple(name for name in self.engines if name not in self.keyed)
        if self.gives_places:
            return tuple(name for name, engine in self.engines.items() if engine not in ENGINES_WITH_VIEWS)
        return self.names


def read_tables(connection: Connection, wanted: TableFilter) -> TableFacts:
    """Raises `Refusal`."""
    with explained(connection):
        tables = connection.query(
            "SELECT table_schema, table_name, engine, table_type FROM information_schema.tables "
            f"WHERE {ARE_TABLES} AND {IN_USER_DATABASES}"
        )
        keys = connection.query(
            "SELECT table_schema, table_name FROM information_schema.table_constraints "
            f"WHERE constraint_type = 'PRIMARY KEY' AND {IN_USER_DATABASES}"
        )
        foreign = connection.query(
            "SELECT constraint_schema, table_name, constraint_name, delete_rule, update_rule "
            "FROM information_schema.referential_constraints "
            f"WHERE delete_rule IN {_ACTIONS} OR update_rule IN {_ACTIONS}"
        )
        shown = [
            (TableName(database or "", table or ""), (engine or "").lower(), kind)
            for database, table, engine, kind in tables
        ]
        mine = [row for row in shown if wanted.wants(row[0].database, row[0].table)]
        mine.sort(key=lambda row: str(row[0]))
        literal = (pattern.partition(".")[0] for pattern in wanted.wanted)
        return TableFacts(
            {name: engine for name, engine, _ in mine},
            frozenset(TableName(database or "", table or "") for database, table in keys),
            frozenset(name for name, _, kind in mine if kind == "SYSTEM VERSIONED"),
            tuple(
                (
                    TableName(database or "", table or ""),
                    f"{name}: ON DELETE {on_delete}, ON UPDATE {on_update}",
                )
                for database, table, name, on_delete, on_update in foreign
                if wanted.wants(database or "", table or "")
            ),
            tuple(dict.fromkeys(database for database in literal if not set("*?[") & set(database))),
            gives_places(connection),
        )


def check_tables(tables: TableFacts, facts: SourceFacts, variables: Variables) -> Iterator[Finding]:
    """Findings about tables without a key, foreign keys with actions, and versioned tables."""
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
    if facts.flavor == "mariadb":
        yield about_tables(
            "tables with system versioning",
            tuple(sorted(map(str, tables.versioned))),
            "advice",
            "their change rows contain rows of their history, which mirrors and replays refuse",
            "see docs/schema.md, or leave them out with --exclude-tables",
        )
