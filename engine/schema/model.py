"""The definitions of tables, and the default collations of databases, at the stream's position.

`SchemaModel` follows statements, and learns definitions from table maps, the server and files. Each step that
changes something is returned as a `SchemaChange`; the newest record of each table restores the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from engine.binlog.events.query_status import takes_effect
from engine.binlog.events.statements import Query
from engine.binlog.position import BinlogPosition
from engine.binlog.table_definition import ColumnDefinition, TableDefinition
from engine.schema.changes import (
    LONGEST_STATEMENT,
    DatabaseChange,
    SchemaChange,
    Source,
    TableChange,
    TableName,
)
from engine.schema.execution import Execution, Outcome
from engine.schema.names import NameRules, folded
from engine.schema.parser import parse_logged
from engine.schema.server_settings import USUAL_SETTINGS, ServerSettings
from engine.schema.session import StatementSession, session_of
from engine.schema.statement_text import with_omissions
from engine.schema.statements import CreateTable, Statement, manipulates

START_OF_STREAM = BinlogPosition("", 0)
"""Position of the records of `SchemaModel.state`."""


class SchemaModel:
    """The definitions in force. `settings`: of the server."""

    def __init__(self, flavor: str, settings: ServerSettings = USUAL_SETTINGS) -> None:
        self._flavor = flavor
        self._settings = settings
        self._names = NameRules(settings.lower_case_table_names)
        self._tables: dict[TableName, TableChange] = {}
        """The newest record of every table that was ever known."""
        self._databases: dict[str, DatabaseChange] = {}
        self._temporary: frozenset[tuple[int, TableName]] = frozenset()
        """Thread and name of temporary tables, as far as statements made them."""
        self.latest: BinlogPosition | None = None
        """The position of the latest event that was followed or learned from."""

    def restore(self, changes: Iterable[SchemaChange]) -> None:
        """Continue from stored records, in their order."""
        for change in changes:
            self._take(change)

    def find(self, database: str, table: str) -> TableDefinition | None:
        """The table's definition; None if it is not certain, or not known."""
        known = self._known(database, table)
        return None if known is None or known.doubt is not None else known.definition

    def doubt(self, database: str, table: str) -> str | None:
        """Why the table's definition is not certain; None if it is, or if nothing is known of the table."""
        known = self._known(database, table)
        return None if known is None else known.doubt

    def tables(self) -> Iterator[TableDefinition]:
        """All certain definitions."""
        for known in self._tables.values():
            if known.definition is not None and known.doubt is None:
                yield known.definition

    def has_definitions_of(self, other: SchemaModel) -> bool:
        """Whether all that the models know is equal, wherever in the stream they learned it."""
        return (
            self._tables == other._tables
            and self._databases == other._databases
            and self._temporary == other._temporary
        )

    def state(self) -> SchemaChange:
        """One record with all that `restore` needs."""
        return SchemaChange(
            "statement",
            START_OF_STREAM,
            tables=tuple(self._tables.values()),
            databases=tuple(self._databases.values()),
        )

    def learn(
        self,
        source: Source,
        position: BinlogPosition,
        definition: TableDefinition,
    ) -> SchemaChange | None:
        """Take a definition that is certain; None if it is known already.

        Columns count as the same by their names, if the definition before was certain. That one stays where
        the new one only lacks characters that catalogs cannot show.
        """
        collation = definition.collation
        name = self._names.stored(TableName(definition.database, definition.table))
        known = self._tables.get(name)
        before = None if known is None or known.doubt is not None else known.columns
        columns = definition.columns
        if before is not None and _are_shown_as(before, columns):
            columns = before
        if before == columns and (collation is None or (known and known.collation == collation)):
            return None
        return self._changed(
            source,
            position,
            TableChange(
                name,
                self._next_version(name),
                columns,
                previous_names=_previous_names(before, columns),
                collation=collation if collation is not None or known is None else known.collation,
            ),
        )

    def knows_database(self, database: str) -> bool:
        """Whether statements have defined or dropped the database."""
        return self._names.stored_database(database) in self._databases

    def learn_database(
        self, source: Source, position: BinlogPosition, database: str, collation: str | None
    ) -> SchemaChange | None:
        """Take a database's default collation; None if it is known already."""
        change = DatabaseChange(self._names.stored_database(database), collation)
        if self._databases.get(change.database) == change:
            return None
        step = SchemaChange(source, position, databases=(change,))
        self._take(step)
        return step

    def mark_unsure(self, database: str, table: str, reason: str, position: BinlogPosition) -> SchemaChange:
        """The table's definition is not certain from here on."""
        name = self._names.stored(TableName(database, table))
        return self._changed("table map", position, TableChange(name, self._next_version(name), doubt=reason))

    def execute(
        self,
        query: Query,
        server_version: str,
        position: BinlogPosition,
        learn_databases: Callable[[], object] = lambda: None,
    ) -> SchemaChange | None:
        """Follow a statement; None if it changes neither definitions nor, without row events, rows.

        Where the default of a database that is not known decides a definition, `learn_databases` is called,
        which may make it known.
        """
        self.latest = position
        if not takes_effect(query.status):
            return None
        session = session_of(query, server_version, self._flavor, self._settings)
        statement = parse_logged(query, session)
        if isinstance(statement, CreateTable):
            statement = with_omissions(query.statement, statement, session)
        outcome = self._outcome(statement, session, query)
        if outcome.lacks_default:
            learn_databases()
            outcome = self._outcome(statement, session, query)
        self._temporary = outcome.temporary
        source: Source = "data manipulation" if outcome.rewritten and manipulates(statement) else "statement"
        step = self._step(source, outcome, query, position)
        if not (step.tables or step.databases or step.changes_rows):
            return None
        self._take(step)
        return step

    def _outcome(self, statement: Statement, session: StatementSession, query: Query) -> Outcome:
        execution = Execution(session, self._tables, self._databases, self._temporary, query.thread_id)
        return execution.run(statement, query.error_code)

    def _step(self, source: Source, outcome: Outcome, query: Query, position: BinlogPosition) -> SchemaChange:
        return SchemaChange(
            source,
            position,
            query.statement[:LONGEST_STATEMENT],
            tuple(replace(table, version=self._next_version(table.name)) for table in outcome.tables),
            outcome.databases,
            outcome.emptied,
            outcome.rewritten,
            outcome.rolled_back,
        )

    def _known(self, database: str, table: str) -> TableChange | None:
        return self._tables.get(self._names.stored(TableName(database, table)))

    def _next_version(self, name: TableName) -> int:
        known = self._tables.get(name)
        return 1 if known is None else known.version + 1

    def _changed(self, source: Source, position: BinlogPosition, table: TableChange) -> SchemaChange:
        step = SchemaChange(source, position, tables=(table,))
        self._take(step)
        return step

    def _take(self, step: SchemaChange) -> None:
        self.latest = step.position
        for table in step.tables:
            self._tables[table.name] = table
        for database in step.databases:
            self._databases[database.database] = database


def _are_shown_as(columns: tuple[ColumnDefinition, ...], shown: tuple[ColumnDefinition, ...]) -> bool:
    return len(columns) == len(shown) and all(map(ColumnDefinition.is_shown_as, columns, shown))


def _previous_names(
    before: tuple[ColumnDefinition, ...] | None, columns: tuple[ColumnDefinition, ...]
) -> tuple[str | None, ...] | None:
    if before is None:
        return None
    names = {folded(column.name): column.name for column in before}
    return tuple(names.get(folded(column.name)) for column in columns)
