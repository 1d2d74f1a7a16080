"""`tests.fuzz.suite_snapshots`: what is compared, and that rows that are missing are noticed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.servers import Server
from tests.support import suite_snapshots
from tests.support.suite_changes import Changes, changes_in
from tests.support.suite_findings import Findings
from tests.support.suite_snapshots import SuiteSnapshots

pytestmark = [pytest.mark.server, pytest.mark.timeout(300)]

FILE = """
CREATE TABLE t1 (a INT PRIMARY KEY, b VARCHAR(9));
CREATE TABLE t2 (a INT) SELECT 1 AS a UNION ALL SELECT 1 UNION ALL SELECT NULL;
UPDATE t2 SET a = 2 WHERE a IS NULL;
ALTER TABLE t1 ADD c DATETIME(3);
"""


def compared(server: Server, folder: Path) -> Findings:
    path = folder / "some.test"
    path.write_text(FILE)
    snapshots = SuiteSnapshots(server, folder / "out", seconds=200, moments=1, seed=1)
    snapshots.compare_file(path)
    return snapshots.findings


def test_rows_are_compared_at_the_snapshot_and_before_the_next_definition(
    mysql97: Server, tmp_path: Path
) -> None:
    assert compared(mysql97, tmp_path).counts == {"files": 1, "tables": 4, "rows": 6}


def test_a_row_that_is_missing_is_noticed(
    mysql97: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged(out: Path) -> Changes:
        return {name: rows[1:] for name, rows in changes_in(out).items()}

    monkeypatch.setattr(suite_snapshots, "changes_in", damaged)
    assert compared(mysql97, tmp_path).counts["wrong"] == 2
