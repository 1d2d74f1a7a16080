"""Statements that change rows of outer joined tables.

For these, MariaDB and MySQL 5.6 log that all columns of the inner table can be NULL.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.output.reader import Changes
from engine.output.schema_history import schema_history
from tests.servers import NO_ROW_METADATA, Server
from tests.support.engine_run import drain

pytestmark = pytest.mark.server

TABLES = (
    "CREATE TABLE parents (id INT NOT NULL PRIMARY KEY, name VARCHAR(10) NOT NULL)",
    "CREATE TABLE children (id INT NOT NULL PRIMARY KEY, parent INT NOT NULL, note VARCHAR(10))",
    "INSERT INTO parents VALUES (1, 'a'), (2, 'b'), (3, 'c')",
    "INSERT INTO children VALUES (10, 1, 'x'), (20, 2, NULL)",
)
_JOIN = "parents LEFT JOIN children ON children.parent = parents.id"
JOINED = (
    f"UPDATE {_JOIN} SET parents.name = 'z', note = 'joined'",
    f"DELETE parents, children FROM {_JOIN} WHERE parents.id > 1",
    "INSERT INTO children VALUES (30, 1, 'last')",
)
EXPECTED: dict[str, list[tuple[Any, ...]]] = {
    "parents": [
        *(("insert", 1, "a"), ("insert", 2, "b"), ("insert", 3, "c")),
        *(("update_preimage", 1, "a"), ("update_postimage", 1, "z")),
        *(("update_preimage", 2, "b"), ("update_postimage", 2, "z")),
        *(("update_preimage", 3, "c"), ("update_postimage", 3, "z")),
        *(("delete", 2, "z"), ("delete", 3, "z")),
    ],
    "children": [
        *(("insert", 10, 1, "x"), ("insert", 20, 2, None)),
        *(("update_preimage", 10, 1, "x"), ("update_postimage", 10, 1, "joined")),
        *(("update_preimage", 20, 2, None), ("update_postimage", 20, 2, "joined")),
        *(("delete", 20, 2, "joined"), ("insert", 30, 1, "last")),
    ],
}
COLUMNS = {"parents": ["id", "name"], "children": ["id", "parent", "note"]}


def changes_of(out: Path, database: str, table: str) -> list[tuple[Any, ...]]:
    rows = Changes(out).read(database, table).to_pylist()
    return [(row["_change_type"], *(row[name] for name in COLUMNS[table])) for row in rows]


@pytest.mark.parametrize("metadata", ["DEFAULT", "FULL"])
@pytest.mark.parametrize("begins", ["before the tables", "after them"])
def test_columns_are_still_known(server: Server, metadata: str, begins: str, tmp_path: Path) -> None:
    if server.flavor in NO_ROW_METADATA and metadata == "FULL":
        pytest.skip("it has no such setting")
    database = f"joins_{metadata.lower()}_{begins[0]}"
    server.execute(f"DROP DATABASE IF EXISTS {database}", f"CREATE DATABASE {database}")
    if server.flavor not in NO_ROW_METADATA:
        server.execute(f"SET GLOBAL binlog_row_metadata = {metadata}")
    try:
        server.flush_binlog()
        start = server.binlogs()[-1].name
        server.execute(f"USE {database}", *TABLES)
        if begins == "after them":
            server.flush_binlog()
            start = server.binlogs()[-1].name
        server.execute(f"USE {database}", *JOINED)
    finally:
        if server.flavor not in NO_ROW_METADATA:
            server.execute("SET GLOBAL binlog_row_metadata = DEFAULT")
    drain(server, tmp_path, start=f"{start}:4", tables=f"{database}.*")
    for table, expected in EXPECTED.items():
        inserted = 0 if begins == "before the tables" else 3 if table == "parents" else 2
        assert sorted(changes_of(tmp_path, database, table), key=repr) == sorted(
            expected[inserted:], key=repr
        )
    if begins == "before the tables":
        for table in EXPECTED:
            assert len(schema_history(tmp_path, database, table)) == 1
