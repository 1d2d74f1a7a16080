"""`compare`: an output under load is equal to its server, and what is not equal is named, row by row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from engine.commands.compare import compare_tables
from engine.commands.status import status
from engine.config.settings import CompareSettings
from engine.errors import EngineError
from engine.schema.changes import TableName
from engine.spark.comparison import compare_table
from tests.servers import Server
from tests.support.engine_run import EngineRun, assert_one_sentence, follow, run_command
from tests.support.snapshot_load import LoadedSnapshot
from tests.support.snapshot_runs import request, wait_for_snapshots

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.fewer_servers]

FLAVORS = ("mysql-9.7", "mysql-8.0", "mariadb-11.8")
CASCADES_ARE_LOGGED = ("mysql-9.7",)
TABLES = (
    "CREATE TABLE compared.parent (id INT PRIMARY KEY)",
    "CREATE TABLE compared.child (id INT, name VARBINARY(9), p INT, d DECIMAL(9, 2), j JSON, t DATETIME(6), "
    "g INT AS (id + 1), PRIMARY KEY (id, name), FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE)",
    "CREATE TABLE compared.keyless (v INT)",
)
ROWS = (
    "INSERT INTO compared.parent VALUES (1), (2), (3)",
    "INSERT INTO compared.child (id, name, p, d, j, t) VALUES "
    """(1, 'a', 1, 1.5, '{"k": [1, 2.50]}', '2026-01-02 03:04:05.000006'), (2, 0xff, 1, NULL, NULL, NULL), """
    """(3, 'c', 2, 0, '"x"', '2026-01-02'), (4, 'd', 3, -1, 'null', NULL)""",
    "INSERT INTO compared.keyless VALUES (1), (1)",
)
NOT_LOGGED = (
    "SET sql_log_bin = 0",
    "UPDATE compared.child SET d = 7, j = '1' WHERE id = 3",
    "INSERT INTO compared.child (id, name, p) VALUES (9, 'n', 2)",
    "DELETE FROM compared.child WHERE id = 4",
    "SET sql_log_bin = 1",
)


@pytest.fixture(params=FLAVORS)
def server(request: pytest.FixtureRequest, shared_server: Callable[[str], Server]) -> Server:
    return shared_server(request.param)


def fill(server: Server) -> None:
    server.execute("DROP DATABASE IF EXISTS compared", "CREATE DATABASE compared", *TABLES, *ROWS)


@contextmanager
def following(server: Server, out: Path) -> Iterator[EngineRun]:
    """An engine whose output has all rows of the tables."""
    fill(server)
    with follow(server, out, start="snapshot", tables="compared.*") as engine:
        wait_for_snapshots(engine, out)
        yield engine
        assert engine.stop().status == 0


def compared(spark: SparkSession, out: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, set[str]]:
    """The exit code, and the lines that it printed after the first one."""
    settings = CompareSettings(
        out=out, tables=("compared.*", "loaded.*"), exclude_tables=("*.keyless",), partial_images=True
    )
    status = compare_tables(spark, settings)
    _, *lines = capsys.readouterr().out.splitlines()
    return status, set(lines)


def test_each_difference_is_named(
    server: Server, spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with following(server, tmp_path) as engine:
        server.execute("INSERT INTO compared.child (id, name, p) VALUES (5, 'e', 2)")
        engine.catch_up(server)
        equal = {"compared.parent: 3 rows are equal", "compared.child: 5 rows are equal"}
        assert compared(spark, tmp_path, capsys) == (0, equal)

        server.execute("DELETE FROM compared.parent WHERE id = 1", *NOT_LOGGED)
        engine.catch_up(server)
        gone = {"  not on the server: id = 4, name = 0x64"}
        if server.flavor not in CASCADES_ARE_LOGGED:
            gone |= {"  not on the server: id = 1, name = 0x61", "  not on the server: id = 2, name = 0xFF"}
        advice = f"to remove the rows that are not on the server: binlog-engine snapshot {tmp_path} --tables "
        still = {"compared.parent: 2 rows are equal", *gone, f"{advice}'compared.child'"}
        others = {
            "compared.child: 1 rows are equal, 1 with other values, 1 not in the output, "
            f"{len(gone)} not on the server",
            "  with other values: id = 3, name = 0x63: d, j",
            "  not in the output: id = 9, name = 0x6E",
        }
        assert compared(spark, tmp_path, capsys) == (1, still | others)
        now = {f"compared.child: 3 rows are equal, {len(gone)} not on the server"}
        assert compared(spark, tmp_path, capsys) == (1, still | now)

        request(tmp_path, "compared.child")
        wait_for_snapshots(engine, tmp_path)
        equal = {"compared.parent: 2 rows are equal", "compared.child: 3 rows are equal"}
        assert compared(spark, tmp_path, capsys) == (0, equal)


def test_under_load_no_row_differs(
    server: Server, spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshot = LoadedSnapshot(server, "loaded", tmp_path, 1200)
    with snapshot.load(3) as load, snapshot.run() as engine:
        wait_for_snapshots(engine, snapshot.out)
        engine.wait_for_commits(5)
        status, lines = compared(spark, snapshot.out, capsys)
        load.stop()
        assert engine.stop().status == 0
    assert status == 0
    (line,) = lines
    table, number, words = line.split(" ", 2)
    assert (table, words) == ("loaded.keyed:", "rows are equal")
    assert 100 < int(number.replace(",", "")) < 1200


def test_what_cannot_be_compared_is_said(
    shared_server: Callable[[str], Server],
    spark: SparkSession,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    server = shared_server("mysql-9.7")
    with following(server, tmp_path) as engine:
        settings = CompareSettings(out=tmp_path, tables=("compared.keyless", "compared.parent"))
        assert compare_tables(spark, settings) == 1
        shown = capsys.readouterr()
        assert "compared.keyless was not compared: it has no primary key" in shown.err
        assert "compared.parent: 3 rows are equal" in shown.out
        assert not [each for each in status(tmp_path).snapshots if each.state == "failed"]
        with pytest.raises(EngineError, match="shows its user no table that matches nothing"):
            compare_tables(spark, CompareSettings(out=tmp_path, tables=("nothing.*",)))
        before = engine.catch_up(server).version
        server.execute("ALTER TABLE compared.parent ADD COLUMN more INT")
        at = engine.catch_up(server).version
        with pytest.raises(EngineError, match=r"altered.*ADD COLUMN more.*compare it again"):
            compare_table(spark, tmp_path, TableName("compared", "parent"), before=before, at=at)
    ended = run_command("compare", str(tmp_path), "--tables", "compared.*")
    assert ended.status == 1
    assert_one_sentence(ended)
    assert "start `binlog-engine run`" in ended.sentence


def test_a_table_that_is_being_read_is_left_for_later(
    shared_server: Callable[[str], Server],
    spark: SparkSession,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    server = shared_server("mysql-9.7")
    fill(server)
    slowly = {"snapshot_chunk_rows": 1, "snapshot_rate": 1}
    with follow(server, tmp_path, start="snapshot", tables="compared.child", **slowly) as engine:
        engine.wait_for_commits(1)
        assert compare_tables(spark, CompareSettings(out=tmp_path, tables=("*.child",))) == 1
        assert engine.stop().status == 0
    assert "compared.child was not compared: it is being read for an earlier" in capsys.readouterr().err
