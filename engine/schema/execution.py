"""What one statement does to the known tables and databases, and to rows without row events.

All tables that it names start as they are known, take the statement's steps in order, and are compared with
their start at the end: so chains and swaps of RENAME TABLE give one change per name.
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.binlog.table_definition import UNKNOWN_CHARSET
from engine.dataclass import dataclass
from engine.schema.alter_actions import ExchangePartition, PartitionToTable, RenameTo, TableToPartition
from engine.schema.alteration import alter_table, fills_rows, loses_rows
from engine.schema.changes import DatabaseChange, TableChange, TableName
from engine.schema.column_types import UncertainError, UnknownDefaultError, resolve_collation
from engine.schema.creation import create_table
from engine.schema.sequences import is_sequence
from engine.schema.session import StatementSession
from engine.schema.statements import (
    AlterTable,
    ChangeRows,
    CreateTable,
    DefineDatabase,
    DropDatabase,
    DropTables,
    Harmless,
    NotUnderstood,
    RenameTables,
    RollBackPrepared,
    Statement,
    Truncate,
    manipulates,
    named_tables,
)
from engine.schema.table_state import TableState
from engine.schema.working_tables import WorkingTable, WorkingTables

_UNKNOWN_NAMES = frozenset({1051, 4091})
"""ER_BAD_TABLE_ERROR and MariaDB's ER_UNKNOWN_SEQUENCES: DROP has dropped the other tables."""
_IN_MEMORY = frozenset({"memory", "heap"})
_BRINGING_WORDS = frozenset({"create", "rename", "convert"})
"""Each statement after which there may be a table that was not there has one of them."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The effect of a statement; versions of `tables` are not set."""

    tables: tuple[TableChange, ...] = ()
    databases: tuple[DatabaseChange, ...] = ()
    emptied: tuple[TableName, ...] = ()
    rewritten: tuple[TableName, ...] = ()
    rolled_back: str | None = None
    temporary: frozenset[tuple[int, TableName]] = frozenset()
    lacks_default: bool = False
    """The default collation of a database, which is not known, decides a definition."""


class Execution:
    """The execution of one statement; what is known is not changed."""

    def __init__(
        self,
        session: StatementSession,
        tables: Mapping[TableName, TableChange],
        databases: Mapping[str, DatabaseChange],
        temporary: frozenset[tuple[int, TableName]],
        thread: int,
    ) -> None:
        self._session = session
        self._tables = WorkingTables(tables)
        self._databases = databases
        self._temporary = set(temporary)
        self._thread = thread
        self._database_changes: list[DatabaseChange] = []
        self._emptied: dict[TableName, None] = {}
        self._rewritten: dict[TableName, None] = {}
        self._rolled_back: str | None = None
        self._lacks_default = False

    def run(self, statement: Statement, error: int) -> Outcome:
        """Everything that the statement does; `error`: the one that it ended with, or 0."""
        if manipulates(statement):
            # With an error it may have changed rows of tables without transactions.
            self._manipulate(statement, error)
        elif error:
            self._failed(statement, error)
        else:
            self._execute(statement)
        return Outcome(
            tuple(self._tables.changes()),
            tuple(self._database_changes),
            tuple(self._emptied),
            tuple(self._rewritten),
            self._rolled_back,
            frozenset(self._temporary),
            self._lacks_default,
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
            case RollBackPrepared():
                self._rolled_back = statement.xid
            case NotUnderstood():
                self._not_understood(statement)
            case ChangeRows() | Harmless():
                pass

    # Statements

    def _create(self, statement: CreateTable) -> None:
        name = statement.table
        if statement.temporary:
            self._temporary.add((self._thread, name))
            return
        existing = self._tables.get(name)
        doubt = None
        if statement.if_not_exists and not statement.replace:
            if existing is not None:
                return
            if not (self._session.shows_creation or self._is_absent(name)):
                doubt = "CREATE TABLE IF NOT EXISTS has no effect on a table that exists already"
        if existing is not None or statement.replace:
            self._emptied[name] = None
        if statement.select:
            self._rewritten[name] = None
        self._tables.set(name, WorkingTable(None, doubt) if doubt else self._created(statement))

    def _created(self, statement: CreateTable) -> WorkingTable:
        if statement.like is not None:
            if (self._thread, statement.like) in self._temporary:
                return WorkingTable(None, f"a temporary table is called {statement.like}, too")
            source = self._tables.get(statement.like)
            if source is None or source.state is None:
                return WorkingTable(None, f"it is like {statement.like}, whose definition is not known")
            return WorkingTable(source.state)
        try:
            collation = self._database_collation(statement.table.database)
            state = create_table(statement, self._session, collation)
        except UncertainError as error:
            return self._uncertain("CREATE TABLE", error)
        if not statement.options_left_out:
            self._lacks_default = self._lacks_default or _lacks_charset(state)
        return WorkingTable(state)

    def _alter(self, statement: AlterTable) -> None:
        name = statement.table
        if self._is_shadowed(name):
            return
        table = self._tables.get(name)
        if loses_rows(statement) or (table is not None and table.state is None and fills_rows(statement)):
            self._rewritten[name] = None
        if table is not None and table.state is not None:
            table = self._altered(statement, name, table, table.state)
            self._tables.set(name, table)
        for action in statement.actions:
            if isinstance(action, RenameTo):
                self._rename(name, action.table)
                name = action.table
            elif isinstance(action, ExchangePartition):
                self._rewritten[name] = None
                self._rewritten[action.table] = None
            elif isinstance(action, PartitionToTable):
                state = None if table is None else table.state
                doubt = None if state else f"it was a partition of {name}, whose definition is not known"
                self._rewritten[action.table] = None
                self._tables.set(action.table, WorkingTable(state, doubt))
            elif isinstance(action, TableToPartition):
                self._emptied[action.table] = None
                self._tables.set(action.table, None)

    def _altered(
        self, statement: AlterTable, name: TableName, table: WorkingTable, state: TableState
    ) -> WorkingTable:
        try:
            collation, converted = self._database_collation(name.database), self._converted_to(name.database)
            altered = alter_table(statement, state, self._session, collation, converted)
        except UncertainError as error:
            if fills_rows(statement):
                self._rewritten[name] = None
            return self._uncertain("ALTER TABLE", error, table.origin)
        self._lacks_default = self._lacks_default or _lacks_charset(altered.state)
        if altered.rewritten:
            self._rewritten[name] = None
        if altered.state == state and altered.previous_names == tuple(
            column.name for column in state.columns
        ):
            return table
        filled = altered.filled if any(value is not None for value in altered.filled) else None
        return WorkingTable(altered.state, None, table.origin, altered.previous_names, filled)

    def _uncertain(self, kind: str, error: UncertainError, origin: TableName | None = None) -> WorkingTable:
        self._lacks_default = self._lacks_default or isinstance(error, UnknownDefaultError)
        return WorkingTable(None, f"{kind}: {error}", origin)

    def _rename_tables(self, statement: RenameTables) -> None:
        for old, new in statement.renames:
            if not self._is_shadowed(old) and not (statement.if_exists and self._tables.get(old) is None):
                self._rename(old, new)

    def _rename(self, old: TableName, new: TableName) -> None:
        table = self._tables.get(old)
        if table is None and self._is_absent(old) and self._tables.get(new) is None:
            # It is a view.
            return
        self._tables.set(old, None)
        if self._tables.get(new) is not None:
            self._emptied[new] = None
        if table is None:
            table = WorkingTable(None, f"it was {old}, whose definition is not known", old)
        self._tables.set(new, table)

    def _drop_tables(self, statement: DropTables) -> None:
        for name in statement.tables:
            key = (self._thread, name)
            if statement.only_sequences and not self._is_sequence(name):
                continue
            if statement.temporary or self._is_shadowed(name):
                self._temporary.discard(key)
            else:
                self._emptied[name] = None
                self._tables.set(name, None)

    def _truncate(self, statement: Truncate) -> None:
        name = statement.table
        if not self._is_shadowed(name):
            self._emptied[name] = None

    def _drop_database(self, statement: DropDatabase) -> None:
        database = statement.database
        self._emptied[TableName(database, "")] = None
        for name in self._tables.of_database(database):
            self._tables.set(name, None)
        self._database_changes.append(DatabaseChange(database, None, complete=True))

    def _define_database(self, statement: DefineDatabase) -> None:
        database = statement.database
        known = self._databases.get(database)
        if statement.create and statement.replace:
            self._drop_database(DropDatabase(database))
        elif statement.create and statement.if_not_exists and not self._is_made(known):
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
        doubt = f"a statement was not understood: {statement.reason}"
        brings_tables = not _BRINGING_WORDS.isdisjoint(statement.names)
        for name in self._tables.known:
            if _mentions(statement, name, self._session.database):
                self._make_unsure(name, doubt)
                if brings_tables and self._tables.get(name) is None:
                    self._tables.set(name, WorkingTable(None, doubt))
        for database, known in self._databases.items():
            if database.casefold() in statement.names or database == self._session.database:
                collation = None if statement.databases else known.collation
                change = DatabaseChange(database, collation, known.complete and not brings_tables)
                if change != known:
                    self._database_changes.append(change)

    def _manipulate(self, statement: Statement, error: int) -> None:
        if isinstance(statement, ChangeRows):
            names = list(statement.tables)
            if statement.all_rows and not error and all(map(self._is_in_memory, names)):
                self._emptied |= dict.fromkeys(names)
                return
        else:
            assert isinstance(statement, NotUnderstood)
            database = self._session.database
            existing = (name for name in self._tables.known if self._tables.get(name) is not None)
            names = [name for name in existing if _mentions(statement, name, database)]
        for name in names:
            # Sessions that log statements do so for temporary tables, too.
            if (self._thread, name) not in self._temporary or self._tables.get(name) is not None:
                self._rewritten[name] = None

    def _failed(self, statement: Statement, error: int) -> None:
        """A statement that ended with an error may have had a part of its effect."""
        if isinstance(statement, DropTables) and error in _UNKNOWN_NAMES:
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
            return self._tables.of_database(statement.database)
        return named_tables(statement)

    def _is_shadowed(self, name: TableName) -> bool:
        """Whether the thread has a temporary table of the name, as far as statements show it.

        A server may have removed it at a restart, so the table is no longer certain.
        """
        if (self._thread, name) not in self._temporary:
            return False
        self._make_unsure(name, "a temporary table has the same name")
        return True

    def _make_unsure(self, name: TableName, reason: str) -> None:
        if self._tables.make_unsure(name, reason):
            self._rewritten[name] = None

    def _is_made(self, known: DatabaseChange | None) -> bool:
        """Whether CREATE DATABASE IF NOT EXISTS certainly makes the database."""
        was_dropped = known is not None and known.complete and known.collation is None
        return self._session.shows_creation or was_dropped

    def _is_absent(self, name: TableName) -> bool:
        """Whether it is certain that there is no such table."""
        database = self._databases.get(name.database)
        complete = database is not None and database.complete
        return self._tables.get(name) is None and (complete or name in self._tables.known)

    def _is_in_memory(self, name: TableName) -> bool:
        """Whether it is certain that the table's storage engine is MEMORY."""
        table = None if (self._thread, name) in self._temporary else self._tables.get(name)
        return table is not None and table.state is not None and table.state.engine in _IN_MEMORY

    def _is_sequence(self, name: TableName) -> bool:
        table = self._tables.get(name)
        return table is not None and table.state is not None and is_sequence(table.state.columns)

    def _database_collation(self, database: str) -> str | None:
        known = self._databases.get(database)
        return None if known is None else known.collation

    def _converted_to(self, database: str) -> str | None:
        """What CONVERT TO CHARACTER SET DEFAULT stands for with a table of this database."""
        session = self._session
        if session.default_is_of_context:
            return self._database_collation(database)
        if session.collation_database is not None:
            return session.collation_database
        return self._database_collation(session.database) if session.database else session.server_collation


def _lacks_charset(state: TableState) -> bool:
    return any(column.charset == UNKNOWN_CHARSET for column in state.columns)


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
