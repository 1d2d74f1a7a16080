"""Locks of a snapshot on a table, and those of others."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from engine.binlog.position import BinlogPosition
from engine.net.client.server_queries import end_of_binlog
from engine.pipeline.snapshot_messages import Place
from engine.snapshot.views import Readers, TableBusy, TableLocks
from tests.servers import Server
from tests.support.selected_rows import open_connection

pytestmark = pytest.mark.server

PLACE = Place(BinlogPosition("binlog.000001", 4), None)


@pytest.fixture(params=["mysql-9.7", "mysql-5.6"])
def server(request: pytest.FixtureRequest, shared_server: Callable[[str], Server]) -> Server:
    """Those of which snapshots lock tables with transactions."""
    server = shared_server(request.param)
    server.execute(
        "DROP DATABASE IF EXISTS locks", "CREATE DATABASE locks", "CREATE TABLE locks.t (v INT) ENGINE=InnoDB"
    )
    return server


@pytest.fixture
def readers(server: Server) -> Iterator[Readers]:
    rows, source = open_connection(server), open_connection(server)
    with rows, source:
        yield Readers(rows, source, rows, lambda: None)


def test_a_lock_waits_for_open_transactions(server: Server, readers: Readers) -> None:
    """One that is being committed may be in the binlog, and not yet in a view that is opened meanwhile."""
    tables = ["locks.t"]
    with server.connect(autocommit=False) as connection, connection.cursor() as cursor:
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
                server.execute("INSERT INTO locks.t VALUES (2)")
                assert high() < end_of_binlog(readers.source)
