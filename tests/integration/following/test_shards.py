"""Engines that share one server with `--shard`: each table is in one output, and every output is right."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.commands.status import status
from engine.config.shard import Shard
from engine.output.reader import Changes
from tests.servers import Server
from tests.support.engine_run import assert_one_sentence, command_line, drain, end_of_binlog, run_command
from tests.support.snapshot_runs import table_snapshots

pytestmark = pytest.mark.server

PARTS = [Shard(number, 3) for number in (1, 2, 3)]
TABLES = ["Orders", "größen", *(f"t{number}" for number in range(10))]


@pytest.fixture(params=["mysql-9.7", "mariadb-11.8"])
def server(request: pytest.FixtureRequest, shared_server: Callable[[str], Server]) -> Server:
    return shared_server(request.param)


@pytest.fixture
def start(server: Server) -> str:
    """Where the changes of all tables begin."""
    server.execute("DROP DATABASE IF EXISTS sharded", "CREATE DATABASE sharded CHARACTER SET utf8mb4")
    begin = "{}:{}".format(*end_of_binlog(server))
    for table in TABLES:
        server.execute(
            f"CREATE TABLE sharded.`{table}` (id INT PRIMARY KEY, v INT)",
            f"INSERT INTO sharded.`{table}` VALUES (1, 1), (2, 2), (3, 3)",
            f"ALTER TABLE sharded.`{table}` ADD COLUMN w INT FIRST",
        )
    with server.connect(autocommit=False, database="sharded") as connection, connection.cursor() as cursor:
        for table in TABLES:
            cursor.execute(f"UPDATE `{table}` SET w = id, v = 20 WHERE id = 2")
            cursor.execute(f"DELETE FROM `{table}` WHERE id = 3")
        connection.commit()
    return begin


def replayed(out: Path, table: str) -> dict[int, tuple[Any, ...]]:
    rows: dict[int, tuple[Any, ...]] = {}
    for row in Changes(out).read("sharded", table).to_pylist():
        if row["_change_type"] in ("delete", "update_preimage"):
            del rows[row["id"]]
        else:
            rows[row["id"]] = (row["w"], row["id"], row["v"])
    return rows


def test_every_table_is_in_one_output(server: Server, start: str, tmp_path: Path) -> None:
    for part in PARTS:
        out = tmp_path / str(part.number)
        ended = drain(server, out, start=start, tables="sharded.*", shard=str(part))
        assert ended.status == 0, ended
        tables = {table for database, table in Changes(out).tables() if database == "sharded"}
        assert tables == {table for table in TABLES if part.has("sharded", table)} != set()
        for table in tables:
            selected = server.query(f"SELECT w, id, v FROM sharded.`{table}`")
            assert replayed(out, table) == {row[1]: row for row in selected}
        assert status(out).shard == str(part)


def test_a_snapshot_has_the_tables_of_its_part(server: Server, start: str, tmp_path: Path) -> None:
    part = PARTS[1]
    ended = drain(server, tmp_path, start="snapshot", tables="sharded.*", shard=str(part))
    assert ended.status == 0, ended
    assert set(table_snapshots(tmp_path)) == {table for table in TABLES if part.has("sharded", table)}


def test_the_output_of_another_part_is_refused(server: Server, start: str, tmp_path: Path) -> None:
    drain(server, tmp_path / "part", start=start, tables="sharded.*", shard="1/3")
    drain(server, tmp_path / "all", start=start, tables="sharded.*")
    for out, shard, advice in (
        ("part", {"shard": "1/2"}, "contains shard 1/3: give --shard 1/3, or"),
        ("part", {}, "contains shard 1/3: give --shard 1/3, or"),
        ("all", {"shard": "1/3"}, "contains all tables, not a shard: leave out --shard, or"),
        ("all", {"shard": "4/3"}, "--shard 4/3 is not one of several parts"),
    ):
        command = command_line(server, tmp_path / out, "--stop-at-end", tables="sharded.*", **shard)
        ended = run_command(*command)
        assert_one_sentence(ended)
        assert advice in ended.stderr
