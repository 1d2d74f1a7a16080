"""Statements that remove rows and change definitions, on real servers: rows, commit log, events feed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.output.commit_log import CommitLog
from engine.output.reader import Changes
from engine.output.schema_history import schema_history, stored_schema
from tests.servers import Server
from tests.support.engine_run import drain, end_of_binlog

pytestmark = pytest.mark.server

BEFORE = (
    "CREATE DATABASE emptied",
    "CREATE TABLE emptied.t (id INT PRIMARY KEY)",
    "INSERT INTO emptied.t VALUES (1), (2)",
    "TRUNCATE emptied.t",
    "INSERT INTO emptied.t VALUES (3)",
)
AFTER = (
    "ALTER TABLE emptied.t ADD v INT",
    "INSERT INTO emptied.t VALUES (4, 4)",
    "RENAME TABLE emptied.t TO emptied.u",
    "INSERT INTO emptied.u VALUES (5, 5)",
    "DROP TABLE emptied.u",
)


@pytest.fixture
def start(server: Server) -> Iterator[str]:
    file, position = end_of_binlog(server)
    try:
        yield f"{file}:{position}"
    finally:
        server.execute("DROP DATABASE emptied")


def rows_of(out: Path, table: str) -> list[tuple[str, int | None]]:
    read = Changes(out).read("emptied", table)
    return list(zip(read["_change_type"].to_pylist(), read["id"].to_pylist(), strict=True))


def test_change_rows_and_history_follow_the_statements(server: Server, start: str, tmp_path: Path) -> None:
    """Over a restart in the middle, after which the definitions come from the commit log."""
    server.execute(*BEFORE)
    assert drain(server, tmp_path, "--start", start).status == 0
    server.execute(*AFTER)
    assert drain(server, tmp_path).status == 0
    assert rows_of(tmp_path, "t") == [
        *(("insert", 1), ("insert", 2), ("truncate", None)),
        *(("insert", 3), ("insert", 4)),
    ]
    assert rows_of(tmp_path, "u") == [("insert", 5), ("truncate", None)]
    history = schema_history(tmp_path, "emptied", "u", follow_renames=True)
    versions = [table for entry in history for table in entry.change.tables]
    assert [(table.name.table, table.version) for table in versions] == [
        ("t", 1),
        ("t", 2),
        ("u", 1),
        ("u", 2),
    ]
    assert [[column.name for column in table.columns or ()] for table in versions] == [
        ["id"],
        ["id", "v"],
        ["id", "v"],
        [],
    ]
    feed = Changes(tmp_path).events().to_pylist()
    concerned = [table for row in feed for table in json.loads(row["data"]).get("tables", ())]
    assert [(table["table"], table.get("version")) for table in concerned] == [
        *(("t", 1), ("t", None), ("t", 2)),
        *(("t", 3), ("u", 1), ("u", 2)),
    ]
    stored = stored_schema(tmp_path, CommitLog(tmp_path).latest_version())
    assert {table.name.table: table.columns for change in stored for table in change.tables} == {
        "t": None,
        "u": None,
    }


@pytest.mark.parametrize("flavor", ["mysql-5.6", "mysql-8.0", "mariadb-11.8"])
def test_a_table_in_memory_is_empty_after_a_restart(
    own_server: Callable[..., Server], flavor: str, tmp_path: Path
) -> None:
    """The server says so in UTF-8, although its event names the session's character set."""
    server = own_server(flavor, {})
    start = "{}:{}".format(*end_of_binlog(server))
    server.execute("CREATE DATABASE emptied", "CREATE TABLE emptied.`té` (id INT PRIMARY KEY) ENGINE=MEMORY")
    server.execute("INSERT INTO emptied.`té` VALUES (1), (2)")
    server.restart()
    with server.connect() as session, session.cursor() as cursor:
        session.set_character_set("latin1")
        cursor.execute("SELECT COUNT(*) FROM emptied.`té`")
        assert cursor.fetchone() == (0,)
    server.execute("INSERT INTO emptied.`té` VALUES (2)")
    assert drain(server, tmp_path, "--start", start).status == 0
    assert rows_of(tmp_path, "té") == [("insert", 1), ("insert", 2), ("truncate", None), ("insert", 2)]
