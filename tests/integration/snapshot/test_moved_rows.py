"""Rows that get another key while their table is read, where changes have partial row images."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.servers import Server
from tests.support.engine_run import EngineRun, wait_until
from tests.support.snapshot_load import LoadedSnapshot
from tests.support.snapshot_runs import snapshots_are_over, table_snapshots, wait_for_snapshots

pytestmark = [pytest.mark.server, pytest.mark.slow]

ROWS = 1000
SERVERS: dict[str, dict[str, str | None]] = {
    "mysql-9.7": {"gtid_mode": "ON", "enforce_gtid_consistency": "ON"},
    "mysql-8.0": {},
    "mysql-5.6": {},
    "mariadb-11.8": {},
}


@pytest.fixture(scope="module", params=SERVERS)
def server(request: pytest.FixtureRequest, own_server: Callable[..., Server]) -> Server:
    partial = {"binlog_row_image": "MINIMAL"}
    return own_server(request.param, SERVERS[request.param] | partial)


def test_rows_that_move_to_where_the_snapshot_was(server: Server, tmp_path: Path) -> None:
    """From ranges that are not read yet; the change rows contain nothing but the key."""
    snapshot = LoadedSnapshot(server, "moved", tmp_path, ROWS, snapshot_rate=ROWS, snapshot_workers=1)
    with snapshot.run() as engine:
        _wait_for_rows(engine, snapshot.out)
        server.execute(
            "UPDATE moved.keyed SET id = -id WHERE id > 960",
            "UPDATE moved.keyed SET id = id - 1000 WHERE id < -990",
            "UPDATE moved.keyed SET v = 5 WHERE id < -1990",
            "DELETE FROM moved.keyed WHERE id = -970",
        )
        wait_for_snapshots(engine, snapshot.out)
        engine.catch_up(server)
        assert engine.stop().status == 0
    assert snapshot.compare().during > 2


def test_a_killed_snapshot_reads_them_still(server: Server, tmp_path: Path) -> None:
    snapshot = LoadedSnapshot(server, "moved_on", tmp_path, ROWS, snapshot_rate=ROWS, snapshot_workers=1)
    with snapshot.run() as engine:
        _wait_for_rows(engine, snapshot.out)
        server.execute("UPDATE moved_on.keyed SET id = -id WHERE id > 960")
        engine.catch_up(server)
        assert not snapshots_are_over(snapshot.out)
        engine.kill("supervisor")
        engine.wait()
    assert len(table_snapshots(snapshot.out)["keyed"].moved) == 39
    server.execute("UPDATE moved_on.keyed SET id = id - 1000 WHERE id < -990")
    with snapshot.run() as engine:
        wait_for_snapshots(engine, snapshot.out)
        engine.catch_up(server)
        assert engine.stop().status == 0
    snapshot.compare()


def test_too_many_rows_that_move_set_the_table_aside(server: Server, tmp_path: Path) -> None:
    snapshot = LoadedSnapshot(server, "all_moved", tmp_path, 2 * ROWS, snapshot_rate=ROWS, snapshot_workers=1)
    with snapshot.run() as engine:
        _wait_for_rows(engine, snapshot.out)
        server.execute("UPDATE all_moved.keyed SET id = -id WHERE id > 0")
        wait_for_snapshots(engine, snapshot.out)
        engine.catch_up(server)
        assert engine.stop().status == 0
    states = table_snapshots(snapshot.out)
    assert (states["keyed"].state, states["keyless"].state) == ("failed", "done")
    assert "binlog_row_image=FULL" in (states["keyed"].reason or "")


def _wait_for_rows(engine: EngineRun, out: Path) -> None:
    """Until the first rows of the table with a key are in the output."""

    def has_rows() -> bool:
        keyed = table_snapshots(out).get("keyed")
        return keyed is not None and keyed.rows > 0

    wait_until(has_rows, "rows", check=engine.must_run)
