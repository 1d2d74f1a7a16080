"""Reads from the server's information_schema what a table map does not contain.

The server answers with the current definition of the table, and the table map may be old. So an answer is
compared with the table map column by column, and used only if it is valid at the table map's position: no
statement from there to the end of the binlog, determined after the answer, may have changed the table.

That is sufficient because a server shows a new definition only when its statement is in the binlog. MariaDB,
and MySQL before 8.0, write the statement while they hold the table's metadata lock, for which
information_schema waits. MySQL 8.0 and later commit it in the transaction that changes the data dictionary,
and so write it before the change is readable; only a table whose engine has no atomic DDL (MyISAM) may show
its new columns an instant earlier. Statements that a server does not log (sql_log_bin=0) are not detected.

A second query would prove nothing more: a statement stays in the binlog, and a later answer is only newer.
But an answer that is valid from a position to the end is valid for all table maps between, and is cached.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Mapping

from engine.binlog.position import BinlogPosition
from engine.binlog.table_definition import unpack
from engine.binlog.table_map import TableMap
from engine.errors import EngineError
from engine.net.batching.stream_position import StreamPosition
from engine.net.client import server_queries
from engine.net.client.refusals import Refusal
from engine.net.client.side_connection import SideConnection
from engine.net.client.statements_ahead import StatementsAhead
from engine.net.client.table_columns import describe_table, describe_tables
from engine.pipeline.process_settings import ServerSource

MOST_REMEMBERED = 20_000
"""The largest number of cached answers; when it is reached, the cache is cleared."""


class TableCatalog:
    """Completes table maps with the server's information_schema.

    `here`: the stream's binlog position. Each table map passed in is at or after it, without a statement in
    between that may define a table. `ahead` reads the same server's binlog.
    """

    def __init__(
        self,
        origin: ServerSource,
        flavor: str,
        side: SideConnection,
        ahead: StatementsAhead,
        here: Callable[[], StreamPosition],
    ) -> None:
        self._origin = origin
        self._flavor = flavor
        self._side = side
        self._ahead = ahead
        self._here = here
        self._held: dict[tuple[str, str], tuple[bytes, BinlogPosition]] = {}
        """Table → its packed columns, and the position up to which they are valid."""

    def describe(self, table_map: TableMap) -> bytes | None:
        """The packed columns; None if the table map contains everything.

        If names or types are not certain, the result is None with `name_unknown_columns`; without it, the
        method raises `EngineError`.
        """
        if not self._is_asked(table_map):
            return None
        here = self._here()
        remembered = self._remembered(table_map, here)
        if remembered is not None:
            return remembered
        database, table = table_map.database, table_map.table
        packed = self._side.ask(lambda connection: describe_table(connection, database, table))
        doubt = _misfit(table_map, packed)
        if doubt is None:
            self._ahead.read(here, self._end())
            doubt = self._change(table_map, here)
        if doubt is None:
            assert packed is not None
            self._remember(table_map, packed)
            return packed
        if self._origin.name_unknown_columns:
            return None
        raise EngineError(_sentence(table_map, doubt))

    def describe_ahead(self, table_maps: Mapping[int, TableMap]) -> dict[int, bytes | None]:
        """The same for many tables with one query per database, by the keys of `table_maps`.

        Tables whose columns are not certain are missing in the result.
        """
        here = self._here()
        described: dict[int, bytes | None] = {}
        asked: dict[int, TableMap] = {}
        for key, each in table_maps.items():
            if not self._is_asked(each):
                described[key] = None
            elif (remembered := self._remembered(each, here)) is not None:
                described[key] = remembered
            else:
                asked[key] = each
        with contextlib.suppress(EngineError):
            described |= self._foresee(asked, here)
        return described

    def _foresee(self, asked: Mapping[int, TableMap], here: StreamPosition) -> dict[int, bytes | None]:
        fitting: dict[int, bytes] = {}
        for database in {each.database for each in asked.values()}:
            maps = {key: each for key, each in asked.items() if each.database == database}
            columns = self._columns(database, {each.table for each in maps.values()})
            for key, each in maps.items():
                packed = columns.get(each.table)
                if packed is not None and _misfit(each, packed) is None:
                    fitting[key] = packed
        if fitting:
            self._ahead.read(here, self._end())
        described: dict[int, bytes | None] = {}
        for key, packed in fitting.items():
            if self._change(asked[key], here) is None:
                self._remember(asked[key], packed)
                described[key] = packed
        return described

    def _columns(self, database: str, tables: Collection[str]) -> dict[str, bytes]:
        """The packed columns by table name, for the tables that the server shows."""
        with contextlib.suppress(EngineError):
            return self._side.ask(lambda connection: describe_tables(connection, database, tables))
        return {}

    def _is_asked(self, table_map: TableMap) -> bool:
        """Whether the catalog is needed; MariaDB's also for types: its binlogs never contain some of them."""
        return table_map.needs_catalog or (self._flavor == "mariadb" and table_map.hides_types)

    def _end(self) -> BinlogPosition | None:
        """The current end of the server's binlog; None if it cannot be queried."""
        if self._origin.semi_sync:
            # The query needs the binlog's lock, which a commit may hold until this process acknowledges it.
            return None
        try:
            end = self._side.ask(server_queries.current_position)
        except Refusal as refusal:
            if refusal.retryable:
                raise
            # The statement needs a privilege that a dump does not need.
            return None
        return BinlogPosition(end.file, end.position)

    def _change(self, table_map: TableMap, here: StreamPosition) -> str | None:
        """The statement that may have changed the table since, as text; None if there is none."""
        change = self._ahead.change_of(table_map.database, table_map.table, here)
        if change is None:
            return None
        at = change.position
        return f"the event at {at.file} position {at.position} may have changed it: {change.what}"

    def _remembered(self, table_map: TableMap, here: StreamPosition) -> bytes | None:
        packed, end = self._held.get((table_map.database, table_map.table), (None, BinlogPosition("", 0)))
        holds = packed is not None and here.is_before(end) and _misfit(table_map, packed) is None
        return packed if holds else None

    def _remember(self, table_map: TableMap, packed: bytes) -> None:
        if len(self._held) >= MOST_REMEMBERED:
            self._held.clear()
        if self._ahead.end is not None:
            self._held[table_map.database, table_map.table] = packed, self._ahead.end


def _misfit(table_map: TableMap, packed: bytes | None) -> str | None:
    """Why the catalog's columns cannot be those of the table map, as text; None if they match."""
    if packed is None:
        return "the server does not have the table any more"
    return table_map.mismatch(unpack(packed))


def _sentence(table_map: TableMap, doubt: str) -> str:
    name = f"{table_map.database}.{table_map.table}"
    if table_map.needs_catalog:
        problem = f"the columns of {name} cannot be named"
        remedy = "; binlog_row_metadata=FULL on the server prevents this"
    else:
        problem = f"the types of {name}'s columns are not certain (UUID, INET and VECTOR look like BINARY)"
        remedy = ""
    return (
        f"{problem}, because the table was altered or dropped after this event was written ({doubt}): "
        f"continue with --unknown-columns number, or start after the change{remedy}"
    )
