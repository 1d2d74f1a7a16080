"""Servers with settings that are not the usual ones, decide what statements mean, and are not in the binlog.

Binlogs have no more than the default metadata here, so each definition has to follow from the statements.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from engine.output.reader import Changes
from tests.servers import Server
from tests.support.engine_run import drain

pytestmark = pytest.mark.server

DATABASE = "settings"
EXPLICIT_TIMESTAMPS = {"mysql-5.6": "ON", "mysql-5.7": "ON", "mysql-8.0": "OFF", "mariadb-10.11": "OFF"}
"""Which is not the default of the version."""


def rows_of(server: Server, out: Path, columns: list[str], *statements: str) -> list[list[str | None]]:
    """The rows of the table `t` that the statements make, read from the binlog when all are executed."""
    start = f"{server.binlogs()[-1].name}:4"
    server.execute(f"CREATE DATABASE {DATABASE}", f"USE {DATABASE}", *statements)
    drain(server, out, start=start, tables=f"{DATABASE}.*")
    changes = Changes(out).read(DATABASE, "t").select(columns).to_pylist()
    return [[None if value is None else str(value) for value in row.values()] for row in changes]


@pytest.mark.parametrize("flavor", EXPLICIT_TIMESTAMPS)
def test_whether_timestamp_columns_are_not_null(
    own_server: Callable[..., Server], flavor: str, tmp_path: Path
) -> None:
    server = own_server(flavor, {"explicit_defaults_for_timestamp": EXPLICIT_TIMESTAMPS[flavor]})
    rows = rows_of(
        server,
        tmp_path,
        ["id", "changed", "a", "made", "b"],
        "CREATE TABLE t (id INT PRIMARY KEY, changed TIMESTAMP, a INT)",
        "INSERT INTO t VALUES (1, '2026-01-02 03:04:05', 5)",
        "ALTER TABLE t DROP a, ADD made TIMESTAMP DEFAULT '2026-01-01', ADD b INT",
        "INSERT INTO t VALUES (2, '2026-01-02 03:04:05', '2026-01-02 03:04:06', 6)",
        "ALTER TABLE t DROP changed",
    )
    first, second = "2026-01-02 03:04:05+00:00", "2026-01-02 03:04:06+00:00"
    assert rows == [["1", first, "5", None, None], ["2", first, None, second, "6"]]


@pytest.mark.parametrize("engine", ["MyISAM", "MEMORY"])
def test_whether_a_unique_key_is_a_hidden_hash(
    own_server: Callable[..., Server], engine: str, tmp_path: Path
) -> None:
    """Which depends on the longest key of the storage engine."""
    server = own_server("mariadb-10.11", {"default_storage_engine": engine})
    rows = rows_of(
        server,
        tmp_path,
        ["id", "k", "a", "b"],
        "CREATE TABLE t (id INT PRIMARY KEY, k VARCHAR(300) CHARACTER SET utf8mb4 UNIQUE, a INT)",
        "INSERT INTO t VALUES (1, 'k', 5)",
        "ALTER TABLE t DROP a, ADD b INT",
        "INSERT INTO t VALUES (2, 'l', 6)",
        "ALTER TABLE t DROP k",
    )
    assert rows == [["1", "k", "5", None], ["2", "l", None, "6"]]
