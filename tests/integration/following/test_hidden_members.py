"""ENUM and SET members with characters that no server's catalog shows: rows have what SELECT returns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.binlog.table_definition import as_shown
from engine.net.client.connection import Connection
from engine.net.client.table_columns import describe_table
from engine.output.reader import Changes
from tests.servers import Server
from tests.support.engine_run import drain, end_of_binlog

pytestmark = pytest.mark.server

DATABASE = "hidden_members"
TABLE = (
    "CREATE TABLE hidden_members.t (id INT PRIMARY KEY, e ENUM('a😀', 'a🎉', 'b', 'why?'), "
    "s SET('x😀', 'y', 'x🎉') NOT NULL, l ENUM('a😀', 'é') CHARACTER SET latin1, "
    "u ENUM('漢😀', 'b?') CHARACTER SET utf16) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
)
COLUMNS = ("id", "e", "s", "l", "u")
TELLS_MEMBERS = ("mysql-9.7", "mariadb-10.11", "mariadb-11.8")
"""Servers that return the texts of members which no row has."""


@pytest.fixture
def tables(server: Server, metadata: str) -> Iterator[Server]:
    server.execute(f"DROP DATABASE IF EXISTS {DATABASE}", f"CREATE DATABASE {DATABASE}")
    yield server
    server.execute(f"DROP DATABASE {DATABASE}")


def insert(server: Server, first: int) -> None:
    rows = [(1, 1, 1, 1), (2, 2, 2, 2), (3, 7, 1, 1), (4, 4, 1, 2), ("NULL", 0, "NULL", "NULL")]
    values = ", ".join(f"({first + n}, {', '.join(map(str, row))})" for n, row in enumerate(rows))
    server.execute(f"INSERT INTO {DATABASE}.t VALUES {values}")


def selected(server: Server, since: int = 0) -> list[tuple[Any, ...]]:
    listed = ", ".join(COLUMNS)
    return list(server.query(f"SELECT {listed} FROM {DATABASE}.t WHERE id >= {since} ORDER BY id"))


def committed(out: Path) -> list[tuple[Any, ...]]:
    found = Changes(out).read(DATABASE, "t")
    return sorted(zip(*(found[name].to_pylist() for name in COLUMNS), strict=True))


def test_defined_by_a_statement(tables: Server, tmp_path: Path) -> None:
    start = f"{end_of_binlog(tables)[0]}:{end_of_binlog(tables)[1]}"
    tables.execute(TABLE)
    insert(tables, 1)
    ended = drain(tables, tmp_path, start=start)
    assert "warning" not in ended.stderr
    assert committed(tmp_path) == selected(tables)
    assert selected(tables)[0] == (1, "a😀", "x😀", "a?", "漢😀")
    # Continued with what the output knows.
    tables.execute(f"ALTER TABLE {DATABASE}.t MODIFY e ENUM('a😀', 'a🎉', 'b', 'why?', 'c🚀') FIRST")
    tables.execute(f"INSERT INTO {DATABASE}.t (id, e, s) VALUES (20, 5, 4)")
    drain(tables, tmp_path)
    assert committed(tmp_path) == selected(tables)


def test_defined_before_the_stream_begins(tables: Server, metadata: str, tmp_path: Path) -> None:
    tables.execute(TABLE)
    insert(tables, 1)
    file, position = end_of_binlog(tables)
    insert(tables, 10)
    ended = drain(tables, tmp_path, start=f"{file}:{position}")
    rows = selected(tables, since=10)
    if metadata == "full metadata" or tables.flavor in TELLS_MEMBERS:
        assert committed(tmp_path) == rows
        assert "warning" not in ended.stderr
    else:
        shown = [tuple(as_shown(value) if isinstance(value, str) else value for value in row) for row in rows]
        assert committed(tmp_path) == shown
        warned = [line for line in ended.stderr.splitlines() if "cannot show" in line]
        assert [line.partition(f"members of {DATABASE}.t.")[2][:2] for line in warned] == ["e,", "s,", "u,"]


def test_read_by_a_snapshot(tables: Server, tmp_path: Path) -> None:
    tables.execute(TABLE)
    insert(tables, 1)
    drain(tables, tmp_path, start="snapshot")
    assert committed(tmp_path) == selected(tables)
    # Rows of the stream are in the same columns.
    insert(tables, 10)
    drain(tables, tmp_path)
    assert len(committed(tmp_path)) == 10
    assert committed(tmp_path)[:5] == selected(tables)[:5]


def test_what_a_server_tells_without_a_row(tables: Server) -> None:
    members = tuple(f"{number}😀" for number in range(300))
    enum, few, many = (",".join(map(repr, some)) for some in (members, members[:8], members[:64]))
    tables.execute(
        f"CREATE TABLE {DATABASE}.`it``s` (e ENUM({enum}), f SET({few}), s SET({many}), q ENUM('?')) "
        "CHARACTER SET utf8mb4"
    )
    doubts: list[str] = []
    with Connection.open(tables.host, tables.port, tables.user) as connection:
        found = describe_table(connection, DATABASE, "it`s", lambda _, column: doubts.append(column))
    assert found is not None
    want = {"e": members, "f": members[:8], "s": members[:64], "q": ("?",)}
    unknown = "efsq" if tables.flavor not in TELLS_MEMBERS else "s" if "mariadb" in tables.flavor else ""
    assert doubts == list(unknown)
    for column in found.columns:
        texts = want[column.name]
        assert column.members == (tuple(map(as_shown, texts)) if column.name in unknown else texts)


def test_a_table_that_the_user_may_not_read(mysql97: Server) -> None:
    mysql97.execute(f"DROP DATABASE IF EXISTS {DATABASE}", f"CREATE DATABASE {DATABASE}", TABLE)
    mysql97.execute("CREATE USER blind IDENTIFIED BY 'x'", f"GRANT INSERT ON {DATABASE}.* TO blind")
    doubts: list[str] = []
    try:
        with Connection.open(mysql97.host, mysql97.port, "blind", "x") as connection:
            found = describe_table(connection, DATABASE, "t", lambda _, column: doubts.append(column))
            assert connection.query("SELECT @@lock_wait_timeout = @@GLOBAL.lock_wait_timeout") == [("1",)]
    finally:
        mysql97.execute("DROP USER blind", f"DROP DATABASE {DATABASE}")
    assert found is not None and found.columns[1].members == ("a?", "a?", "b", "why?")
    assert doubts == ["e", "s", "u"]
