"""`tests.fuzz.suite_mirror`: what is compared, and that a target that is wrong is noticed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.servers import Server
from tests.support.lakehouse import Lakehouse
from tests.support.suite_findings import Findings
from tests.support.suite_targets import SuiteTargets

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.timeout(900)]

FILE = """
DROP TABLE IF EXISTS t1;
DROP TABLE IF EXISTS t2;
DROP TABLE IF EXISTS t3;
CREATE TABLE t1 (a INT PRIMARY KEY, b VARCHAR(9));
INSERT INTO t1 VALUES (1, 'one'), (2, NULL);
CREATE TABLE t2 (a INT, g INT AS (a + 1) STORED);
INSERT INTO t2 (a) VALUES (1), (1);
DROP TABLE IF EXISTS t3;
ALTER TABLE t1 ADD c DATETIME(3);
UPDATE t1 SET c = '2026-11-28 01:02:03.456' WHERE a = 2;
ALTER TABLE t2 MODIFY g INT AS (a + 2) STORED;
"""


def compared(server: Server, lake: Lakehouse, folder: Path, prefix: str) -> Findings:
    path = folder / "some.test"
    path.write_text(FILE)
    targets = SuiteTargets(server, lake, folder / "out", seconds=600, moments=1, seed=1, prefix=prefix)
    targets.compare_file(path)
    return targets.findings


def test_targets_are_compared(mysql97: Server, lake: Lakehouse, tmp_path: Path) -> None:
    found = compared(mysql97, lake, tmp_path, "right")
    assert found.counts == {"files": 1, "tables": 3, "rows": 6, "set aside": 1}
    assert "right1.t2" in found.differences[0]


def test_a_target_that_is_wrong_is_noticed(
    mysql97: Server, delta: Lakehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = Lakehouse.rows

    def damaged(lake: Lakehouse, table: str) -> list[dict[str, Any]]:
        found = rows(lake, table)
        return found[:-1] if table.endswith("t1") else found

    monkeypatch.setattr(Lakehouse, "rows", damaged)
    found = compared(mysql97, delta, tmp_path, "damaged")
    assert [each.split(": ")[1] for each in found.differences] == ["wrong", "set aside", "wrong"]
