"""Rows that the engine reads of a server's own tests: what is compared, and what is noticed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.schema.changes import TableName
from tests.fuzz import suite_rows
from tests.fuzz.suite_rows import SuiteReader
from tests.servers import Server
from tests.support.suite_changes import Changes, changes_in
from tests.support.suite_findings import Findings

FILE = """
CREATE TABLE t1 (a INT PRIMARY KEY, b VARCHAR(9), c DECIMAL(9,2), d DOUBLE(8,2), e ENUM('x','y'));
INSERT INTO t1 VALUES (1, 'one', 1.5, 7.94, 'x'), (2, 'two', NULL, 7.94 + 0.05, 'y');
UPDATE t1 SET b = 'three' WHERE a = 2;
ALTER TABLE t1 CHANGE b f VARBINARY(20), ADD g DATETIME(3) DEFAULT '2026-11-28 01:02:03.456';
BEGIN;
DELETE FROM t1 WHERE a = 1;
INSERT INTO t1 (a, f) VALUES (4, 'four');
CREATE TABLE t2 AS SELECT a, f, g FROM t1;
TRUNCATE TABLE t1;
INSERT INTO t1 (a) VALUES (5);
INSERT INTO t1 (a) VALUES (5);
RENAME TABLE t2 TO t3;
INSERT INTO t3 SELECT * FROM t3;
DROP TABLE t1;
"""


def compared(server: Server, folder: Path) -> Findings:
    path = folder / "some.test"
    path.write_text(FILE)
    reader = SuiteReader(server, folder / "out", seconds=25, runs=2, seed=1)
    reader.read(path)
    return reader.findings


@pytest.mark.server
@pytest.mark.parametrize("flavor", ["mysql-9.7", "mysql-5.7", "mariadb-11.8"])
def test_rows_lead_from_one_definition_to_the_next(
    flavor: str, own_server: Callable[..., Server], tmp_path: Path
) -> None:
    found = compared(own_server(flavor, {}), tmp_path)
    assert found.differences == []
    assert (found.counts["files"], found.counts["changes"]) == (1, 13)


def without_the_last(changes: Changes) -> None:
    changes[TableName("test", "t3")].pop()


def with_another_value(changes: Changes) -> None:
    changes[TableName("test", "t1")][0]["c"] += 1


def with_another_name(changes: Changes) -> None:
    for row in changes[TableName("test", "t2")]:
        row["h"] = row.pop("g")


@pytest.mark.server
@pytest.mark.parametrize(
    ("damage", "table"),
    [(without_the_last, "test.t3"), (with_another_value, "test.t1"), (with_another_name, "test.t2")],
)
def test_changes_that_are_wrong_are_noticed(
    damage: Callable[[Changes], None],
    table: str,
    own_server: Callable[..., Server],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def damaged(out: Path) -> Any:
        changes = changes_in(out)
        damage(changes)
        return changes

    monkeypatch.setattr(suite_rows, "changes_in", damaged)
    found = compared(own_server("mysql-9.7", {}), tmp_path)
    assert [each.split()[2].rstrip(",") for each in found.differences] == [table]


@pytest.mark.server
def test_an_engine_that_stops_is_noticed(own_server: Callable[..., Server], tmp_path: Path) -> None:
    path = tmp_path / "some.test"
    path.write_text(
        "CREATE TABLE t (a ENUM(0xc3a4) CHARSET utf8mb4); INSERT INTO t VALUES ('ä'); DROP TABLE t;"
    )
    reader = SuiteReader(own_server("mysql-5.7", {}), tmp_path / "out", seconds=25, runs=1, seed=1)
    reader.read(path)
    found = reader.findings
    assert [each.split(": ")[1] for each in found.differences] == ["stopped", "wrong"]
    assert "cannot be named" in found.differences[0]
