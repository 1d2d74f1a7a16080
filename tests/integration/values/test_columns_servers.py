"""Every column type on real servers: what the cells decode to is what SELECT gives, value by value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from engine.binlog.event_types import TABLE_MAP_EVENT
from engine.binlog.files import read_events
from engine.binlog.format_description import FormatDescription
from engine.binlog.table_definition import ColumnDefinition
from engine.binlog.table_map import TableMap
from engine.decode.arrow.codec import Options
from engine.decode.inspect.single_event import decode_rows
from engine.net.client.connection import Connection
from tests.servers import Server
from tests.support.column_cases import CASES, TEMPORAL, UUIDS, Case, comparable, temporal
from tests.support.definitions import definition_of

pytestmark = pytest.mark.server

DATABASE = "columns"
WRITE_ROWS = (23, 30)


UUIDS += temporal("6ccd780c-baba-7026-f564-5b8c65602400", "ffffffff-ffff-ffff-ffff-ffffffffff00")


def test_every_column_type(server: Server, metadata: str) -> None:
    assert_same_values(server, CASES, full_metadata=metadata == "full metadata")


def assert_same_values(server: Server, all_cases: list[Case], *, full_metadata: bool) -> None:
    """Store every case's values in a table of its own, and compare what was logged with what was selected."""
    cases = {f"t{n}": case for n, case in enumerate(all_cases) if case.is_on(server.flavor)}
    server.execute(f"DROP DATABASE IF EXISTS {DATABASE}", f"CREATE DATABASE {DATABASE}")
    server.flush_binlog()
    with server.connect(database=DATABASE, conv={}) as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = '', time_zone = '+00:00'")
        wants = {}
        for table, case in cases.items():
            cursor.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY AUTO_INCREMENT, v {case.declared})")
            rows = ", ".join(f"({value})" for value in [*case.values, "NULL"])
            cursor.execute(f"INSERT INTO {table} (v) VALUES {rows}")
            cursor.execute(f"SELECT {case.select.format('v')} FROM {table} ORDER BY id")
            wants[table] = [value for (value,) in cursor.fetchall()]
    binlog = server.flush_binlog()
    with Connection.open(server.host, server.port, server.user, server.password) as connection:
        catalog = {table: definition_of(connection, DATABASE, table).columns for table in cases}
    logged = logged_values(binlog, declared_only(catalog) if full_metadata else catalog)
    assert logged.keys() == wants.keys()
    for table, case in cases.items():
        got = [None if value is None else case.shown(value) for value in logged[table]]
        assert got == [comparable(case, want) for want in wants[table]], case.declared


@pytest.mark.parametrize("flavor", ["mariadb-10.11", "mariadb-11.8"])
def test_temporal_columns_as_old_mariadb_stored_them(
    shared_server: Callable[[str], Server], flavor: str
) -> None:
    server = shared_server(flavor)
    server.execute("SET GLOBAL mysql56_temporal_format = OFF")
    try:
        assert_same_values(server, TEMPORAL, full_metadata=False)
    finally:
        server.execute("SET GLOBAL mysql56_temporal_format = ON")


def declared_only(
    catalog: dict[str, tuple[ColumnDefinition, ...]],
) -> dict[str, tuple[ColumnDefinition, ...] | None]:
    """The catalog of tables with types that only it contains; for the others the table maps must suffice."""
    only_in_catalog = ("uuid", "inet4", "inet6", "vector")
    return {
        table: columns if columns[1].data_type in only_in_catalog else None
        for table, columns in catalog.items()
    }


def logged_values(
    binlog: Path, catalog: Mapping[str, tuple[ColumnDefinition, ...] | None]
) -> dict[str, list[Any]]:
    """Table → values of column v in its inserted rows."""
    events = [event for _, event in read_events(binlog)]
    description = FormatDescription.parse(events[0])
    maps: dict[bytes, TableMap] = {}
    values: dict[str, list[Any]] = {}
    for event in events:
        if event[4] == TABLE_MAP_EVENT:
            maps[event[19:25]] = TableMap.parse(event, description)
        elif event[4] in WRITE_ROWS:
            table_map = maps[event[19:25]]
            columns = table_map.columns(catalog[table_map.table])
            rows = decode_rows(event, columns, description, Options(temporal_text=True))
            logged = values.setdefault(table_map.table, [])
            assert rows.column(0).to_pylist() == list(range(len(logged) + 1, len(logged) + rows.num_rows + 1))
            logged += rows.column(1).to_pylist()
    return values
