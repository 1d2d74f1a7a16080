"""Names in other letter case: statements with `lower_case_table_names=1`, and questions about tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.net.client.connection import Connection
from engine.net.client.table_columns import describe_tables
from engine.output.reader import Changes
from engine.output.schema_history import schema_history
from tests.servers import Server
from tests.support.engine_run import drain, end_of_binlog

pytestmark = pytest.mark.server

STATEMENTS = [
    "CREATE DATABASE Shop",
    "USE Shop",
    "CREATE TABLE Orders (Id INT, a INT)",
    "INSERT INTO Orders VALUES (1, 10)",
    "ALTER TABLE ORDERS CHANGE A Total INT",
    "INSERT INTO sHOP.oRDERS VALUES (2, 20)",
    "CREATE TABLE Items LIKE SHOP.orders",
    "INSERT INTO items VALUES (3, 30)",
    "RENAME TABLE Orders TO Old, ITEMS TO OrderS, OLD TO items",
    "INSERT INTO ORDERS VALUES (4, 40)",
    "ALTER TABLE shop.ITEMS CHANGE TOTAL price INT",
    "INSERT INTO ITEMS VALUES (5, 50)",
    "TRUNCATE Items",
    "CREATE TABLE ΠΕΛΑΤΕΣ (Id INT, a INT)",
    "INSERT INTO πελατεσ VALUES (6, 60)",
    "ALTER TABLE ΠΕΛΑΤΕΣ CHANGE a İ INT, RENAME İX",
    "INSERT INTO ix VALUES (7, 70)",
    "DROP DATABASE SHOP",
]
"""Columns of all tables have the same types, so that only statements show what they are called."""


def change_rows(out: Any, table: str) -> list[dict[str, Any]]:
    rows = sorted(Changes(out).read("shop", table).to_pylist(), key=lambda row: row["_seq"])
    return [
        {name: value for name, value in row.items() if name[0] != "_" and value is not None} for row in rows
    ]


@pytest.mark.parametrize("flavor", ["mysql-5.7", "mysql-5.6", "mariadb-11.8"])
def test_rows_have_the_names_of_their_time(
    own_server: Callable[..., Server], flavor: str, tmp_path: Path
) -> None:
    server = own_server(flavor, {"lower_case_table_names": "1"})
    start = "{}:{}".format(*end_of_binlog(server))
    server.execute(*STATEMENTS)
    drain(server, tmp_path, start=start, tables="shop.*")
    emptied: dict[str, Any] = {}
    assert change_rows(tmp_path, "orders") == [
        {"Id": 1, "a": 10},
        {"Id": 2, "Total": 20},
        {"Id": 4, "Total": 40},
        emptied,
    ]
    assert change_rows(tmp_path, "πελατεσ") == [{"Id": 6, "a": 60}, emptied]
    assert change_rows(tmp_path, "ix") == [{"Id": 7, "İ": 70}, emptied]
    assert change_rows(tmp_path, "items") == [
        {"Id": 3, "Total": 30},
        {"Id": 5, "price": 50},
        emptied,
        emptied,
    ]
    history = schema_history(tmp_path, "shop", "items", follow_renames=True)
    names = [
        tuple(column.name for column in entry.change.tables[0].columns or ())
        for entry in history
        if entry.change.tables
    ]
    assert names == [("Id", "a"), ("Id", "Total"), ("Id", "Total"), ("Id", "price"), ()]


def test_a_table_whose_name_differs_only_in_letter_case(server: Server) -> None:
    """Servers compare names in information_schema without regard to case."""
    server.execute("CREATE DATABASE `case`", "CREATE TABLE `case`.t (a INT)")
    connection = Connection.open(server.host, server.port, server.user, server.password)
    try:
        assert describe_tables(connection, "case", ["T", "missing"]) == {}
        assert list(describe_tables(connection, "case", ["t", "missing"])) == ["t"]
    finally:
        connection.close()
        server.execute("DROP DATABASE `case`")
