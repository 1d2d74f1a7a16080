"""MariaDB's tables with system versioning: rows of the history have the names of their time."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from engine.output.reader import Changes
from tests.servers import Server
from tests.support.engine_run import drain, end_of_binlog

pytestmark = pytest.mark.server

STATEMENTS = [
    "DROP DATABASE IF EXISTS versioned",
    "CREATE DATABASE versioned",
    "CREATE TABLE versioned.t (id INT PRIMARY KEY, a INT) WITH SYSTEM VERSIONING",
    "INSERT INTO versioned.t (id, a) VALUES (1, 10), (2, 20)",
    "UPDATE versioned.t SET a = 11 WHERE id = 1",
    "DELETE FROM versioned.t WHERE id = 2",
    "SET STATEMENT system_versioning_alter_history = KEEP FOR ALTER TABLE versioned.t CHANGE a b INT",
    "UPDATE versioned.t SET b = 12 WHERE id = 1",
    "SET STATEMENT system_versioning_alter_history = KEEP FOR ALTER TABLE versioned.t ADD c INT FIRST",
    "DELETE FROM versioned.t WHERE id = 1",
    "DELETE HISTORY FROM versioned.t",
    "ALTER TABLE versioned.t DROP SYSTEM VERSIONING",
    "INSERT INTO versioned.t VALUES (5, 3, 30)",
]
PRESENT, PAST = {"row_end": "present"}, {"row_end": "past"}
EXPECTED = [
    ("insert", {"id": 1, "a": 10} | PRESENT),
    ("insert", {"id": 2, "a": 20} | PRESENT),
    ("update_preimage", {"id": 1, "a": 10} | PRESENT),
    ("update_postimage", {"id": 1, "a": 11} | PRESENT),
    ("insert", {"id": 1, "a": 10} | PAST),
    ("update_preimage", {"id": 2, "a": 20} | PRESENT),
    ("update_postimage", {"id": 2, "a": 20} | PAST),
    ("update_preimage", {"id": 1, "b": 11} | PRESENT),
    ("update_postimage", {"id": 1, "b": 12} | PRESENT),
    ("insert", {"id": 1, "b": 11} | PAST),
    ("update_preimage", {"id": 1, "b": 12} | PRESENT),
    ("update_postimage", {"id": 1, "b": 12} | PAST),
    ("delete", {"id": 1, "b": 10} | PAST),
    ("delete", {"id": 1, "b": 11} | PAST),
    ("delete", {"id": 1, "b": 12} | PAST),
    ("delete", {"id": 2, "b": 20} | PAST),
    ("insert", {"c": 5, "id": 3, "b": 30}),
]


@pytest.mark.parametrize("metadata", ["NO_LOG", "FULL"])
def test_rows_of_the_history(mariadb118: Server, metadata: str, tmp_path: Path) -> None:
    start = "{}:{}".format(*end_of_binlog(mariadb118))
    mariadb118.execute(f"SET GLOBAL binlog_row_metadata = {metadata}", *STATEMENTS)
    mariadb118.execute("DROP DATABASE versioned", "SET GLOBAL binlog_row_metadata = DEFAULT")
    drain(mariadb118, tmp_path, start=start, tables="versioned.*")
    found = []
    now = datetime.now(UTC)
    for row in sorted(Changes(tmp_path).read("versioned", "t").to_pylist(), key=lambda row: row["_seq"]):
        values = {name: row[name] for name in ("c", "id", "a", "b") if row.get(name) is not None}
        if row.get("row_end") is not None:
            assert row["row_start"] <= now
            values |= PAST if row["row_end"] <= now else PRESENT
        found.append((row["_change_type"], values))
    assert found == [*EXPECTED, ("truncate", {})]
