"""Spark's replay of an output that began with a snapshot under load: the table as it stood at its commits."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from engine.errors import EngineError
from engine.output.commit_log import CommitLog
from engine.spark import replay_table, table_at
from tests.servers import Server
from tests.support.engine_run import follow, wait_until
from tests.support.seeds import chosen_seed
from tests.support.snapshot_load import LoadedSnapshot
from tests.support.snapshot_runs import request, wait_for_snapshots

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.slow]

ROWS = 800
COMMITS = int(os.environ.get("BINLOG_ENGINE_REPLAYED_COMMITS", "2"))
"""How many commits of each table are compared besides the last one; those of a run are about a hundred."""


@pytest.mark.parametrize("flavor", ["mysql-9.7", "mariadb-11.8"])
def test_spark_replays_the_table_of_a_commit(
    flavor: str, own_server: Callable[..., Server], spark: SparkSession, tmp_path: Path
) -> None:
    server = own_server(flavor, {})
    snapshot = LoadedSnapshot(server, "replayed", tmp_path, ROWS)
    with snapshot.load(4, ddl=True) as load:
        snapshot.finish(load)
    snapshot.read_truth()
    for table, columns in snapshot.columns.items():
        wanted = dict(snapshot.wanted(table))
        last = max(wanted)
        others = sorted(wanted.keys() - {last})
        chosen = random.Random(chosen_seed(4)).sample(others, min(COMMITS, len(others)))
        assert chosen
        for commit in (*sorted(chosen), last):
            replayed = table_at(spark, snapshot.out, f"replayed.{table}", commit=commit).select(*columns)
            assert Counter(map(tuple, replayed.collect())) == wanted[commit], f"{table} at commit {commit}"
        shown = server.query(f"SELECT {', '.join(columns)} FROM replayed.{table}")
        assert wanted[last] == Counter(shown)


def test_a_snapshot_that_is_not_done_is_no_table(
    own_server: Callable[..., Server], spark: SparkSession, tmp_path: Path
) -> None:
    server = own_server("mysql-9.7", {})
    server.execute("CREATE DATABASE halves", "CREATE TABLE halves.t (id INT PRIMARY KEY)")
    server.execute("INSERT INTO halves.t VALUES (1), (2), (3), (4), (5), (6), (7), (8)")
    slowly = {"snapshot_chunk_rows": 1, "snapshot_rate": 2, "snapshot_workers": 1}

    def rows(commit: int | None = None) -> int:
        return replay_table(spark, tmp_path, "halves.t", at=commit).count()

    with follow(server, tmp_path, start="snapshot", tables="halves.t", **slowly) as engine:
        half = wait_until(lambda: being_read(tmp_path), "half of the rows")
        with pytest.raises(EngineError, match=r"snapshot of halves.t is not done: it is being read"):
            rows(half)
        wait_for_snapshots(engine, tmp_path)
        assert rows() == 8
        request(tmp_path, "halves.t")
        wait_until(lambda: being_read(tmp_path), "the second snapshot")
        request(tmp_path, "halves.t", "--cancel")
        wait_for_snapshots(engine, tmp_path)
        with pytest.raises(EngineError, match="not done: it is cancelled: wait until it is"):
            rows()
        request(tmp_path, "halves.t", "--where", "id < 3")
        wait_for_snapshots(engine, tmp_path)
        with pytest.raises(EngineError, match="is not done"):
            rows()
        request(tmp_path, "halves.t")
        wait_for_snapshots(engine, tmp_path)
        assert rows() == 8
        assert engine.stop().status == 0


def being_read(out: Path) -> int | None:
    """The last commit, if it has some rows of a snapshot that goes on."""
    last = CommitLog(out).latest_version()
    tables = CommitLog(out).summary_at(last).snapshots.tables if last >= 0 else ()
    return last if any(each.state == "running" and each.rows for each in tables) else None
