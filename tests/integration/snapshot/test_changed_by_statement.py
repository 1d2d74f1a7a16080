"""A table whose rows a statement changed without row events: its snapshot makes it replayable again."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from engine.errors import EngineError
from tests.servers import Server
from tests.support.engine_run import drain, end_of_binlog, follow, wait_until
from tests.support.replayed_rows import replayed, selected
from tests.support.snapshot_runs import request, table_snapshots, wait_for_snapshots

pytestmark = [pytest.mark.server, pytest.mark.spark]

DATABASE = "snapshot_changed"
STREAM = {"tables": f"{DATABASE}.*", "workers": 1}
EXCHANGE = f"ALTER TABLE {DATABASE}.parts EXCHANGE PARTITION low WITH TABLE {DATABASE}.other"


@pytest.fixture
def begin(mysql97: Server) -> str:
    """Where the binlog begins to have a table with partitions, and one to exchange a partition with."""
    begin = "{}:{}".format(*end_of_binlog(mysql97))
    mysql97.execute(
        f"DROP DATABASE IF EXISTS {DATABASE}",
        f"CREATE DATABASE {DATABASE}",
        f"CREATE TABLE {DATABASE}.other (id INT PRIMARY KEY, v INT)",
        f"CREATE TABLE {DATABASE}.parts LIKE {DATABASE}.other",
        f"ALTER TABLE {DATABASE}.parts PARTITION BY RANGE (id) "
        "(PARTITION low VALUES LESS THAN (10), PARTITION high VALUES LESS THAN MAXVALUE)",
        f"INSERT INTO {DATABASE}.parts VALUES (1, 1), (2, 2), (30, 3), (40, 4)",
        f"INSERT INTO {DATABASE}.other VALUES (2, 20), (5, 50), (6, 60)",
    )
    return begin


def test_a_snapshot_clears_the_mark(mysql97: Server, spark: SparkSession, begin: str, tmp_path: Path) -> None:
    drain(mysql97, tmp_path, start=begin, **STREAM)
    mysql97.execute(EXCHANGE)
    drain(mysql97, tmp_path, **STREAM)
    for table in ("parts", "other"):
        with pytest.raises(EngineError, match="EXCHANGE PARTITION"):
            replayed(spark, tmp_path, f"{DATABASE}.{table}")
    assert request(tmp_path, f"{DATABASE}.parts").status == 0
    drain(mysql97, tmp_path, **STREAM)
    assert replayed(spark, tmp_path, f"{DATABASE}.parts") == selected(mysql97, f"{DATABASE}.parts")
    # The other table was not read.
    with pytest.raises(EngineError, match="EXCHANGE PARTITION"):
        replayed(spark, tmp_path, f"{DATABASE}.other")
    mysql97.execute(
        f"UPDATE {DATABASE}.parts SET id = 7 WHERE id = 5", f"DELETE FROM {DATABASE}.parts WHERE id = 40"
    )
    drain(mysql97, tmp_path, **STREAM)
    assert replayed(spark, tmp_path, f"{DATABASE}.parts") == selected(mysql97, f"{DATABASE}.parts")


CHANGES = {
    "converted": ("v DECIMAL(5,1)", "MODIFY v INT"),
    "defaulted": ("v INT", "ADD COLUMN made INT DEFAULT (id * 2)"),
    "shortened": ("v INT", "DROP PARTITION low"),
    "emptied": ("v INT", "TRUNCATE PARTITION high"),
}
"""Tables with the definition of a column, and what of ALTER TABLE then changes rows without row events."""
PARTITIONS = "(PARTITION low VALUES LESS THAN (10), PARTITION high VALUES LESS THAN MAXVALUE)"


def test_tables_are_read_again_by_themselves(
    mysql97: Server, spark: SparkSession, begin: str, tmp_path: Path
) -> None:
    for table, (column, _) in CHANGES.items():
        mysql97.execute(
            f"CREATE TABLE {DATABASE}.{table} (id INT PRIMARY KEY, {column}) "
            f"PARTITION BY RANGE (id) {PARTITIONS}",
            f"INSERT INTO {DATABASE}.{table} VALUES (1, 1.6), (2, 2.4), (30, 3.6), (40, 4)",
        )
    with follow(mysql97, tmp_path, "--snapshot-when-changed", start=begin, **STREAM) as engine:
        engine.catch_up(mysql97)
        mysql97.execute(EXCHANGE)
        for table, (_, change) in CHANGES.items():
            mysql97.execute(f"ALTER TABLE {DATABASE}.{table} {change}")
        changed = {"parts", "other", *CHANGES}
        wait_until(lambda: table_snapshots(tmp_path).keys() == changed, "snapshots", check=engine.must_run)
        wait_for_snapshots(engine, tmp_path)
        mysql97.execute(f"INSERT INTO {DATABASE}.parts VALUES (8, 8)")
        engine.catch_up(mysql97)
        assert engine.stop().status == 0
    for table in changed:
        columns = ("id", "v", "made") if table == "defaulted" else ("id", "v")
        assert replayed(spark, tmp_path, f"{DATABASE}.{table}", columns) == selected(
            mysql97, f"{DATABASE}.{table}", columns
        ), table


def test_a_run_begins_with_the_tables_that_were_changed_before(
    mysql97: Server, spark: SparkSession, begin: str, tmp_path: Path
) -> None:
    drain(mysql97, tmp_path, start=begin, **STREAM)
    mysql97.execute(EXCHANGE)
    drain(mysql97, tmp_path, **STREAM)
    assert not table_snapshots(tmp_path)
    drain(mysql97, tmp_path, "--snapshot-when-changed", **STREAM)
    for table in ("parts", "other"):
        assert replayed(spark, tmp_path, f"{DATABASE}.{table}") == selected(mysql97, f"{DATABASE}.{table}")
