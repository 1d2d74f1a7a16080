"""MariaDB's tables with system versioning: statements that change present rows, past ones and definitions.

After each round, what follows the tables is compared with SELECT, which shows their present rows.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.servers import Server
from tests.support.engine_run import drain, end_of_binlog

TABLES = ("plain", "declared", "keyless", "bare", "divided")
_PERIOD = (
    "s TIMESTAMP(6) GENERATED ALWAYS AS ROW START {visibility}, "
    "e TIMESTAMP(6) GENERATED ALWAYS AS ROW END {visibility}, PERIOD FOR SYSTEM_TIME (s, e)"
)
_CREATED = (
    "CREATE TABLE plain (id INT PRIMARY KEY, v INT) WITH SYSTEM VERSIONING",
    f"CREATE TABLE declared (id INT PRIMARY KEY, v INT, {_PERIOD}) WITH SYSTEM VERSIONING",
    "CREATE TABLE keyless (id INT, v INT) WITH SYSTEM VERSIONING",
    f"CREATE TABLE bare (id INT, v INT, {_PERIOD}) WITH SYSTEM VERSIONING",
    "CREATE TABLE divided (id INT PRIMARY KEY, v INT, n INT WITHOUT SYSTEM VERSIONING) "
    "WITH SYSTEM VERSIONING PARTITION BY SYSTEM_TIME LIMIT 2 PARTITIONS 3",
)
_CHANGED = (
    "INSERT INTO {table} (id, v) VALUES (1, 1), (2, 2), (3, 3), (4, 4), (5, 5)",
    "UPDATE {table} SET v = v + 10 WHERE id = 1",
    "UPDATE {table} SET id = 20 WHERE id = 2",
    "DELETE FROM {table} WHERE id IN (3, 4)",
    "INSERT INTO {table} (id, v) VALUES (3, 30)",
    "UPDATE {table} SET v = 31 WHERE id = 3",
    "REPLACE INTO {table} (id, v) VALUES (5, 50)",
)
_KEPT_HISTORY = (
    "SET SESSION system_versioning_alter_history = KEEP",
    "ALTER TABLE plain ADD added INT DEFAULT 7 FIRST",
    "ALTER TABLE declared CHANGE v w INT",
    "UPDATE plain SET v = 100 WHERE id = 1",
    "UPDATE declared SET w = 100 WHERE id = 1",
    "DELETE FROM declared WHERE id = 5",
    "UPDATE divided SET n = 1",
    "DELETE HISTORY FROM plain",
    "DELETE HISTORY FROM keyless",
    "UPDATE keyless SET v = 100 WHERE id = 1",
)
_WITHOUT_VERSIONS = (
    "ALTER TABLE plain DROP SYSTEM VERSIONING",
    "ALTER TABLE keyless DROP SYSTEM VERSIONING",
    "ALTER TABLE declared DROP s, DROP e, DROP SYSTEM VERSIONING",
    "UPDATE plain SET v = 101 WHERE id = 1",
    "UPDATE declared SET w = 101 WHERE id = 1",
    "DELETE FROM plain WHERE id = 20",
    "INSERT INTO keyless VALUES (6, 6), (6, 6)",
)
_WITH_VERSIONS_AGAIN = (
    "ALTER TABLE plain ADD SYSTEM VERSIONING",
    "ALTER TABLE keyless ADD SYSTEM VERSIONING",
    "ALTER TABLE declared ADD SYSTEM VERSIONING",
    "UPDATE plain SET v = 102 WHERE id = 1",
    "UPDATE declared SET w = 102 WHERE id = 1",
    "DELETE FROM plain WHERE id = 5",
    "DELETE FROM keyless WHERE id = 6 LIMIT 1",
    "UPDATE keyless SET v = 7 WHERE id = 6",
)


def assert_present_rows(
    server: Server,
    database: str,
    out: Path,
    check: Callable[[str], None],
    *,
    image: str = "FULL",
    shows_periods: bool = True,
) -> None:
    """Compare each table, by `check(name)`, after each round of statements and the commit of its rows.

    The tables are in the catalog before the output begins. `image`: the value of `binlog_row_image`.
    """
    created = (each.format(visibility="" if shows_periods else "INVISIBLE") for each in _CREATED)
    changed = tuple(each.format(table=table) for table in TABLES for each in _CHANGED)
    with server.connect() as connection, connection.cursor() as cursor:
        for statement in (f"CREATE DATABASE {database}", f"USE {database}", *created):
            cursor.execute(statement)
        cursor.execute(f"SET SESSION binlog_row_image = {image}")
        start = "{}:{}".format(*end_of_binlog(server))
        for statements in (changed, _KEPT_HISTORY, _WITHOUT_VERSIONS, _WITH_VERSIONS_AGAIN):
            for statement in statements:
                cursor.execute(statement)
            drain(server, out, start=start, tables=f"{database}.*")
            start = "earliest"
            for table in TABLES:
                check(f"{database}.{table}")
        cursor.execute(f"DROP DATABASE {database}")
