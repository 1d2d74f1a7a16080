"""An engine that follows a server: how soon a change is committed, how it stops, how it resumes."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from engine.commands.status import status
from engine.output.data_files import ReaderError
from engine.output.reader import Changes
from tests.servers import Server
from tests.support.committed import assert_same_changes, assert_sound
from tests.support.engine_run import drain, end_of_binlog, follow, wait_until

pytestmark = pytest.mark.server

LATENCY_SECONDS = 2.0
"""Beyond the commit interval."""
STOP_SECONDS = 5.0


@contextmanager
def followed(server: Server) -> Iterator[str]:
    """A position to start at, after which the table `followed.t` is created."""
    file, position = end_of_binlog(server)
    server.execute("CREATE DATABASE followed", "CREATE TABLE followed.t (id INT PRIMARY KEY)")
    try:
        yield f"{file}:{position}"
    finally:
        server.execute("DROP DATABASE followed")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


MANY = 100_000
INSERT_MANY = (
    f"INSERT /*+ SET_VAR(cte_max_recursion_depth = {MANY}) */ INTO followed.t "
    f"WITH RECURSIVE n (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n WHERE id < {MANY}) SELECT id FROM n"
)


def ids(out: Path) -> list[int]:
    try:
        return Changes(out).read("followed", "t")["id"].to_pylist()
    except ReaderError:
        return []


def has_come(out: Path, number: int) -> bool:
    return number in ids(out)


def test_a_row_shows_soon(server: Server, out: Path) -> None:
    interval = 1.0
    with followed(server) as start, follow(server, out, start=start, commit_interval=interval) as engine:
        engine.catch_up(server)
        for number in range(2):
            server.query("INSERT INTO followed.t VALUES (%s)", number)
            began = time.monotonic()
            wait_until(partial(has_come, out, number), f"row {number}")
            assert time.monotonic() - began < interval + LATENCY_SECONDS


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_stopping_commits_what_is_finished(mysql97: Server, out: Path, how: signal.Signals) -> None:
    with followed(mysql97) as start:
        with follow(mysql97, out, start=start, commit_interval=3600) as engine:
            mysql97.execute("INSERT INTO followed.t VALUES (0)", INSERT_MANY)
            # Many rows go to a file as they come; without a commit no reader sees it.
            wait_until(lambda: list(out.glob("followed.t/*")), "data file")
            assert ids(out) == []
            began = time.monotonic()
            # As a terminal does it: the whole process group gets the signal.
            os.killpg(engine.pid, how)
            ended = engine.wait()
            assert time.monotonic() - began < STOP_SECONDS
            engine.wait_until_gone()
        assert ended.status == 0, ended.stderr
        assert ids(out)[:1] == [0]
        assert_sound(out)
        mysql97.execute(f"INSERT INTO followed.t VALUES ({MANY + 1})")
        drain(mysql97, out)
        assert ids(out) == list(range(MANY + 2))
        assert_sound(out)
        drain(mysql97, out.with_name("undisturbed"), start=start)
        assert_same_changes(out, out.with_name("undisturbed"))


def test_a_run_that_stops_at_the_end_says_that_nothing_is_missing(server: Server, out: Path) -> None:
    with followed(server) as start:
        began = time.time()
        server.execute(f"SET timestamp = {int(began) - 3600}", "INSERT INTO followed.t VALUES (1)")
        server.execute("SET timestamp = 0")
        drain(server, out, start=start)
        seen = status(out)
        assert seen.last_event_seconds is not None and seen.last_event_seconds >= 3600
        assert seen.lag_seconds is not None and seen.lag_seconds <= time.time() - began


def test_nothing_new_leaves_the_output_alone(mysql97: Server, out: Path) -> None:
    with followed(mysql97) as start:
        drain(mysql97, out, start=start)
        before = sorted(path.name for path in out.rglob("*"))
        drain(mysql97, out)
        assert sorted(path.name for path in out.rglob("*")) == before
