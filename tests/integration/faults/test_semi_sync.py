"""The engine as the only semi-synchronous replica: what the server confirmed to a client is on our disk.

No package with a plugin for MySQL 5.6 is to be had, so the newest MySQL and MariaDB, which has it built in,
stand for all.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

import pytest

from engine.output.reader import Changes
from tests.servers import Server
from tests.support.committed import assert_sound
from tests.support.engine_run import EngineRun, command_line, follow, run_command, wait_until

pytestmark = [pytest.mark.server, pytest.mark.slow]

SAFE = {"innodb_flush_log_at_trx_commit": "1", "sync_binlog": "1"}
KINDS = {
    "mysql-9.7": ("mysql-9.7", {"gtid_mode": "ON", "enforce_gtid_consistency": "ON"}),
    "mysql-9.7 without GTIDs": ("mysql-9.7", {"gtid_mode": "OFF"}),
    "mariadb-11.8": ("mariadb-11.8", {}),
}
SWITCHED_ON = {
    "mysql-9.7": (
        "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'",
        "SET GLOBAL rpl_semi_sync_source_timeout = 1000000000",
        "SET GLOBAL rpl_semi_sync_source_enabled = ON",
    ),
    "mariadb-11.8": (
        "SET GLOBAL rpl_semi_sync_master_timeout = 1000000000",
        "SET GLOBAL rpl_semi_sync_master_wait_point = AFTER_SYNC",
        "SET GLOBAL rpl_semi_sync_master_enabled = ON",
    ),
}
"""A server that waits for our acknowledgement without a time limit."""
CLIENTS_OF_SERVER = "SHOW GLOBAL STATUS LIKE 'Rpl\\_semi\\_sync\\_%%\\_clients'"
CLIENTS = 4
KILLS = 4


@pytest.fixture(scope="module", params=KINDS)
def source(request: pytest.FixtureRequest, own_server: Callable[..., Server]) -> Server:
    flavor, options = KINDS[request.param]
    server = own_server(flavor, SAFE | options)
    server.execute(
        "CREATE DATABASE safe",
        "CREATE TABLE safe.rows (id BIGINT PRIMARY KEY)",
        "CREATE TABLE safe.other (id INT)",
    )
    server.execute(*SWITCHED_ON[flavor])
    return server


class Clients:
    """Clients that insert row after row, and the rows that the server confirmed."""

    def __init__(self, server: Server, first_id: int) -> None:
        self._server = server
        self._first_id = first_id
        self._asked_to_stop = threading.Event()
        self._confirmed: list[list[int]] = [[] for _ in range(CLIENTS)]
        self._threads = [
            threading.Thread(target=self._run, args=(number,), daemon=True) for number in range(CLIENTS)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._asked_to_stop.set()

    @property
    def confirmed(self) -> set[int]:
        """The ids of all rows whose COMMIT has returned."""
        return {row for rows in self._confirmed for row in list(rows)}

    def settled(self) -> set[int]:
        """The same once no commit returns any more, as none does while the engine is not there."""

        def unchanged() -> set[int]:
            before = self.confirmed
            # Some may have returned already, and wait for a processor.
            time.sleep(0.2)
            return before if self.confirmed == before else set()

        return wait_until(unchanged, "end of commits")

    def wait_for(self, rows: int) -> None:
        goal = len(self.confirmed) + rows
        wait_until(lambda: len(self.confirmed) >= goal, f"{rows} commits")

    def stop(self) -> None:
        """Have them finish what they are about, which takes an engine that answers."""
        self._asked_to_stop.set()
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive(), "a commit never returned"

    def _run(self, number: int) -> None:
        row = self._first_id + number
        with self._server.connect() as connection, connection.cursor() as cursor:
            while not self._asked_to_stop.is_set():
                cursor.execute("INSERT INTO safe.rows VALUES (%s)", (row,))
                self._confirmed[number].append(row)
                row += CLIENTS


def rows_in(out: Path) -> list[int]:
    return Changes(out).read("safe", "rows")["id"].to_pylist()


def kill_all(engine: EngineRun) -> None:
    """End every process at once, as when the machine stops."""
    for pid in [engine.pid, *engine.session().values()]:
        # With the fork server go all that were forked from it.
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    engine.wait_until_gone()


def test_confirmed_commits_are_on_disk_whenever_the_engine_is_killed(source: Server, tmp_path: Path) -> None:
    chance = random.Random(3)
    settings = {"heartbeat_seconds": 0.5, "commit_interval": 0.0}
    with Clients(source, 1) as clients:
        for _ in range(KILLS):
            with follow(source, tmp_path, "--semi-sync", **settings) as engine:
                clients.wait_for(20)
                time.sleep(chance.random() / 4)
                kill_all(engine)
            assert clients.settled() <= set(rows_in(tmp_path))
        with follow(source, tmp_path, "--semi-sync", **settings) as engine:
            clients.wait_for(20)
            clients.stop()
            engine.catch_up(source)
            assert engine.stop().status == 0
    assert sorted(rows_in(tmp_path)) == sorted(row for (row,) in source.query("SELECT id FROM safe.rows"))
    assert clients.confirmed <= set(rows_in(tmp_path))
    assert_sound(tmp_path)


def test_commits_wait_neither_for_an_interval_nor_for_unwanted_tables(source: Server, tmp_path: Path) -> None:
    """With default settings, and a filter that leaves nothing of the transactions."""
    with EngineRun(
        command_line(source, tmp_path, "--semi-sync", start="latest", tables="safe.rows"), tmp_path
    ) as engine:
        wait_until(
            lambda: source.query(CLIENTS_OF_SERVER)[0][1] == "1",
            "semi-synchronous replica",
            check=lambda: None,
        )
        with source.connect() as connection, connection.cursor() as cursor:
            for table in ("rows", "other"):
                began = time.monotonic()
                for number in range(20):
                    cursor.execute(f"INSERT INTO safe.{table} VALUES (%s)", (10_000_000 + number,))
                assert time.monotonic() - began < 10, f"a commit to {table} takes half a second"
        engine.catch_up(source)
        assert engine.stop().status == 0


def test_a_server_without_it_is_refused(mysql56: Server, tmp_path: Path) -> None:
    ended = run_command(*command_line(mysql56, tmp_path, "--semi-sync"))
    assert ended.status == 1
    assert "has no semi-synchronous replication: run INSTALL PLUGIN" in ended.sentence


def test_a_server_where_it_is_off_gets_a_warning(mariadb118: Server, tmp_path: Path) -> None:
    ended = run_command(*command_line(mariadb118, tmp_path, "--semi-sync", "--stop-at-end", start="latest"))
    assert ended.status == 0
    assert "so its commits do not wait for this engine" in ended.stderr
