"""The statements that define tables, as plain values: what was written, before any default applies.

What they declare is in `declarations`, the clauses of ALTER TABLE are in `alter_actions`.
"""

from __future__ import annotations

from dataclasses import field

from engine.dataclass import dataclass
from engine.schema.alter_actions import (
    Action,
    ExchangePartition,
    PartitionToTable,
    RenameTo,
    TableToPartition,
)
from engine.schema.changes import TableName
from engine.schema.declarations import ColumnClause, Key, Period, TableOptions


@dataclass(frozen=True, slots=True)
class CreateTable:
    """CREATE TABLE."""

    table: TableName
    columns: tuple[ColumnClause, ...] = ()
    keys: tuple[Key, ...] = ()
    options: TableOptions = field(default_factory=TableOptions)
    periods: tuple[Period, ...] = ()
    like: TableName | None = None
    versioned: bool = False
    """WITH SYSTEM VERSIONING."""
    select: bool = False
    """Rows and further columns come from a query."""
    options_left_out: bool = False
    """The server wrote it without the table's options, so its character set and engine are not known."""
    misleading: bool = False
    """A server may have written it in a form that does not show what its columns are."""
    if_not_exists: bool = False
    replace: bool = False
    temporary: bool = False


@dataclass(frozen=True, slots=True)
class AlterTable:
    """ALTER TABLE, CREATE INDEX and DROP INDEX; clauses that change neither columns nor rows are left out."""

    table: TableName
    actions: tuple[Action, ...]
    if_exists: bool = False
    ignore: bool = False
    """Rows with duplicate keys are removed, values that do not fit are cut."""


@dataclass(frozen=True, slots=True)
class RenameTables:
    """RENAME TABLE: old and new names, in order."""

    renames: tuple[tuple[TableName, TableName], ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropTables:
    """DROP TABLE and DROP SEQUENCE."""

    tables: tuple[TableName, ...]
    if_exists: bool = False
    temporary: bool = False
    only_sequences: bool = False
    """Other tables of these names stay, although the statement is logged."""


@dataclass(frozen=True, slots=True)
class Truncate:
    """TRUNCATE TABLE."""

    table: TableName


@dataclass(frozen=True, slots=True)
class DefineDatabase:
    """CREATE and ALTER DATABASE."""

    database: str
    charset: str | None = None
    collation: str | None = None
    create: bool = False
    replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropDatabase:
    """DROP DATABASE."""

    database: str


@dataclass(frozen=True, slots=True)
class RollBackPrepared:
    """XA ROLLBACK."""

    xid: str


@dataclass(frozen=True, slots=True)
class ChangeRows:
    """INSERT, REPLACE, UPDATE, DELETE or LOAD, which a server logs as a statement without row events."""

    tables: tuple[TableName, ...]
    all_rows: bool = False
    """It is DELETE of all rows of a table, as servers write it after a restart."""


@dataclass(frozen=True, slots=True)
class Harmless:
    """A statement that changes neither definitions nor, without row events, rows."""


@dataclass(frozen=True, slots=True)
class NotUnderstood:
    """A statement that may change any table that it mentions."""

    reason: str
    names: frozenset[str]
    """All its words and identifiers, case-folded."""
    databases: bool
    """It may drop or define the databases among `names`."""
    unquoted: bool
    """`names` has words in ASCII only: the statement could not be split."""
    manipulates: bool = False
    """It is a data manipulation statement: it changes no definition, but perhaps rows of those tables."""


Statement = (
    CreateTable
    | AlterTable
    | RenameTables
    | DropTables
    | Truncate
    | DefineDatabase
    | DropDatabase
    | RollBackPrepared
    | ChangeRows
    | Harmless
    | NotUnderstood
)

_WITH_TABLE = RenameTo | ExchangePartition | PartitionToTable | TableToPartition
"""Clauses of ALTER TABLE that concern another table."""


def manipulates(statement: Statement) -> bool:
    """Whether it is a data manipulation statement."""
    return isinstance(statement, ChangeRows) or (
        isinstance(statement, NotUnderstood) and statement.manipulates
    )


def named_tables(statement: Statement) -> list[TableName]:
    """The tables that the statement defines, changes, empties or drops by name; none of a whole database."""
    if isinstance(statement, DropTables):
        return list(statement.tables)
    if isinstance(statement, RenameTables):
        return [name for names in statement.renames for name in names]
    if isinstance(statement, AlterTable):
        named = [action.table for action in statement.actions if isinstance(action, _WITH_TABLE)]
        return [statement.table, *named]
    if isinstance(statement, CreateTable | Truncate):
        return [statement.table]
    return []
