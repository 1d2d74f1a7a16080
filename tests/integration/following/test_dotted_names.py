"""Names that contain dots: two tables can have one name with the database before it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.output.reader import Changes
from tests.servers import Server
from tests.support.engine_run import drain, end_of_binlog

pytestmark = pytest.mark.server

COLUMNS = {("dotted", "x.y"): ["a", "b"], ("dotted.x", "y"): ["c", "d"]}
"""Of the tables, whose types are the same."""


@pytest.fixture
def tables(mysql97: Server) -> Iterator[str]:
    """Each has rows in the same batch; returns where that begins."""
    databases = [database for database, _ in COLUMNS]
    start = "{}:{}".format(*end_of_binlog(mysql97))
    mysql97.execute(*(f"CREATE DATABASE `{database}`" for database in databases))
    for (database, table), names in COLUMNS.items():
        columns = ", ".join(f"{name} INT" for name in names)
        mysql97.execute(f"CREATE TABLE `{database}`.`{table}` ({columns})")
    for number in range(3):
        mysql97.execute(
            *(f"INSERT INTO `{database}`.`{table}` VALUES ({number}, 0)" for database, table in COLUMNS)
        )
    yield start
    mysql97.execute(*(f"DROP DATABASE `{database}`" for database in databases))


@pytest.mark.parametrize("start", ["before", "snapshot"])
def test_each_table_has_its_own_columns(mysql97: Server, tables: str, tmp_path: Path, start: str) -> None:
    drain(mysql97, tmp_path, start=tables if start == "before" else start, tables="dotted*.*")
    changes = Changes(tmp_path)
    assert changes.tables() == list(COLUMNS)
    for (database, table), names in COLUMNS.items():
        rows = changes.read(database, table)
        assert rows.column_names[: len(names) + 1] == [*names, "_change_type"]
        assert rows.column(names[0]).to_pylist() == [0, 1, 2]
