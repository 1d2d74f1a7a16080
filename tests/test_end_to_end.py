"""From a server's binlog to Spark: replaying what was ingested gives what SELECT gives, value by value."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from engine.reader import Changes
from tests.committed import assert_sound
from tests.engine_run import end_of_binlog, follow
from tests.mixed_workload import DATABASE, Workload
from tests.same_rows import assert_same_rows, change_rows, replayed, selected
from tests.servers import FLAVORS, Server

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.slow]

CONFIGURATIONS = [
    *(pytest.param(flavor, {}, id=flavor) for flavor in FLAVORS),
    pytest.param(
        "mysql-9.7",
        {"binlog_row_metadata": "FULL", "binlog_transaction_compression": "ON"},
        id="mysql-9.7-full-compressed",
    ),
    pytest.param(
        "mariadb-11.8",
        {"binlog_row_metadata": "FULL", "log_bin_compress": "ON"},
        id="mariadb-11.8-full-compressed",
    ),
]


@contextmanager
def configured(server: Server, variables: dict[str, str]) -> Iterator[None]:
    """Global variables of a server, set for a while."""
    before = {name: server.query(f"SHOW GLOBAL VARIABLES LIKE '{name}'")[0][1] for name in variables}
    server.execute(*(f"SET GLOBAL {name} = '{value}'" for name, value in variables.items()))
    try:
        yield
    finally:
        server.execute(*(f"SET GLOBAL {name} = '{value}'" for name, value in before.items()))


@pytest.mark.parametrize(("flavor", "variables"), CONFIGURATIONS)
def test_a_mixed_workload_arrives_value_by_value(shared_server, flavor, variables, spark, tmp_path) -> None:
    server: Server = shared_server(flavor)
    workload = Workload(server, tmp_path / "load.tsv")
    out = tmp_path / "out"
    file, position = end_of_binlog(server)
    try:
        with configured(server, variables), follow(server, out, start=f"{file}:{position}") as engine:
            for _ in workload.phases():
                engine.catch_up(server)
            ended = engine.stop()
        assert ended.status == 0, ended.stderr
        assert_sound(out)
        for checked in workload.checked():
            name = f"{DATABASE}.{checked.table}"
            changes = since(change_rows(spark, out, name), out, checked.emptied_by)
            assert_same_rows(
                replayed(changes, checked.keys, checked.columns), selected(server, name, checked.columns)
            )
    finally:
        server.execute(f"DROP DATABASE IF EXISTS {DATABASE}")


def since(changes: DataFrame, out: Path, statement: str | None) -> DataFrame:
    """The changes behind a statement, whose place the events feed tells."""
    if statement is None:
        return changes
    events = Changes(out).events().to_pylist()
    place = next(event["_seq"] for event in events if event["statement"] == statement)
    return changes.where(F.col("_seq") > place)
