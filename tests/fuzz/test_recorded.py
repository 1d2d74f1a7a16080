"""The comparison of recorded binlogs with the server's tool: nothing differs, and what differs is noticed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.fuzz.recorded import Report, compare
from tests.servers import Server

pytestmark = pytest.mark.server


def recorded(server: Server, folder: Path, *statements: str) -> Report:
    server.execute("DROP DATABASE IF EXISTS recorded")
    server.flush_binlog()
    server.execute("CREATE DATABASE recorded", "USE recorded", *statements)
    binlog = server.flush_binlog()
    server.execute("DROP DATABASE recorded")
    (report,) = compare([Path(shutil.copy(binlog, folder))], server.flavor)
    return report


def test_nothing_differs(server: Server, tmp_path: Path) -> None:
    report = recorded(
        server,
        tmp_path,
        "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20) NOT NULL, price DECIMAL(8, 2))",
        "INSERT INTO t VALUES (1, 'a', -1.5), (2, 'b', NULL)",
        "ALTER TABLE t ADD made DATETIME(3) AFTER id",
        "UPDATE t SET made = '2001-02-03 04:05:06.789'",
        "DELETE FROM t",
    )
    assert (report.rows, report.values, report.differences) == (8, 30, {})
    assert report.table_maps == {"compared": 3}


def test_a_definition_that_does_not_follow_from_statements(server: Server, tmp_path: Path) -> None:
    report = recorded(
        server,
        tmp_path,
        "CREATE TABLE t (id INT PRIMARY KEY)",
        *("SET sql_log_bin = 0", "ALTER TABLE t ADD a INT", "SET sql_log_bin = 1"),
        "INSERT INTO t VALUES (1, 2)",
    )
    assert report.differences == {"definition": 1}
    assert "1 columns in the catalog, 2 in the binlog" in report.examples[0]
