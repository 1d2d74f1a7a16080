"""Locks of a snapshot on a table, and those of others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.binlog.position import BinlogPosition
from engine.net.client.server_queries import end_of_binlog
from engine.pipeline.snapshot_messages import Place
from engine.snapshot.sessions import Readers
from engine.snapshot.views import TableLocks
from engine.snapshot.waiting import TableBusy
from tests.servers import Server
from tests.support.engine_run import follow, wait_until
from tests.support.selected_rows import open_connection
from tests.support.snapshot_runs import table_snapshots, wait_for_snapshots

pytestmark = [pytest.mark.server, pytest.mark.fewer_servers]

PLACE = Place(BinlogPosition("binlog.000001", 4), None)


@pytest.fixture(params=["mysql-9.7", "mysql-8.0", "mysql-5.7", "mysql-5.6"])
def locking(request: pytest.FixtureRequest, shared_server: Callable[[str], Server]) -> Server:
    """Those of which snapshots lock tables with transactions."""
    server = shared_server(request.param)
    server.execute(
        "DROP DATABASE IF EXISTS locks", "CREATE DATABASE locks", "CREATE TABLE locks.t (v INT) ENGINE=InnoDB"
    )
    return server


@pytest.fixture
def readers(locking: Server) -> Iterator[Readers]:
    rows, source = open_connection(locking), open_connection(locking)
    with rows, source:
        yield Readers(rows, source, rows, lambda: None)


def test_a_lock_waits_for_open_transactions(locking: Server, readers: Readers) -> None:
    """One that is being committed may be in the binlog, and not yet in a view that is opened meanwhile."""
    tables = ["locks.t"]
    with locking.connect(autocommit=False) as connection, connection.cursor() as cursor:
        for end in (connection.commit, connection.rollback):
            cursor.execute("INSERT INTO locks.t VALUES (1)")
            with (
                pytest.raises(TableBusy, match=r"locks\.t is in use by transactions"),
                TableLocks().open(readers, PLACE, tables, has_views=True),
            ):
                pytest.fail("the table was locked")
            end()
            with TableLocks().open(readers, PLACE, tables, has_views=True) as high:
                # The lock is over once the view is open.
                locking.execute("INSERT INTO locks.t VALUES (2)")
                assert high() < end_of_binlog(readers.source)


def test_tables_do_not_wait_for_one_that_others_have_locked(server: Server, tmp_path: Path) -> None:
    server.execute("DROP DATABASE IF EXISTS locks", "CREATE DATABASE locks")
    for table in "abcd":
        server.execute(
            f"CREATE TABLE locks.{table} (id INT PRIMARY KEY)", f"INSERT INTO locks.{table} VALUES (1)"
        )

    def states() -> list[str]:
        return [table.state for _, table in sorted(table_snapshots(tmp_path).items())]

    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("LOCK TABLES locks.a WRITE, locks.c WRITE")
        with follow(server, tmp_path, start="snapshot", tables="locks.*", snapshot_workers=1) as engine:
            wait_until(
                lambda: states() == ["waiting", "done", "waiting", "done"], "rows", check=engine.must_run
            )
            cursor.execute("UNLOCK TABLES")
            wait_for_snapshots(engine, tmp_path)
            assert engine.stop().status == 0
    assert states() == ["done"] * 4
