"""Rows that are read from a replica of the stream's server, which lags."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from engine.output.commit_log import CommitLog
from engine.output.reader import Changes
from tests.servers import Server, get_server
from tests.support.engine_run import assert_one_sentence, command_line, drain, follow, run_command, wait_until
from tests.support.replication import OPTIONS, REPLICA_OPTIONS, REPLICA_WORDS, follow_source
from tests.support.snapshot_load import Load, Truth, boundaries
from tests.support.snapshot_runs import read_rows, table_snapshots, wait_for_snapshots
from tests.support.snapshot_runs import request as request_rows

pytestmark = pytest.mark.server

FLAVORS = ("mysql-9.7", "mariadb-10.11", "mariadb-11.8")
ROWS = 2000
COLUMNS = ("id", "v", "text")


@dataclass(frozen=True)
class Pair:
    """A server and its replica."""

    source: Server
    replica: Server

    @property
    def replica_name(self) -> str:
        return f"{self.replica.host}:{self.replica.port}"

    def apply(self, verb: str) -> None:
        """`START` or `STOP` applying what the replica has received."""
        word = REPLICA_WORDS[self.replica.flavor]
        self.replica.execute(f"{verb} {word} SQL_THREAD")


@pytest.fixture(scope="module", params=FLAVORS)
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    flavor = request.param
    with (
        get_server(flavor, OPTIONS[flavor]) as source,
        get_server(flavor, OPTIONS[flavor] | REPLICA_OPTIONS) as replica,
    ):
        follow_source(replica, source)
        yield Pair(source, replica)


def test_rows_of_a_lagging_replica_meet_the_stream(pair: Pair, tmp_path: Path) -> None:
    out, truth = tmp_path / "out", tmp_path / "truth"
    source = pair.source
    source.execute(
        "CREATE DATABASE d",
        "CREATE TABLE d.keyed (id INT PRIMARY KEY, v INT, text VARCHAR(100))",
        "CREATE TABLE d.keyless (v INT, text VARCHAR(100))",
        "INSERT INTO d.keyed VALUES " + ", ".join(f"({key}, 0, 'row')" for key in range(ROWS)),
        "INSERT INTO d.keyless VALUES (1, 'a'), (1, 'a')",
    )
    settings = {
        "start": "snapshot",
        "tables": "d.*",
        "snapshot_chunk_rows": 300,
        "snapshot_host": pair.replica_name,
    }
    pair.apply("STOP")
    with Load(source, "d", ROWS, seed=1, ddl=True) as load, follow(source, out, **settings) as engine:
        before = load.transactions
        wait_until(lambda: load.transactions > before + 100, "load", check=engine.must_run)
        pair.apply("START")
        engine.wait_for_commit(lambda commit: _is_done(out), "end of the snapshot")
        load.stop()
        engine.catch_up(source)
        assert engine.stop().status == 0
    rows = Counter(source.query("SELECT id, v, text FROM d.keyed"))
    keyless = Counter(source.query("SELECT v, text FROM d.keyless"))
    drain(source, truth, start="earliest", tables="d.*")
    states = Truth(truth, "d", "keyed", COLUMNS)
    found: Counter[tuple[Any, ...]] = Counter()
    for boundary in boundaries(out, "d", "keyed", COLUMNS):
        expected, found = states.at(boundary.position), boundary.rows
        is_done = boundary.snapshot is not None and boundary.snapshot.state == "done"
        assert found == expected if is_done else not found - expected, boundary.position
    assert found == rows
    assert list(boundaries(out, "d", "keyless", ("v", "text")))[-1].rows == keyless


def test_tables_are_defined_as_the_stream_has_them(pair: Pair, tmp_path: Path) -> None:
    """Not as a replica that lags has them when their turn comes: without a new column, or not at all."""
    source = pair.source
    source.execute("CREATE DATABASE late")
    for table, key in (("keyed", "PRIMARY KEY"), ("keyless", "")):
        source.execute(
            f"CREATE TABLE late.{table} (id INT {key})", f"INSERT INTO late.{table} VALUES (1), (2)"
        )
    with follow(source, tmp_path, start="latest", tables="late.*", snapshot_host=pair.replica_name) as engine:
        known = "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'late'"
        wait_until(lambda: pair.replica.query(known) == [(2,)], "tables on the replica")
        pair.apply("STOP")
        for table in ("keyed", "keyless"):
            source.execute(f"ALTER TABLE late.{table} ADD c INT", f"UPDATE late.{table} SET c = 10 * id")
        source.execute("CREATE TABLE late.created (id INT PRIMARY KEY, c INT)")
        source.execute("INSERT INTO late.created VALUES (1, 10), (2, 20)")
        engine.catch_up(source)
        request_rows(tmp_path, "late.*")
        begun = "running", "done"
        wait_until(
            lambda: table_snapshots(tmp_path) and table_snapshots(tmp_path)["keyed"].state in begun,
            "begin of the snapshot",
            check=engine.must_run,
        )
        pair.apply("START")
        wait_for_snapshots(engine, tmp_path)
        assert engine.stop().status == 0
    for table in ("keyed", "keyless", "created"):
        assert table_snapshots(tmp_path)[table].state == "done", table_snapshots(tmp_path)
        assert read_rows(tmp_path, "late", table, ("id", "c")) == Counter([(1, 10), (2, 20)])


def test_nothing_is_read_while_a_watched_replica_does_not_replicate(pair: Pair, tmp_path: Path) -> None:
    source = pair.source
    source.execute(
        "CREATE DATABASE w",
        "CREATE TABLE w.read_later (id INT PRIMARY KEY)",
        "CREATE TABLE w.changed (id INT PRIMARY KEY)",
        "INSERT INTO w.read_later VALUES (1), (2)",
    )
    pair.apply("STOP")
    settings = {"start": "latest", "tables": "w.*", "snapshot_watch": pair.replica_name}
    with follow(source, tmp_path, **settings) as engine:
        source.execute("INSERT INTO w.changed VALUES (0)")
        engine.catch_up(source)
        assert request_rows(tmp_path, "w.read_later").status == 0
        wait_until(lambda: table_snapshots(tmp_path), "the request", check=engine.must_run)
        source.execute("INSERT INTO w.changed VALUES (1)")
        engine.catch_up(source)
        pair.apply("START")
        wait_for_snapshots(engine, tmp_path)
        assert engine.stop().status == 0
    changed = max(Changes(tmp_path).read("w", "changed")["_seq"].to_pylist())
    found = Changes(tmp_path).read("w", "read_later")
    assert sorted(found["id"].to_pylist()) == [1, 2]
    assert min(found["_seq"].to_pylist()) > changed


def test_a_server_that_is_no_replica_is_not_watched(mysql97: Server, tmp_path: Path) -> None:
    line = command_line(
        mysql97, tmp_path / "out", start="snapshot", snapshot_watch=f"{mysql97.host}:{mysql97.port}"
    )
    ended = run_command(*line, "--tables", "nothing.*", "--stop-at-end")
    assert ended.status == 1
    assert_one_sentence(ended)
    assert "is no replica" in ended.sentence


def test_a_mariadb_server_that_is_no_replica_is_refused(mariadb118: Server, tmp_path: Path) -> None:
    line = command_line(
        mariadb118, tmp_path / "out", start="snapshot", snapshot_host=f"{mariadb118.host}:{mariadb118.port}"
    )
    ended = run_command(*line, "--tables", "nothing.*", "--stop-at-end")
    assert ended.status == 1
    assert_one_sentence(ended)
    assert "gtid_strict_mode" in ended.sentence or "does not replicate" in ended.sentence


def test_a_replica_without_gtids_is_refused(tmp_path: Path) -> None:
    with get_server("mysql-5.6") as source:
        line = command_line(
            source, tmp_path / "out", start="snapshot", snapshot_host=f"{source.host}:{source.port}"
        )
        ended = run_command(*line, "--stop-at-end")
    assert ended.status == 1
    assert_one_sentence(ended)
    assert "gtid_mode=ON" in ended.sentence


def _is_done(out: Path) -> bool:
    log = CommitLog(out)
    state = log.summary_at(log.latest_version()).snapshots
    return bool(state.tables) and not state.requests
