"""`tests.fuzz.suite_statements`: what is compared, and that a table that is not named is noticed."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.schema.statements import ChangeRows
from tests.servers import Server
from tests.support.suite_findings import Findings
from tests.support.suite_statements import SuiteStatements

pytestmark = [pytest.mark.server, pytest.mark.timeout(300)]

FILE = """
CREATE TABLE t1 (a INT PRIMARY KEY, b VARCHAR(9));
CREATE TABLE t2 (a INT);
INSERT INTO t1 VALUES (1, 'x');
INSERT INTO t2 SELECT a FROM t1;
UPDATE t1, t2 SET b = 'y' WHERE t1.a = t2.a;
DELETE FROM t2 WHERE a > 5;
CREATE VIEW v AS SELECT * FROM t2;
DELETE FROM v;
"""


def compared(server: Server, folder: Path) -> Findings:
    path = folder / "some.test"
    path.write_text(FILE)
    statements = SuiteStatements(server, seconds=200)
    statements.compare_file(path)
    return statements.findings


def test_tables_are_compared_after_each_statement(mysql97: Server, tmp_path: Path) -> None:
    """An UPDATE of two tables names both if it does not say of which one a column is."""
    expected = {
        "files": 1,
        "statements that changed rows": 4,
        "that named more tables": 2,
        "through a view": 1,
    }
    assert compared(mysql97, tmp_path).counts == expected


def test_a_table_that_is_not_named_is_noticed(
    mysql97: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    none = property(lambda statement: (), lambda statement, tables: None)
    monkeypatch.setattr(ChangeRows, "tables", none)
    assert compared(mysql97, tmp_path).counts["wrong"] == 4
