"""Servers whose `explicit_defaults_for_timestamp` is not the default of their version.

It decides whether a TIMESTAMP column is NOT NULL. Old binlogs do not contain it, and these have no more than
the default metadata, so each definition has to follow from the statements.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from engine.output.reader import Changes
from tests.servers import Server
from tests.support.engine_run import drain

pytestmark = pytest.mark.server

DATABASE = "implicit"
SETTINGS = {"mysql-5.6": "ON", "mysql-5.7": "ON", "mysql-8.0": "OFF", "mariadb-10.11": "OFF"}


@pytest.mark.parametrize("flavor", SETTINGS)
def test_each_definition_fits_the_binlog(
    own_server: Callable[..., Server], flavor: str, tmp_path: Path
) -> None:
    server = own_server(flavor, {"explicit_defaults_for_timestamp": SETTINGS[flavor]})
    start = f"{server.binlogs()[-1].name}:4"
    server.execute(
        f"CREATE DATABASE {DATABASE}",
        f"USE {DATABASE}",
        "CREATE TABLE t (id INT PRIMARY KEY, changed TIMESTAMP, a INT)",
        "INSERT INTO t VALUES (1, '2026-01-02 03:04:05', 5)",
        "ALTER TABLE t DROP a, ADD made TIMESTAMP DEFAULT '2026-01-01', ADD b INT",
        "INSERT INTO t VALUES (2, '2026-01-02 03:04:05', '2026-01-02 03:04:06', 6)",
        "ALTER TABLE t DROP changed",
    )
    drain(server, tmp_path, start=start, tables=f"{DATABASE}.*")
    changes = Changes(tmp_path).read(DATABASE, "t").select(["id", "changed", "a", "made", "b"])
    rows = [[None if value is None else str(value) for value in row.values()] for row in changes.to_pylist()]
    first, second = "2026-01-02 03:04:05+00:00", "2026-01-02 03:04:06+00:00"
    assert rows == [["1", first, "5", None, None], ["2", first, None, second, "6"]]
