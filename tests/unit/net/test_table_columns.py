"""Definitions from the answers of a server's catalog."""

from __future__ import annotations

import pytest

from engine.binlog.table_definition import ColumnDefinition
from engine.net.client.connection import Connection
from engine.net.client.table_columns import describe_tables
from tests.support.lying_server import OK, Talk, lying_server

COLUMNS = [
    "TABLE_NAME",
    "ORDINAL_POSITION",
    "COLUMN_NAME",
    "COLUMN_TYPE",
    "CHARACTER_SET_NAME",
    "COLLATION_NAME",
    "IS_NULLABLE",
    "EXTRA",
    "COLUMN_DEFAULT",
    "FALSE",
]
ID = ColumnDefinition("id", "int", nullable=False, primary_key=1, computed_default=True)
SHOP = ColumnDefinition("shop", "int", nullable=False, primary_key=2)
OLD_TYPE = "varchar(9) /*!100301 COMPRESSED*/"
NAME = ColumnDefinition("name", "varchar(9) /*M!100301 COMPRESSED*/", "utf8mb4", "utf8mb4_bin", default="x")


def columns_in_any_order(talk: Talk) -> None:
    """A catalog with the tables `a` and `b`, whose columns have the same names and other keys.

    One has an attribute as older servers show it.
    """
    talk.log_in()
    assert "show_gipk" in talk.statement()
    talk.send(OK)
    assert "ORDER BY" not in talk.statement()
    rows = [
        ("a", "10", "name", OLD_TYPE, "utf8mb4", "utf8mb4_bin", "YES", "", "x", "0"),
        ("b", "2", "id", "int", None, None, "NO", "auto_increment", None, "0"),
        ("a", "9", "id", "int", None, None, "NO", "auto_increment", None, "0"),
        ("b", "1", "shop", "int", None, None, "NO", "", None, "0"),
    ]
    talk.answer(COLUMNS, rows)
    talk.statement()
    keys = [
        ("a", "PRIMARY", "id", "1", "BTREE"),
        ("b", "by_hash", "id", "1", "HASH"),
        ("b", "PRIMARY", "id", "1", "BTREE"),
        ("b", "PRIMARY", "shop", "2", "BTREE"),
    ]
    talk.answer(["TABLE_NAME", "INDEX_NAME", "COLUMN_NAME", "SEQ_IN_INDEX", "INDEX_TYPE"], keys)
    talk.statement()
    tables = [("a", "utf8mb4_bin", "BASE TABLE", "InnoDB"), ("b", None, "BASE TABLE", "MEMORY")]
    talk.answer(["TABLE_NAME", "TABLE_COLLATION", "TABLE_TYPE", "ENGINE"], tables)


@pytest.mark.timeout(20)
def test_columns_are_in_the_order_of_the_table() -> None:
    with lying_server(columns_in_any_order) as port, Connection.open("127.0.0.1", port, "u") as connection:
        found = describe_tables(connection, "shop", ["a", "b"])
    assert {name: each.columns for name, each in found.items()} == {"a": (ID, NAME), "b": (SHOP, ID)}
    assert found["a"].collation == "utf8mb4_bin" and found["b"].collation is None
