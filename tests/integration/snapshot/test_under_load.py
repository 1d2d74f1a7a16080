"""Snapshots under load: at every commit the rows are those of the place, also when processes are killed."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.servers import Server
from tests.support.engine_run import wait_until
from tests.support.snapshot_load import LoadedSnapshot
from tests.support.snapshot_runs import snapshots_are_over

pytestmark = [pytest.mark.server, pytest.mark.slow, pytest.mark.fewer_servers]

ROWS = 1200
ROUNDS = int(os.environ.get("BINLOG_ENGINE_SNAPSHOT_ROUNDS", "1"))
"""How often each test runs, with another seed each time."""
SERVERS: dict[str, tuple[str, dict[str, str | None]]] = {
    "mysql-9.7 with GTIDs": ("mysql-9.7", {"gtid_mode": "ON", "enforce_gtid_consistency": "ON"}),
    "mysql-9.7": ("mysql-9.7", {"gtid_mode": "OFF", "enforce_gtid_consistency": "OFF"}),
    "mysql-8.0 with GTIDs": ("mysql-8.0", {"gtid_mode": "ON", "enforce_gtid_consistency": "ON"}),
    "mysql-5.7": ("mysql-5.7", {}),
    "mysql-5.6": ("mysql-5.6", {}),
    "mariadb-10.11": ("mariadb-10.11", {}),
    "mariadb-11.8": ("mariadb-11.8", {}),
}
ROLES = ("sink", "snapshot", "dec-0", "supervisor", "network")
"""The processes that are killed."""
Started = Callable[[str], Server]


@pytest.fixture(scope="module")
def started(own_server: Callable[..., Server]) -> Started:
    """The server of an entry of `SERVERS`."""
    servers: dict[str, Server] = {}

    def of_name(name: str) -> Server:
        if name not in servers:
            servers[name] = own_server(*SERVERS[name])
        return servers[name]

    return of_name


@pytest.mark.parametrize("seed", range(ROUNDS))
@pytest.mark.parametrize("name", SERVERS)
def test_rows_are_those_of_every_commit(name: str, seed: int, started: Started, tmp_path: Path) -> None:
    snapshot = LoadedSnapshot(started(name), "loaded", tmp_path, ROWS)
    with snapshot.load(seed, ddl=True) as load:
        snapshot.finish(load)
    compared = snapshot.compare()
    assert compared.during > 2
    assert compared.after > 10


@pytest.mark.parametrize("seed", range(ROUNDS))
@pytest.mark.parametrize("name", SERVERS)
def test_a_process_is_killed(name: str, seed: int, started: Started, tmp_path: Path) -> None:
    """Another one for each server, and in each round."""
    role = ROLES[(list(SERVERS).index(name) + seed) % len(ROLES)]
    # Slow enough that the snapshot is not over before.
    snapshot = LoadedSnapshot(started(name), "killed", tmp_path, ROWS, snapshot_rate=1000)
    with snapshot.load(seed, ddl=False) as load:
        with snapshot.run() as engine:
            engine.wait_for_commits(random.Random(seed + len(name)).randrange(2, 10))
            assert not snapshots_are_over(snapshot.out)
            engine.kill(role)
            wait_until(lambda: not engine.running, "end of the run")
        snapshot.finish(load)
    snapshot.compare()


@pytest.mark.parametrize("seed", range(ROUNDS))
@pytest.mark.parametrize("name", SERVERS)
def test_transactions_are_prepared(name: str, seed: int, started: Started, tmp_path: Path) -> None:
    snapshot = LoadedSnapshot(started(name), "prepared_load", tmp_path, ROWS)
    with snapshot.load(seed, xa=True) as load:
        snapshot.finish(load)
    assert snapshot.compare().after > 10


@pytest.mark.parametrize("name", SERVERS)
def test_changes_have_partial_images(name: str, started: Started, tmp_path: Path) -> None:
    server = started(name)
    server.execute("SET GLOBAL binlog_row_image = MINIMAL")
    try:
        snapshot = LoadedSnapshot(server, "minimal", tmp_path, ROWS)
        with snapshot.load(1, ddl=False) as load:
            snapshot.finish(load)
        snapshot.compare()
    finally:
        server.execute("SET GLOBAL binlog_row_image = FULL")
