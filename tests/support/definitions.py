"""What a real server's catalog says of a table that there must be."""

from __future__ import annotations

from engine.binlog.table_definition import TableDefinition
from engine.net.client.connection import Connection
from engine.net.client.table_columns import describe_table


def definition_of(connection: Connection, database: str, table: str) -> TableDefinition:
    definition = describe_table(connection, database, table)
    assert definition is not None, f"there is no table {database}.{table}"
    return definition
