"""Sessions that log statements instead of rows: their tables are replayed after a snapshot has read them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from engine.commands.status import status
from engine.errors import EngineError
from engine.output.commit_log import CommitLog
from engine.output.schema_history import rewritten_tables
from tests.servers import Server
from tests.support.engine_run import drain, end_of_binlog, follow, wait_until
from tests.support.replayed_rows import replayed, selected
from tests.support.snapshot_runs import request, table_snapshots, wait_for_snapshots

pytestmark = [pytest.mark.server, pytest.mark.spark]

DATABASE = "manipulated_rows"
STREAM = {"tables": f"{DATABASE}.*", "workers": 1}
ROWS = 20_000


@pytest.fixture(scope="module", params=["mysql-9.7", "mysql-5.6", "mariadb-11.8"])
def server(request: pytest.FixtureRequest, shared_server: Callable[[str], Server]) -> Iterator[Server]:
    server = shared_server(request.param)
    yield server
    server.execute(f"DROP DATABASE IF EXISTS {DATABASE}")


@pytest.fixture
def begin(server: Server) -> str:
    """Where the binlog begins to have two tables with rows."""
    begin = "{}:{}".format(*end_of_binlog(server))
    server.execute(
        f"DROP DATABASE IF EXISTS {DATABASE}",
        f"CREATE DATABASE {DATABASE}",
        f"CREATE TABLE {DATABASE}.t (id INT PRIMARY KEY, v INT)",
        f"CREATE TABLE {DATABASE}.other LIKE {DATABASE}.t",
        f"INSERT INTO {DATABASE}.t VALUES (1, 1), (2, 2)",
        f"INSERT INTO {DATABASE}.other VALUES (1, 1), (2, 2)",
    )
    return begin


@contextmanager
def logging_statements(server: Server) -> Iterator[Callable[[str], object]]:
    """Executes statements in a session that logs them."""
    with server.connect() as session, session.cursor() as cursor:
        session.autocommit(True)
        cursor.execute("SET SESSION binlog_format = STATEMENT")
        session.select_db(DATABASE)
        yield cursor.execute


def marks(out: Path) -> int:
    """How many marks of data manipulation the commits have."""
    log = CommitLog(out)
    changes = log.schema_changes(log.oldest_version(), log.latest_version())
    return sum(entry.change.source == "data manipulation" for entry in changes)


def test_a_table_is_not_replayed_before_a_snapshot(
    server: Server, spark: SparkSession, begin: str, tmp_path: Path
) -> None:
    with logging_statements(server) as execute:
        execute("UPDATE t JOIN other USING (id) SET t.v = other.v + 10")
    server.execute(f"INSERT INTO {DATABASE}.t VALUES (3, 3)", f"INSERT INTO {DATABASE}.other VALUES (3, 3)")
    drain(server, tmp_path, start=begin, **STREAM)
    assert replayed(spark, tmp_path, f"{DATABASE}.other") == selected(server, f"{DATABASE}.other")
    with pytest.raises(EngineError, match=r"without row events by the statement `UPDATE t JOIN other USING"):
        replayed(spark, tmp_path, f"{DATABASE}.t")
    assert status(tmp_path).changed_by_statement == (f"{DATABASE}.t",)
    assert request(tmp_path, f"{DATABASE}.t").status == 0
    drain(server, tmp_path, **STREAM)
    server.execute(f"UPDATE {DATABASE}.t SET v = v + 1 WHERE id > 1")
    drain(server, tmp_path, **STREAM)
    assert replayed(spark, tmp_path, f"{DATABASE}.t") == selected(server, f"{DATABASE}.t")


def test_a_table_is_read_again_by_itself(
    server: Server, spark: SparkSession, begin: str, tmp_path: Path
) -> None:
    with follow(server, tmp_path, "--snapshot-when-changed", start=begin, **STREAM) as engine:
        engine.catch_up(server)
        with logging_statements(server) as execute:
            execute("REPLACE INTO t VALUES (2, 22), (4, 44)")
        wait_until(lambda: len(table_snapshots(tmp_path)) == 1, "a snapshot", check=engine.must_run)
        wait_for_snapshots(engine, tmp_path)
        server.execute(f"DELETE FROM {DATABASE}.t WHERE id = 4")
        engine.catch_up(server)
        assert engine.stop().status == 0
    assert replayed(spark, tmp_path, f"{DATABASE}.t") == selected(server, f"{DATABASE}.t")


def test_statements_all_the_time_while_a_snapshot_reads(
    server: Server, spark: SparkSession, begin: str, tmp_path: Path
) -> None:
    """The log has few marks, and the snapshot ends soon after the last statement."""
    rows = ", ".join(f"({number}, 0)" for number in range(10, ROWS))
    server.execute(f"INSERT INTO {DATABASE}.t VALUES {rows}")
    ended = threading.Event()

    def change() -> None:
        with logging_statements(server) as execute:
            number = 0
            while not ended.is_set():
                number += 1
                execute(f"UPDATE t SET v = {number} WHERE id = {number * 7919 % ROWS}")

    settings = {"snapshot_chunk_rows": 500, "commit_interval": 0.2, **STREAM}
    with follow(server, tmp_path, start=begin, **settings) as engine:
        engine.catch_up(server)
        thread = threading.Thread(target=change)
        thread.start()
        try:
            wait_until(lambda: marks(tmp_path) > 0, "a mark", check=engine.must_run)
            assert request(tmp_path, f"{DATABASE}.t").status == 0
            wait_until(lambda: marks(tmp_path) > 2, "a snapshot that begins anew", check=engine.must_run)
        finally:
            ended.set()
            thread.join()
        wait_for_snapshots(engine, tmp_path)
        server.execute(f"UPDATE {DATABASE}.t SET v = -1 WHERE id = 11")
        engine.catch_up(server)
        assert engine.stop().status == 0
    assert not rewritten_tables(tmp_path, CommitLog(tmp_path).latest_version())
    assert replayed(spark, tmp_path, f"{DATABASE}.t") == selected(server, f"{DATABASE}.t")
