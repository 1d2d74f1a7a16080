"""Tables whose rows a statement changes without row events while they are read: they begin anew."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from engine.output.commit_log import CommitLog
from engine.output.reader import Changes
from engine.output.schema_history import rewritten_tables
from tests.servers import Server
from tests.support.engine_run import follow, wait_until
from tests.support.snapshot_runs import table_snapshots, wait_for_snapshots

pytestmark = pytest.mark.server

ROWS = 200
SLOW = {"snapshot_chunk_rows": 20, "snapshot_rate": 100, "commit_interval": 0.05, "workers": 1}
"""So slow that the table is not read before its rows are changed, on a busy machine, too."""
DROP = "ALTER TABLE rewritten.parts DROP PARTITION low"
EXCHANGE = "ALTER TABLE rewritten.parts EXCHANGE PARTITION low WITH TABLE rewritten.other"


@pytest.mark.parametrize("statement", [DROP, EXCHANGE])
def test_partitions_are_dropped_and_exchanged(mysql97: Server, statement: str, tmp_path: Path) -> None:
    """Of a partition that was read, after another statement that had the table read."""
    mysql97.execute(
        "DROP DATABASE IF EXISTS rewritten",
        "CREATE DATABASE rewritten",
        "CREATE TABLE rewritten.other (id INT PRIMARY KEY)",
        "CREATE TABLE rewritten.parts LIKE rewritten.other",
        "ALTER TABLE rewritten.parts PARTITION BY RANGE (id) (PARTITION lowest VALUES LESS THAN (0), "
        "PARTITION low VALUES LESS THAN (40), PARTITION high VALUES LESS THAN MAXVALUE)",
        "INSERT INTO rewritten.other VALUES (7)",
    )
    mysql97.execute_many("INSERT INTO rewritten.parts VALUES (%s)", [(n,) for n in range(ROWS)])
    # Otherwise it may have no rows by the server's estimate, and is then read at once.
    mysql97.query("ANALYZE TABLE rewritten.parts")

    def the_partition_is_read() -> bool:
        table = table_snapshots(tmp_path).get("parts")
        return table is not None and table.rows >= 60

    settings = {"start": "latest", "tables": "rewritten.parts", **SLOW}
    with follow(mysql97, tmp_path, "--snapshot-when-changed", **settings) as engine:
        engine.wait_for_commit(lambda commit: True)
        mysql97.execute("ALTER TABLE rewritten.parts DROP PARTITION lowest")
        wait_until(the_partition_is_read, "rows", check=engine.must_run)
        mysql97.execute(statement)
        engine.catch_up(mysql97)
        wait_for_snapshots(engine, tmp_path)
        assert engine.stop().status == 0
    assert not rewritten_tables(tmp_path, CommitLog(tmp_path).latest_version())
    changes = Changes(tmp_path).read("rewritten", "parts").to_pylist()
    begin = max(number for number, row in enumerate(changes) if row["_change_type"] == "truncate")
    assert Counter((row["id"],) for row in changes[begin + 1 :]) == Counter(
        mysql97.query("SELECT id FROM rewritten.parts")
    )
