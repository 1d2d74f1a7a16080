"""Connections of a snapshot on a server that takes long to answer, or ends those that are idle."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from engine.config.server_address import Login, ServerAddress
from engine.net.client.connection import READ_SECONDS
from engine.snapshot.sessions import open_readers
from tests.servers import Server
from tests.support.engine_run import follow, wait_until
from tests.support.snapshot_runs import request, table_snapshots

pytestmark = pytest.mark.server

SLOW = {"snapshot_rate": 50, "commit_interval": 0.05, "workers": 1}


@pytest.fixture(scope="module", params=["mysql-9.7", "mysql-5.6", "mariadb-11.8"])
def server(request: pytest.FixtureRequest, shared_server: Callable[[str], Server]) -> Server:
    return shared_server(request.param)


def is_done(out: Path, table: str) -> bool:
    known = table_snapshots(out).get(table)
    return known is not None and known.state == "done"


def test_connections_are_idle_for_longer_than_the_server_allows(server: Server, tmp_path: Path) -> None:
    """While rows wait for the limit of the rate, and between two requests."""
    server.execute("DROP DATABASE IF EXISTS idle", "CREATE DATABASE idle")
    for table in ("t", "u"):
        server.execute(f"CREATE TABLE idle.{table} (id INT PRIMARY KEY)")
        server.execute_many(f"INSERT INTO idle.{table} VALUES (%s)", [(n,) for n in range(100)])
    with follow(server, tmp_path, start="latest", tables="idle.*", **SLOW) as engine:
        engine.wait_for_commit(lambda commit: True)
        server.execute("SET GLOBAL wait_timeout = 1")
        try:
            for table in ("t", "u"):
                assert request(tmp_path, f"idle.{table}").status == 0
                wait_until(partial(is_done, tmp_path, table), table, check=engine.must_run)
                time.sleep(1.5)
        finally:
            server.execute("SET GLOBAL wait_timeout = DEFAULT")
        ended = engine.stop()
    assert "trying again" not in ended.stderr


def test_a_view_is_idle_for_longer_than_the_server_allows(mariadb118: Server, tmp_path: Path) -> None:
    """Once the server has sent its rows, which wait for the limit of the rate."""
    mariadb118.execute("DROP DATABASE IF EXISTS idle", "CREATE DATABASE idle", "CREATE TABLE idle.t (v INT)")
    mariadb118.execute_many("INSERT INTO idle.t VALUES (%s)", [(n,) for n in range(100)])
    with follow(mariadb118, tmp_path, start="latest", tables="idle.*", **SLOW) as engine:
        engine.wait_for_commit(lambda commit: True)
        mariadb118.execute("SET GLOBAL idle_transaction_timeout = 1, idle_readonly_transaction_timeout = 1")
        try:
            assert request(tmp_path, "idle.t").status == 0
            wait_until(lambda: is_done(tmp_path, "t"), "end of the snapshot", check=engine.must_run)
        finally:
            mariadb118.execute(
                "SET GLOBAL idle_transaction_timeout = 0, idle_readonly_transaction_timeout = 0"
            )
        ended = engine.stop()
    assert "trying again" not in ended.stderr


def test_rows_are_waited_for_without_a_limit(server: Server) -> None:
    """A condition that few rows fulfil, or a lock on the table, may take hours."""
    address = ServerAddress(server.host, server.port, Login(server.user))
    readers = open_readers(address, None, lambda: None)
    with readers.rows, readers.source:
        assert readers.rows_at_source is readers.rows
        assert (readers.rows.read_timeout, readers.source.read_timeout) == (None, READ_SECONDS)
