"""From a server's binlog to Spark: replaying what was ingested gives what SELECT gives, value by value."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from engine.output.reader import Changes
from tests.servers import FLAVORS, Server
from tests.support.binlog_listing import Listed, listed_events
from tests.support.committed import assert_same_changes, assert_sound
from tests.support.engine_run import follow, run_command
from tests.support.mixed_workload import DATABASE, Workload
from tests.support.same_rows import assert_same_rows, change_rows, replayed, selected, with_generated

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.slow, pytest.mark.fewer_servers]

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


METADATA = ["_seq", "_file", "_pos", "_gtid", "_commit_timestamp"]
ROWS_EVENT = re.compile("(Write|Update|Delete)_rows")

T = TypeVar("T")


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
def test_a_mixed_workload_arrives_value_by_value(
    shared_server: Callable[[str], Server],
    flavor: str,
    variables: dict[str, str],
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    server: Server = shared_server(flavor)
    workload = Workload(server, tmp_path / "load.tsv")
    out = tmp_path / "out"
    server.flush_binlog()
    binlog = server.binlogs()[-1]
    try:
        with configured(server, variables), follow(server, out, start=f"{binlog.name}:4") as engine:
            for _ in workload.phases():
                engine.catch_up(server)
            ended = engine.stop()
        assert ended.status == 0, ended.stderr
        assert_sound(out)
        assert_metadata_as_listed(out, server, binlog)
        if server.flavor == "mysql-9.7" and variables:
            assert_decodes_alone(binlog, out)
        for checked in workload.checked():
            name = f"{DATABASE}.{checked.table}"
            changes = since(change_rows(spark, out, name), out, checked.emptied_by)
            found = replayed(changes, checked.keys, checked.columns, generated=checked.generated)
            there = selected(server, name, checked.columns)
            if checked.generated:
                there = with_generated(there, found, checked.keys[0], checked.generated)
            assert_same_rows(found, there)
    finally:
        server.execute(f"DROP DATABASE IF EXISTS {DATABASE}")


def assert_metadata_as_listed(out: Path, server: Server, binlog: Path) -> None:
    """Where and when each change and statement happened is what the server's own tools say."""
    changes = Changes(out)
    found = [changes.read(*table).select([*METADATA, "_change_type"]) for table in changes.tables()]
    whole = pa.concat_tables(found)
    is_emptied = pc.equal(whole["_change_type"], "truncate")
    rows, emptied = whole.filter(pc.invert(is_emptied)), whole.filter(is_emptied)
    events = changes.events()
    statements = events.filter(pc.match_substring(events["type"], "QUERY")).select(METADATA)
    listed = listed_events(server, binlog)
    assert consecutive(metadata(rows.select(METADATA))) == consecutive(
        entry(binlog, event) for event in listed if ROWS_EVENT.match(event.type)
    )
    queries = {entry(binlog, event) for event in listed if event.type.startswith("Query")}
    assert len(statements) > 10
    assert queries.issuperset(metadata(statements))
    assert len(emptied) and queries.issuperset(metadata(emptied.select(METADATA)))


def assert_decodes_alone(binlog: Path, out: Path) -> None:
    """A file with full column metadata gives the same changes without its server."""
    ended = run_command("decode", str(binlog), "--out", f"{out}-decoded")
    assert ended.status == 0, ended.stderr
    assert_same_changes(Path(f"{out}-decoded"), out)


def metadata(rows: pa.Table) -> list[tuple[str, int, str | None, int]]:
    """File, position, GTID and commit time in microseconds of each row, in order of `_seq`."""
    ordered = rows.sort_by("_seq")
    times = ordered["_commit_timestamp"].cast(pa.int64())
    columns = (ordered["_file"], ordered["_pos"], ordered["_gtid"], times)
    return list(zip(*(column.to_pylist() for column in columns), strict=True))


def entry(binlog: Path, event: Listed) -> tuple[str, int, str | None, int]:
    """What `metadata` should give for an event."""
    return binlog.name, event.position, event.gtid, event.commit_us


def consecutive(entries: Iterable[T]) -> list[T]:
    """The entries, several equal ones in a row once."""
    return [entry for entry, _ in itertools.groupby(entries)]


def since(changes: DataFrame, out: Path, statement: str | None) -> DataFrame:
    """The changes after a statement, whose position is in the events feed."""
    if statement is None:
        return changes
    events = Changes(out).events().to_pylist()
    place = next(event["_seq"] for event in events if event["statement"] == statement)
    return changes.where(F.col("_seq") > place)
