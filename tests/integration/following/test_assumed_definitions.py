"""A new output near the end of the binlog has names of the catalog without a search of the binlog first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from engine.output.commit_log import CommitLog
from engine.output.reader import Changes
from tests.servers import FLAVORS, Server
from tests.support.committed import assert_sound
from tests.support.engine_run import command_line, end_of_binlog, follow, run_command, wait_until

pytestmark = pytest.mark.server

LOG_DUMPS = {"general_log": "ON", "log_output": "TABLE"}
ROWS = 50


@pytest.fixture(scope="module", params=FLAVORS)
def server(request: pytest.FixtureRequest, own_server: Callable[..., Server]) -> Server:
    return own_server(request.param, LOG_DUMPS)


@pytest.fixture
def start(server: Server) -> str:
    """A place after which there are rows of a table that was created before it."""
    server.execute("DROP DATABASE IF EXISTS assumed", "CREATE DATABASE assumed")
    server.execute("CREATE TABLE assumed.t (id INT PRIMARY KEY, a INT, b INT)")
    place = "{}:{}".format(*end_of_binlog(server))
    server.execute(*(f"INSERT INTO assumed.t VALUES ({number}, 1, 2)" for number in range(ROWS)))
    return place


def dumps(server: Server) -> int:
    """How many dumps the server was asked for."""
    ((count,),) = server.query(
        "SELECT COUNT(*) FROM mysql.general_log WHERE command_type LIKE 'Binlog Dump%'"
    )
    return int(count)


def columns_of(out: Path) -> list[str]:
    assert_sound(out)
    return [name for name in Changes(out).read("assumed", "t").schema.names if not name.startswith("_")]


def test_the_binlog_is_read_once(server: Server, start: str, tmp_path: Path) -> None:
    run_command(*command_line(server, tmp_path / "other", "--stop-at-end", start="latest"))
    before = dumps(server)
    ended = run_command(*command_line(server, tmp_path / "out", "--stop-at-end", start=start))
    assert ended.status == 0, ended.stderr
    # Others look whether the start is inside a transaction, and which of MySQL's GTIDs come before it.
    looks_for_gtids = server.has_gtids and server.flavor.startswith("mysql")
    assert dumps(server) - before == 2 + looks_for_gtids
    assert Changes(tmp_path / "out").read("assumed", "t").num_rows == ROWS
    assert columns_of(tmp_path / "out") == ["id", "a", "b"]


def test_a_statement_that_comes_later_is_found(server: Server, start: str, tmp_path: Path) -> None:
    """Before anything is committed under the names that the columns have now."""
    statement = "ALTER TABLE assumed.t CHANGE a x INT AFTER b"
    server.execute(statement, "INSERT INTO assumed.t (id, x, b) VALUES (1000, 3, 4)")
    ended = run_command(*command_line(server, tmp_path, "--stop-at-end", start=start))
    assert ended.status == 1
    assert "cannot be named" in ended.sentence
    assert statement in ended.sentence
    assert "trying again" not in ended.stderr
    settings = {"start": start, "unknown_columns": "number", "log_format": "text"}
    ended = run_command(*command_line(server, tmp_path, "--stop-at-end", **settings))
    assert ended.status == 0, ended.stderr
    assert "run_again: the statement at " in ended.stderr
    rows = Changes(tmp_path).read("assumed", "t").to_pylist()
    assert [row["@2"] for row in rows if row["id"] is None] == [1] * ROWS
    assert [row["x"] for row in rows if row["id"] is not None] == [3]


def test_a_live_stream_commits_once_it_has_come_to_the_end(
    server: Server, start: str, tmp_path: Path
) -> None:
    """The end is in a file without transactions."""
    server.execute("FLUSH BINARY LOGS")
    with follow(server, tmp_path, start=start) as engine:
        wait_until(lambda: CommitLog(tmp_path).latest_version() >= 0, "a commit", check=engine.must_run)
    assert Changes(tmp_path).read("assumed", "t").num_rows == ROWS
    server.execute("INSERT INTO assumed.t VALUES (1000, 3, 4)")
    ended = run_command(*command_line(server, tmp_path, "--stop-at-end"))
    assert ended.status == 0, ended.stderr
    assert Changes(tmp_path).read("assumed", "t").num_rows == ROWS + 1
    assert columns_of(tmp_path) == ["id", "a", "b"]
