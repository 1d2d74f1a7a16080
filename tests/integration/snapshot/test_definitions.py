"""A table of which an output has only a snapshot: its definition is there, whatever the binlog contains."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from engine.commands.schema import schema_report
from tests.servers import Server
from tests.support.engine_run import drain, follow
from tests.support.snapshot_runs import request, wait_for_snapshots

pytestmark = pytest.mark.server

DATABASE = "only_snapshots"
SERVERS = {"mysql-9.7": "FULL", "mariadb-11.8": "FULL", "mysql-5.7": None}
"""With `binlog_row_metadata`, where there is such a variable."""


@pytest.fixture(scope="module", params=SERVERS)
def server(request: pytest.FixtureRequest, own_server: Callable[..., Server]) -> Server:
    metadata = SERVERS[request.param]
    started = own_server(request.param, {"binlog_row_metadata": metadata} if metadata else {})
    started.execute(
        f"CREATE DATABASE {DATABASE}",
        f"CREATE TABLE {DATABASE}.t (id INT PRIMARY KEY, name VARCHAR(9))",
        f"INSERT INTO {DATABASE}.t VALUES (1, 'a')",
    )
    return started


def has_definition(out: Path) -> bool:
    (table,) = schema_report(out, None, None).values()["tables"]
    return table["column_count"] == 2 and table["primary_key"] == ["id"]


def test_an_output_that_begins_with_a_snapshot(server: Server, tmp_path: Path) -> None:
    drain(server, tmp_path, start="snapshot", tables=f"{DATABASE}.*")
    assert has_definition(tmp_path)


def test_a_request_to_a_running_engine(server: Server, tmp_path: Path) -> None:
    with follow(server, tmp_path, start="latest", tables=f"{DATABASE}.*") as engine:
        engine.catch_up(server)
        assert request(tmp_path, f"{DATABASE}.t").status == 0
        wait_for_snapshots(engine, tmp_path)
        assert engine.stop().status == 0
    assert has_definition(tmp_path)
