"""A snapshot of MariaDB's tables with system versioning, while rows of their history are deleted."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.output.reader import Changes
from tests.servers import Server
from tests.support.engine_run import follow
from tests.support.snapshot_runs import snapshots_are_over, wait_for_snapshots

pytestmark = [pytest.mark.server, pytest.mark.slow]

ROWS, VERSIONS = 500, 30
TABLES = {"plain": "row_end", "declared": "e"}
"""The name of each table's column for the end of a row."""
PERIOD = (
    "s TIMESTAMP(6) GENERATED ALWAYS AS ROW START, e TIMESTAMP(6) GENERATED ALWAYS AS ROW END, "
    "PERIOD FOR SYSTEM_TIME (s, e)"
)


@pytest.mark.parametrize("image", ["FULL", "MINIMAL"])
@pytest.mark.parametrize("flavor", ["mariadb-10.11", "mariadb-11.8"])
def test_rows_whose_history_is_deleted_meanwhile(
    flavor: str, image: str, shared_server: Callable[[str], Server], tmp_path: Path
) -> None:
    """Such an event has the key of a present row, which has not changed."""
    server = shared_server(flavor)
    with server.connect() as connection, connection.cursor() as cursor:
        for statement in (
            "DROP DATABASE IF EXISTS past",
            "CREATE DATABASE past",
            "USE past",
            f"SET binlog_row_image = {image}",
            "CREATE TABLE plain (id INT PRIMARY KEY, v INT) WITH SYSTEM VERSIONING",
            f"CREATE TABLE declared (id INT PRIMARY KEY, v INT, {PERIOD}) WITH SYSTEM VERSIONING",
            *(f"INSERT INTO {table} (id, v) SELECT seq, 0 FROM seq_1_to_{ROWS}" for table in TABLES),
        ):
            cursor.execute(statement)
        moments = []
        for _ in range(VERSIONS):
            for table in TABLES:
                cursor.execute(f"UPDATE {table} SET v = v + 1")
            cursor.execute("SELECT NOW(6)")
            moments.append(cursor.fetchone()[0])
        settings = {"snapshot_chunk_rows": 50, "snapshot_rate": ROWS, "snapshot_workers": 1}
        with follow(server, tmp_path, start="snapshot", tables="past.*", **settings) as engine:
            engine.wait_for_commits(1)
            for moment, table in itertools.product(moments, TABLES):
                if snapshots_are_over(tmp_path):
                    break
                cursor.execute(f"DELETE HISTORY FROM {table} BEFORE SYSTEM_TIME '{moment}'")
            wait_for_snapshots(engine, tmp_path)
            engine.catch_up(server)
            assert engine.stop().status == 0
        for table, end in TABLES.items():
            cursor.execute(f"SELECT id, v FROM {table}")
            assert _present_rows(tmp_path, table, end) == dict(cursor.fetchall())
        cursor.execute("DROP DATABASE past")


def _present_rows(out: Path, table: str, end: str) -> dict[int, int]:
    rows: dict[int, int] = {}
    for row in sorted(Changes(out).read("past", table).to_pylist(), key=lambda row: row["_seq"]):
        if row["_change_type"] == "truncate":
            rows.clear()
        elif row[end].year >= 2038 and row["_change_type"] in ("delete", "update_preimage"):
            del rows[row["id"]]
        elif row[end].year >= 2038:
            rows[row["id"]] = row["v"]
    return rows
