"""Tables that are renamed while they are read: what the output has of each name is complete, or set aside."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from engine.output.reader import Changes
from tests.servers import Server
from tests.support.engine_run import follow, wait_until
from tests.support.snapshot_runs import table_snapshots, wait_for_snapshots

pytestmark = pytest.mark.server

ROWS = 200
SLOW = {"snapshot_chunk_rows": 20, "snapshot_rate": 100, "commit_interval": 0.05, "workers": 1}
"""So slow that no table is read before it is renamed, on a busy machine, too."""


@pytest.fixture(scope="module", params=["mysql-9.7", "mysql-5.6", "mariadb-11.8"])
def server(request: pytest.FixtureRequest, shared_server: Callable[[str], Server]) -> Server:
    return shared_server(request.param)


def test_another_table_gets_the_name_of_one_that_is_read(server: Server, tmp_path: Path) -> None:
    """As online schema changes do at their end."""
    server.execute("DROP DATABASE IF EXISTS renamed", "CREATE DATABASE renamed")
    for number, table in enumerate(("orders", "other")):
        server.execute(f"CREATE TABLE renamed.{table} (id INT PRIMARY KEY, v INT)")
        server.execute_many(f"INSERT INTO renamed.{table} VALUES (%s, {number})", [(n,) for n in range(ROWS)])

    def some_rows_are_read() -> bool:
        table = table_snapshots(tmp_path).get("orders")
        return table is not None and table.rows >= 60

    with follow(server, tmp_path, start="snapshot", tables="renamed.*", **SLOW) as engine:
        wait_until(some_rows_are_read, "some rows", check=engine.must_run)
        server.execute("RENAME TABLE renamed.orders TO renamed.before, renamed.other TO renamed.orders")
        wait_for_snapshots(engine, tmp_path)
        engine.catch_up(server)
        assert engine.stop().status == 0
    states = table_snapshots(tmp_path)
    assert (states["orders"].state, states["before"].state) == ("done", "failed")
    changes = Changes(tmp_path).read("renamed", "orders").to_pylist()
    begin = max(number for number, row in enumerate(changes) if row["_change_type"] == "truncate")
    read = {row["id"]: row["v"] for row in changes[begin + 1 :]}
    assert read == dict.fromkeys(range(ROWS), 1)
