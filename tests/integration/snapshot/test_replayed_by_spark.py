"""Spark's replay of an output that began with a snapshot under load: the table as it stood at its commits."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from engine.spark import table_at
from tests.servers import Server
from tests.support.seeds import chosen_seed
from tests.support.snapshot_load import LoadedSnapshot

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
