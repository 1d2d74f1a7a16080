"""Proves table definitions with the server's information_schema.

The server answers with the current definition of the table, and the table map may be old. So an answer is
compared with the table map column by column, and used only if it is valid at the table map's position: no
statement from there to the end of the binlog, determined after the answer, may have changed the table. If one
has changed nothing but the primary key, the answer counts without it. If what the statements did can be
undone (`engine.schema.earlier_definition`), the definition before them counts.

That is sufficient because a server shows a new definition only when its statement is in the binlog. MariaDB,
and MySQL before 8.0, write the statement while they hold the table's metadata lock, for which
information_schema waits. MySQL 8.0 and later commit it in the transaction that changes the data dictionary,
and so write it before the change is readable; only a table whose engine has no atomic DDL (MyISAM) may show
its new columns an instant earlier. Statements that a server does not log (sql_log_bin=0) are not detected.

A second query would prove nothing more: a statement stays in the binlog, and a later answer is only newer.
But an answer that is valid from a position to the end is valid for all table maps between, and is learned.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from itertools import islice

from engine.binlog.events.statements import Query
from engine.binlog.position import BinlogPosition
from engine.binlog.table_definition import TableDefinition
from engine.binlog.table_map import TableMap
from engine.errors import EngineError
from engine.net.batching.stream_position import StreamPosition
from engine.net.client import server_queries
from engine.net.client.assumptions import Assumptions
from engine.net.client.side_connection import SideConnection
from engine.net.client.statements_ahead import StatementsAhead
from engine.net.client.table_columns import (
    MemberDoubts,
    database_collations,
    describe_table,
    describe_tables,
    tables_with_generated_columns,
    user_tables,
)
from engine.pipeline.process_settings import ServerSource
from engine.schema.changes import TableName
from engine.schema.earlier_definition import EarlierDefinitions
from engine.schema.successors import Successor

_TABLES_PER_QUERY = 500
_MOST_SUCCESSORS = 20
"""Tables that are looked at for the earlier definition of one: it may have been copied thousands of times."""


class AlteredMeanwhile(EngineError):
    """A table was altered between the place where the stream starts and now; a later place will do.

    At once: while tables are altered all the time, each pause is time for the next statement.
    """

    retryable = True
    unproven = True


class CatalogProofs:
    """Implements `engine.net.batching.schema_follower.Proofs`.

    `here`: the stream's binlog position. Each table map passed in is at or after it, without a statement in
    between that may define a table. `ahead` reads the same server's binlog; `earlier` knows that server.
    """

    def __init__(
        self,
        origin: ServerSource,
        side: SideConnection,
        ahead: StatementsAhead,
        earlier: EarlierDefinitions,
        here: Callable[[], StreamPosition],
        doubts: MemberDoubts,
    ) -> None:
        self._assumptions = Assumptions(allowed=origin.may_assume)
        self._origin = origin
        self._side = side
        self._ahead = ahead
        self._earlier = earlier
        self._here = here
        self._doubts = doubts

    def prove(self, table_map: TableMap) -> TableDefinition | str:
        """The definition, or why it is not certain, in words. Raises `EngineError` if the server is lost."""
        here = self._here()
        database, table = table_map.database, table_map.table
        found = self._definition(TableName(database, table))
        doubt = _misfit(table_map, found)
        if not (doubt is None and self._assumed([TableName(database, table)], here)):
            self._ahead.read(here, self._end())
            doubt = self._change(database, table, here) or doubt
        if found is not None and doubt is None:
            return self._with_certain_key(found, here)
        earlier = self._before_changes(table_map, found, here)
        return earlier or f"the table was altered or dropped after this event was written: {doubt}"

    def prove_ahead(self, table_maps: Mapping[int, TableMap]) -> dict[int, TableDefinition]:
        """The same for many tables with one query per database, without those that are not certain."""
        here = self._here()
        fitting: dict[int, TableDefinition] = {}
        for database in {each.database for each in table_maps.values()}:
            maps = {key: each for key, each in table_maps.items() if each.database == database}
            found = self._tables(database, {each.table for each in maps.values()})
            for key, each in maps.items():
                if _misfit(each, found.get(each.table)) is None:
                    fitting[key] = found[each.table]
        if self._assumed([TableName(each.database, each.table) for each in fitting.values()], here):
            return fitting
        if fitting:
            self._ahead.read(here, self._end())
        return {
            key: self._with_certain_key(definition, here)
            for key, definition in fitting.items()
            if self._change(definition.database, definition.table, here) is None
        }

    def definitions_since(
        self, position: BinlogPosition, wants: Callable[[str, str], bool]
    ) -> list[TableDefinition]:
        """The definitions of all wanted tables that were not created after `position`.

        Raises `AlteredMeanwhile` if a statement after it has changed one of them, and `EngineError` if the
        server cannot be asked.
        """
        tables = self._side.ask(user_tables)
        found: list[TableDefinition] = []
        for database, names in tables.items():
            wanted = [name for name in names if wants(database, name)]
            for first in range(0, len(wanted), _TABLES_PER_QUERY):
                found += self._tables(database, wanted[first : first + _TABLES_PER_QUERY]).values()
        here = StreamPosition(position.file, position.position, position.position)
        self._ahead.read(here, self._end())
        unchanged = []
        for each in found:
            change = self._ahead.change_of(each.database, each.table, here)
            if change is None:
                unchanged.append(self._with_certain_key(each, here))
            elif not change.what.lstrip().upper().startswith("CREATE"):
                raise AlteredMeanwhile(
                    f"{each.database}.{each.table} was altered while its definition was read ({change.what})"
                )
        return unchanged

    def databases(self) -> dict[str, str]:
        """The default collation of each database that no statement may have changed since the stream's place.

        Raises `EngineError` if the server is lost.
        """
        here = self._here()
        found = self._side.ask(database_collations)
        self._ahead.read(here, self._end())
        return {name: each for name, each in found.items() if self._change(name, "", here) is None}

    def with_generated_columns(self) -> set[TableName]:
        """The tables of a MariaDB server that have generated columns or row versions now.

        Raises `EngineError`.
        """
        return self._side.ask(tables_with_generated_columns)

    def passed(self, query: Query, server_version: str, flavor: str, position: BinlogPosition) -> None:
        """The stream comes to a statement. Raises `Disproved` if that may have changed an assumed one."""
        self._assumptions.passed(query, server_version, flavor, position)

    def awaits_proof(self, position: BinlogPosition) -> bool:
        """Whether what the stream has brought up to `position` was decoded with assumed definitions."""
        return self._assumptions.awaits_proof(position)

    def _assumed(self, tables: Collection[TableName], here: StreamPosition) -> bool:
        """Whether the stream goes on with the definitions of these tables before they are proven."""
        if not (tables and self._origin.may_assume) or self._ahead.end is not None:
            return False
        end = self._end()
        files = None if end is None else self._side.ask(server_queries.known_logs)
        if end is None or files is None:
            return False
        return self._assumptions.take(tables, here.event, end, files)

    def _tables(self, database: str, tables: Collection[str]) -> dict[str, TableDefinition]:
        """The definitions by table name, for the tables that the server shows."""
        with contextlib.suppress(EngineError):
            if len(tables) > 1:
                return self._side.ask(
                    lambda connection: describe_tables(connection, database, tables, self._doubts)
                )
            (table,) = tables
            found = self._definition(TableName(database, table))
            return {} if found is None else {table: found}
        return {}

    def _end(self) -> BinlogPosition | None:
        """The current end of the server's binlog; None if it cannot be queried."""
        if self._origin.semi_sync:
            # The query needs the binlog's lock, which a commit may hold until this process acknowledges it.
            return None
        return self._side.ask(server_queries.known_end)

    def _before_changes(
        self, table_map: TableMap, found: TableDefinition | None, here: StreamPosition
    ) -> TableDefinition | None:
        """The definition here if what changed the table since can be undone; `found`: the present one.

        The table may have another name now, or only a copy of it may be left.
        """
        table = TableName(table_map.database, table_map.table)
        now = {table: found}
        others = {each.table for each in self._successors(table, here)} - {table}
        if others:
            now |= {other: self._definition(other) for other in others}
            # As above: what was altered while the server was asked has a statement.
            self._ahead.read(here, self._end())
        for each in self._successors(table, here):
            after = now.get(each.table)
            before = None if after is None else self._earlier.find(after, each, table_map)
            if before is not None:
                return before
        return None

    def _successors(self, table: TableName, here: StreamPosition) -> Iterator[Successor]:
        """The first ones of those that the server may have now."""
        every = self._earlier.successors(
            table, lambda name, since: self._ahead.statements_about(name, since, here)
        )
        return islice(every, _MOST_SUCCESSORS)

    def _definition(self, table: TableName) -> TableDefinition | None:
        """The present definition; None if the server does not have the table."""
        return self._side.ask(
            lambda connection: describe_table(connection, table.database, table.table, self._doubts)
        )

    def _with_certain_key(self, definition: TableDefinition, here: StreamPosition) -> TableDefinition:
        """Without the primary key, if that may be another one since."""
        if not self._ahead.changes_of(definition.database, definition.table, here):
            return definition
        return replace(
            definition, columns=tuple(replace(column, primary_key=None) for column in definition.columns)
        )

    def _change(self, database: str, table: str, here: StreamPosition) -> str | None:
        """The statement that may have changed the table since, as text; None if there is none."""
        change = self._ahead.change_of(database, table, here)
        if change is None:
            return None
        at = change.position
        return f"the event at {at.file} position {at.position} may have changed it: {change.what}"


def _misfit(table_map: TableMap, found: TableDefinition | None) -> str | None:
    """Why the catalog's columns cannot be those of the table map, as text; None if they match."""
    if found is None:
        return "the server does not have the table any more"
    return table_map.mismatch(found.columns)
