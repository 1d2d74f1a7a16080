"""What one statement does to the known tables and databases, and to rows without row events.

All tables that it names start as they are known, take the statement's steps in order, and are compared with
their start at the end: so chains and swaps of RENAME TABLE give one change per name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from engine.schema.alteration import alter_table, fills_rows, loses_rows
from engine.schema.changes import DatabaseChange, TableChange, TableName
from engine.schema.column_types import UncertainError, resolve_collation
from engine.schema.creation import create_table
from engine.schema.names import NameRules
from engine.schema.session import StatementSession
from engine.schema.statements import (
    AlterTable,
    CreateTable,
    DefineDatabase,
    DropDatabase,
    DropTables,
    ExchangePartition,
    Harmless,
    NotUnderstood,
    PartitionToTable,
    RenameTables,
    RenameTo,
    Statement,
    TableToPartition,
    Truncate,
)
from engine.schema.table_state import TableState

_UNKNOWN_TABLE = 1051
"""ER_BAD_TABLE_ERROR: DROP TABLE has dropped the other tables."""
_WITH_TABLE = RenameTo | ExchangePartition | PartitionToTable | TableToPartition
"""Clauses of ALTER TABLE that concern another table."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The effect of a statement; versions of `tables` are not set."""

    tables: tuple[TableChange, ...] = ()
    databases: tuple[DatabaseChange, ...] = ()
    emptied: tuple[TableName, ...] = ()
    rewritten: tuple[TableName, ...] = ()
    temporary: frozenset[tuple[int, TableName]] = frozenset()


@dataclass(frozen=True, slots=True)
class _Table:
    """A table that exists, or may exist, during the statement."""

    state: TableState | None
    """None if it is not certain."""
    doubt: str | None = None
    origin: TableName | None = None
    """The name that it had before the statement; None for a new table."""
    previous_names: tuple[str | None, ...] | None = None
    """For each column, as in `TableChange`; None if the columns are as before."""
    filled: tuple[str | None, ...] | None = None


class Execution:
    """The execution of one statement; what is known is not changed."""

    def __init__(
        self,
        session: StatementSession,
        names: NameRules,
        tables: Mapping[TableName, TableChange],
        databases: Mapping[str, DatabaseChange],
        temporary: frozenset[tuple[int, TableName]],
        thread: int,
    ) -> None:
        self._session = session
        self._names = names
        self._known = tables
        self._databases = databases
        self._temporary = set(temporary)
        self._thread = thread
        self._now: dict[TableName, _Table | None] = {}
        """By compared name: tables as they are now; None where there is none."""
        self._shown: dict[TableName, TableName] = {}
        """Compared name → name as stored."""
        self._database_changes: list[DatabaseChange] = []
        self._emptied: dict[TableName, None] = {}
        self._rewritten: dict[TableName, None] = {}

    def run(self, statement: Statement, error: int) -> Outcome:
        """Everything that the statement does; `error`: the one that it ended with, or 0."""
        if error:
            self._failed(statement, error)
        else:
            self._execute(statement)
        return Outcome(
            tuple(self._table_changes()),
            tuple(self._database_changes),
            tuple(self._emptied),
            tuple(self._rewritten),
            frozenset(self._temporary),
        )

    def _execute(self, statement: Statement) -> None:
        match statement:
            case CreateTable():
                self._create(statement)
            case AlterTable():
                self._alter(statement)
            case RenameTables():
                self._rename_tables(statement)
            case DropTables():
                self._drop_tables(statement)
            case Truncate():
                self._truncate(statement)
            case DefineDatabase():
                self._define_database(statement)
            case DropDatabase():
                self._drop_database(statement)
            case NotUnderstood():
                self._not_understood(statement)
            case Harmless():
                pass

    # Statements

    def _create(self, statement: CreateTable) -> None:
        name = self._name(statement.table)
        if statement.temporary:
            self._temporary.add((self._thread, self._names.compared(name)))
            return
        existing = self._get(name)
        doubt = None
        if statement.if_not_exists and not statement.replace:
            if existing is not None:
                return
            if not self._is_absent(name):
                doubt = "CREATE TABLE IF NOT EXISTS has no effect on a table that exists already"
        if existing is not None or statement.replace:
            self._emptied[name] = None
        if statement.select:
            self._rewritten[name] = None
        self._set(name, _Table(None, doubt) if doubt else self._created(statement))

    def _created(self, statement: CreateTable) -> _Table:
        if statement.like is not None:
            source = self._get(self._names.stored(statement.like))
            if source is None or source.state is None:
                return _Table(None, f"it is like {statement.like}, whose definition is not known")
            return _Table(source.state)
        try:
            collation = self._database_collation(statement.table.database)
            return _Table(create_table(statement, self._session, collation))
        except UncertainError as error:
            return _Table(None, f"CREATE TABLE: {error}")

    def _alter(self, statement: AlterTable) -> None:
        name = self._name(statement.table)
        if self._is_shadowed(name):
            return
        table = self._get(name)
        if loses_rows(statement) or (table is not None and table.state is None and fills_rows(statement)):
            self._rewritten[name] = None
        if table is not None and table.state is not None:
            table = self._altered(statement, name, table, table.state)
            self._set(name, table)
        for action in statement.actions:
            if isinstance(action, RenameTo):
                self._rename(name, self._name(action.table))
                name = action.table
            elif isinstance(action, ExchangePartition):
                self._rewritten[name] = None
                self._rewritten[self._name(action.table)] = None
            elif isinstance(action, PartitionToTable):
                state = None if table is None else table.state
                doubt = None if state else f"it was a partition of {name}, whose definition is not known"
                self._rewritten[self._name(action.table)] = None
                self._set(action.table, _Table(state, doubt))
            elif isinstance(action, TableToPartition):
                self._emptied[self._name(action.table)] = None
                self._set(action.table, None)

    def _altered(self, statement: AlterTable, name: TableName, table: _Table, state: TableState) -> _Table:
        try:
            collation = self._database_collation(name.database)
            altered = alter_table(statement, state, self._session, collation)
        except UncertainError as error:
            if fills_rows(statement):
                self._rewritten[name] = None
            return _Table(None, f"ALTER TABLE: {error}", table.origin)
        if altered.rewritten:
            self._rewritten[name] = None
        if altered.state == state and altered.previous_names == tuple(
            column.name for column in state.columns
        ):
            return table
        filled = altered.filled if any(value is not None for value in altered.filled) else None
        return _Table(altered.state, None, table.origin, altered.previous_names, filled)

    def _rename_tables(self, statement: RenameTables) -> None:
        for old, new in statement.renames:
            name = self._name(old)
            if not self._is_shadowed(name) and not (statement.if_exists and self._get(name) is None):
                self._rename(name, self._name(new))

    def _rename(self, old: TableName, new: TableName) -> None:
        table = self._get(old)
        self._set(old, None)
        if self._get(new) is not None:
            self._emptied[new] = None
        if table is None:
            table = _Table(None, f"it was {old}, whose definition is not known", old)
        self._set(new, table)

    def _drop_tables(self, statement: DropTables) -> None:
        for table in statement.tables:
            name = self._name(table)
            key = (self._thread, self._names.compared(name))
            if statement.temporary or self._is_shadowed(name):
                self._temporary.discard(key)
            else:
                self._emptied[name] = None
                self._set(name, None)

    def _truncate(self, statement: Truncate) -> None:
        name = self._name(statement.table)
        if not self._is_shadowed(name):
            self._emptied[name] = None

    def _drop_database(self, statement: DropDatabase) -> None:
        database = self._names.stored_database(statement.database)
        self._emptied[TableName(database, "")] = None
        for name in self._existing(database):
            self._set(self._name(name), None)
        self._database_changes.append(DatabaseChange(database, None, complete=True))

    def _define_database(self, statement: DefineDatabase) -> None:
        database = self._names.stored_database(statement.database)
        known = self._databases.get(self._names.compared_database(database))
        if statement.create and statement.replace:
            self._drop_database(DropDatabase(database))
        elif statement.create and statement.if_not_exists and not _is_dropped(known):
            return
        default = self._session.server_collation if statement.create else known and known.collation
        try:
            collation = resolve_collation(
                statement.charset,
                statement.collation,
                self._session,
                default or None,
                self._session.server_collation,
            )
        except UncertainError:
            collation = None
        complete = statement.create or (known is not None and known.complete)
        change = DatabaseChange(database, collation, complete)
        if change != known:
            self._database_changes.append(change)

    def _not_understood(self, statement: NotUnderstood) -> None:
        for known in list(self._known.values()):
            if _mentions(statement, known.name, self._session.database):
                self._make_unsure(known.name, f"a statement was not understood: {statement.reason}")
        for database in self._databases.values():
            name = database.database
            if name.casefold() in statement.names or name == self._session.database:
                collation = None if statement.databases else database.collation
                self._database_changes.append(DatabaseChange(name, collation))

    def _failed(self, statement: Statement, error: int) -> None:
        """A statement that ended with an error may have had a part of its effect."""
        if isinstance(statement, DropTables) and error == _UNKNOWN_TABLE:
            self._drop_tables(statement)
            return
        if isinstance(statement, CreateTable) and statement.replace and not statement.temporary:
            # MariaDB logs it because the table that it replaces is dropped.
            self._drop_tables(DropTables((statement.table,)))
            return
        for name in self._concerned(statement):
            self._make_unsure(name, f"a statement ended with error {error}")

    def _concerned(self, statement: Statement) -> list[TableName]:
        if isinstance(statement, DropDatabase | DefineDatabase):
            return self._existing(self._names.stored_database(statement.database))
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

    # Tables as they are now

    def _name(self, name: TableName) -> TableName:
        """The name as stored; remembered for the changes."""
        stored = self._names.stored(name)
        self._shown[self._names.compared(stored)] = stored
        return stored

    def _get(self, name: TableName) -> _Table | None:
        """The table as it is now; None if it does not exist or is not known."""
        key = self._names.compared(name)
        return self._now[key] if key in self._now else self._before(key)

    def _set(self, name: TableName, table: _Table | None) -> None:
        self._now[self._names.compared(name)] = table

    def _before(self, key: TableName) -> _Table | None:
        known = self._known.get(key)
        if known is None or (known.columns is None and known.doubt is None):
            return None
        if known.columns is None or known.doubt is not None:
            return _Table(None, known.doubt, known.name)
        return _Table(
            TableState(known.columns, known.collation, known.engine, known.unique_keys), None, known.name
        )

    def _is_absent(self, name: TableName) -> bool:
        """Whether it is certain that there is no such table."""
        database = self._databases.get(self._names.compared_database(name.database))
        dropped = self._names.compared(name) in self._known
        return self._get(name) is None and (dropped or (database is not None and database.complete))

    def _is_shadowed(self, name: TableName) -> bool:
        """Whether the thread has a temporary table of the name, as far as statements show it.

        A server may have removed it at a restart, so the table is no longer certain.
        """
        if (self._thread, self._names.compared(name)) not in self._temporary:
            return False
        self._make_unsure(name, "a temporary table has the same name")
        return True

    def _make_unsure(self, name: TableName, reason: str) -> None:
        table = self._get(self._name(name))
        if table is not None:
            self._set(name, _Table(None, reason, table.origin))
            self._rewritten[name] = None

    def _existing(self, database: str) -> list[TableName]:
        """The tables of a database that are known to exist."""
        compared = self._names.compared_database(database)
        return [
            known.name
            for key, known in self._known.items()
            if key.database == compared and self._get(known.name) is not None
        ]

    def _database_collation(self, database: str) -> str | None:
        known = self._databases.get(self._names.compared_database(database))
        return None if known is None else known.collation

    # Results

    def _table_changes(self) -> Iterator[TableChange]:
        for key, table in self._now.items():
            before = self._before(key)
            name = self._shown[key]
            if table is not None and table.origin and self._names.compared(table.origin) == key:
                name = table.origin
            if table is None and before is not None:
                yield TableChange(name, 0)
            elif table is not None and table != before:
                yield self._table_change(name, table)

    def _table_change(self, name: TableName, table: _Table) -> TableChange:
        renamed = table.origin is not None and self._names.compared(table.origin) != self._names.compared(
            name
        )
        if table.state is None:
            return TableChange(name, 0, doubt=table.doubt, renamed_from=table.origin if renamed else None)
        previous = table.previous_names
        if previous is None and table.origin is not None:
            previous = tuple(column.name for column in table.state.columns)
        return TableChange(
            name,
            0,
            table.state.columns,
            renamed_from=table.origin if renamed else None,
            previous_names=previous,
            filled=table.filled,
            collation=table.state.collation,
            engine=table.state.engine,
            unique_keys=table.state.unique_keys,
        )


def _is_dropped(known: DatabaseChange | None) -> bool:
    return known is not None and known.complete and known.collation is None


def _mentions(statement: NotUnderstood, name: TableName, default_database: str) -> bool:
    """Whether the statement may concern the table."""
    database, table = name.database.casefold(), name.table.casefold()
    names = statement.names
    if statement.unquoted and not (_is_word(database) and _is_word(table)):
        return True
    if statement.databases and database in names:
        return True
    return table in names and (statement.unquoted or database in names or name.database == default_database)


def _is_word(name: str) -> bool:
    return name.isascii() and name.replace("_", "a").replace("$", "a").isalnum()
