"""What a table map leaves out, asked of the server that it came from.

The answer fits only as long as nobody alters the table between the write and the question, so it is checked
column by column against the table map.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping

from engine.decode.catalog import unpack
from engine.decode.table_map import TableMap
from engine.errors import EngineError
from engine.net.describe import describe_table, describe_tables
from engine.net.origins import ServerSource
from engine.net.side_connection import SideConnection


class TableCatalog:
    """Asks the server's information_schema for what its table maps leave out."""

    def __init__(self, origin: ServerSource, flavor: str, side: SideConnection) -> None:
        self._origin = origin
        self._flavor = flavor
        self._side = side

    def describe(self, table_map: TableMap) -> bytes | None:
        """The packed columns, null where the binlog tells all.

        Raises `EngineError` for columns that nobody can name.
        """
        if not self._is_asked(table_map):
            return None
        database, table = table_map.database, table_map.table
        packed = self._side.ask(lambda connection: describe_table(connection, database, table))
        misfit = (
            "the server has no such table any more" if packed is None else table_map.misfit(unpack(packed))
        )
        if misfit is None:
            return packed
        if table_map.needs_catalog and not self._origin.name_unknown_columns:
            raise EngineError(
                f"the columns of {database}.{table} cannot be named, because the table "
                f"was altered or dropped after this event was written ({misfit}): go on with "
                "--unknown-columns number, or start behind the change; binlog_row_metadata=FULL on the "
                "server prevents this"
            )
        return None

    def foresee(self, table_maps: Mapping[int, TableMap]) -> dict[int, bytes | None]:
        """The same for many tables with one question per database, by the keys given.

        Tables whose columns on the server are others than these, or that nobody can be asked about, are left
        out.
        """
        asked = {key: each for key, each in table_maps.items() if self._is_asked(each)}
        described: dict[int, bytes | None] = dict.fromkeys(table_maps.keys() - asked.keys())
        for database in {each.database for each in asked.values()}:
            maps = {key: each for key, each in asked.items() if each.database == database}
            columns = self._columns(database, {each.table for each in maps.values()})
            for key, each in maps.items():
                packed = columns.get(each.table)
                if packed is not None and each.misfit(unpack(packed)) is None:
                    described[key] = packed
        return described

    def _columns(self, database: str, tables: Collection[str]) -> dict[str, bytes]:
        """By table, as far as the server tells."""
        with contextlib.suppress(EngineError):
            return self._side.ask(lambda connection: describe_tables(connection, database, tables))
        return {}

    def _is_asked(self, table_map: TableMap) -> bool:
        """MariaDB always: its UUID, INET4 and INET6 columns look like BINARY in the binlog."""
        return table_map.needs_catalog or self._flavor == "mariadb"
