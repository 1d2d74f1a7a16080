"""SIGHUP: the settings of a run that goes on without an end of the command."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from engine.output.reader import Changes
from tests.servers import Server
from tests.support.engine_run import EngineRun, command_line, end_of_binlog, follow, wait_until

pytestmark = pytest.mark.server

DATABASE = "reloaded"


def test_new_settings_count_from_the_last_commit_on(mysql97: Server, tmp_path: Path) -> None:
    server = mysql97
    server.execute(
        f"DROP DATABASE IF EXISTS {DATABASE}",
        f"CREATE DATABASE {DATABASE}",
        *(f"CREATE TABLE {DATABASE}.{table} (id INT PRIMARY KEY)" for table in "ab"),
    )
    file, position = end_of_binlog(server)
    config, out = tmp_path / "engine.toml", tmp_path / "out"
    config.write_text(f'tables = ["{DATABASE}.a"]\n')
    settings = {"start": f"{file}:{position}", "commit_interval": 0.1, "config": config}
    with EngineRun(command_line(server, out, **settings), out) as engine:
        _insert(server, 1)
        engine.catch_up(server)
        config.write_text(f'tables = ["{DATABASE}.*"]\n')
        _reload(engine)
        _insert(server, 2)
        wait_until(lambda: _rows(out).get("b"), "rows of the other table", check=engine.must_run)
        for refused, wrong in enumerate(
            ("tables = 5", "retain = '30'", "shard = '1/2'", "tls_ca = '/none'", "schema_file = '/none'")
        ):
            config.write_text(f"{wrong}\n")
            _reload(engine)
            wait_until(
                lambda: engine.stderr.count("the settings stay as they were") > refused,  # noqa: B023
                f"warning about {wrong}",
                check=engine.must_run,
            )
        _insert(server, 3)
        wait_until(lambda: 3 in _rows(out).get("b", []), "the last rows", check=engine.must_run)
        assert engine.stop().status == 0
    assert _rows(out) == {"a": [1, 2, 3], "b": [2, 3]}


def test_a_signal_to_all_processes_is_the_commands(mysql97: Server, tmp_path: Path) -> None:
    """As from a service manager, or from a terminal that closes."""
    with follow(mysql97, tmp_path, start="{}:{}".format(*end_of_binlog(mysql97))) as engine:
        engine.catch_up(mysql97)
        before = engine.process("network")
        os.killpg(engine.pid, signal.SIGHUP)
        wait_until(lambda: engine.process("network") != before, "run", check=engine.must_run)
        mysql97.execute(f"CREATE DATABASE IF NOT EXISTS {DATABASE}")
        engine.catch_up(mysql97)
        ended = engine.stop()
        assert ended.status == 0 and "warn" not in ended.stderr.lower(), ended.stderr


def _insert(server: Server, number: int) -> None:
    server.execute(*(f"INSERT INTO {DATABASE}.{table} VALUES ({number})" for table in "ab"))


def _reload(engine: EngineRun) -> None:
    """Send the signal, and wait for the next run."""
    before = engine.process("network")
    os.kill(engine.pid, signal.SIGHUP)
    wait_until(lambda: engine.process("network") != before, "run", check=engine.must_run)


def _rows(out: Path) -> dict[str, list[int]]:
    """The ids by table."""
    changes = Changes(out)
    return {
        table: changes.read(database, table)["id"].to_pylist()
        for database, table in changes.tables()
        if database == DATABASE
    }
