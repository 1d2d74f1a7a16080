"""Rows of every shape: partial images, columns that are hidden or generated, as many columns as there can be.

What the engine says of each row is compared with SELECT before and after the statement, and the columns that
it calls absent with those that the server's own mysqlbinlog does not print.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.output.reader import Changes
from tests.servers import Server
from tests.support.column_cases import CASES, Case, comparable
from tests.support.engine_run import drain
from tests.support.printed_values import printed_rows

pytestmark = [pytest.mark.server, pytest.mark.fewer_servers]

DATABASE = "shapes"

Table = dict[str, dict[str, str | None]]
State = tuple[str, Table, Table]
"""A row image, and the table before and after a statement that was logged with it."""


@pytest.fixture
def cursor(server: Server) -> Iterator[Any]:
    """A cursor in an empty database, whose rows are the texts that the server sends."""
    server.execute(f"DROP DATABASE IF EXISTS {DATABASE}", f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4")
    with server.connect(database=DATABASE, conv={}) as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = '', time_zone = '+00:00'")
        yield cursor
    server.execute(f"DROP DATABASE {DATABASE}")


def selected(cursor: Any, table: str, columns: dict[str, str]) -> Table:
    """The table by `id`; `columns` says what to ask for."""
    wanted = ", ".join(columns.values())
    cursor.execute(f"SELECT {wanted} FROM {table}")
    rows = [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]
    return {row["id"]: row for row in rows}


def ingested(server: Server, start: Path, out: Path, table: str) -> list[dict[str, Any]]:
    drain(server, out, start=f"{start.name}:4", temporal="text", tables=f"{DATABASE}.*")
    return Changes(out).read(DATABASE, table).to_pylist()


def wide_cases(server: Server) -> dict[str, Case]:
    """Every type but the largest, which would not fit into one row together."""
    return {
        f"c{number}": case
        for number, case in enumerate(CASES)
        if case.is_on(server.flavor) and case.declared not in ("VARCHAR(6000) COMPRESSED",)
    }


def change_values(cases: dict[str, Case], turn: int) -> str:
    return ", ".join(f"{name} = {case.values[turn % len(case.values)]}" for name, case in cases.items())


STATEMENTS = (
    "INSERT INTO t SET id = 1, {values0}",
    "INSERT INTO t (id) VALUES (2)",
    "UPDATE t SET {values1} WHERE id = 1",
    "UPDATE t SET c6 = 77, c57 = 'blob' WHERE id = 2",
    "UPDATE t SET id = 3 WHERE id = 2",
    "UPDATE t SET c47 = NULL, c8 = NULL WHERE id = 1",
    "DELETE FROM t",
)


def test_partial_row_images(server: Server, cursor: Any, tmp_path: Path) -> None:
    cases = wide_cases(server)
    shown = {"id": Case("INT", [])} | cases
    columns = {"id": "id"} | {name: case.select.format(name) for name, case in cases.items()}
    declared = ", ".join(f"{name} {case.declared}" for name, case in cases.items())
    engine = "Aria" if "mariadb" in server.flavor else "MyISAM"
    cursor.execute(f"CREATE TABLE t (id INT PRIMARY KEY, {declared}) ENGINE = {engine}")
    server.flush_binlog()
    start = server.binlogs()[-1]
    states: list[State] = []
    for row_image in ("FULL", "MINIMAL", "NOBLOB"):
        cursor.execute(f"SET SESSION binlog_row_image = {row_image}")
        for statement in STATEMENTS:
            before = selected(cursor, "t", columns)
            cursor.execute(statement.format(values0=change_values(cases, 0), values1=change_values(cases, 1)))
            states.append((row_image, before, selected(cursor, "t", columns)))
    complete = server.flush_binlog()
    rows = ingested(server, start, tmp_path / "out", "t")
    assert_images(rows, states, shown)
    tool = server.tool("mariadb-binlog" if "mariadb" in server.flavor else "mysqlbinlog")
    printed = [row for row in printed_rows(tool, complete) if row.table == "t"]
    if all(row.complete for row in printed):
        carried = [
            [number for number, name in enumerate(shown, 1) if name not in absent(row)] for row in rows
        ]
        assert carried == [sorted(row.values) for row in printed]


def absent(row: dict[str, Any]) -> set[str]:
    return set(row["_absent_columns"] or ())


def assert_images(rows: list[dict[str, Any]], states: list[State], shown: dict[str, Case]) -> None:
    """Each row carries what SELECT gave around its statement, and is as partial as it should be."""
    remaining = iter(rows)
    kinds: dict[str, set[int]] = {"FULL": set(), "MINIMAL": set(), "NOBLOB": set()}
    for row_image, before, after in states:
        changed = [key for key in {**before, **after} if before.get(key) != after.get(key)]
        images = sum((key in before) + (key in after) for key in changed)
        for row in (next(remaining) for _ in range(images)):
            state = after if row["_change_type"] in ("insert", "update_postimage") else before
            kinds[row_image].add(len(absent(row)))
            matching = [
                key
                for key in changed
                if key in state
                and all(
                    (None if row[name] is None else case.shown(row[name]))
                    == comparable(case, state[key][name])
                    for name, case in shown.items()
                    if name not in absent(row)
                )
            ]
            assert matching, (row_image, row)
            assert all(row[name] is None for name in absent(row))
    assert next(remaining, None) is None
    assert kinds["FULL"] == {0}
    assert len(kinds["MINIMAL"]) > 3
    assert max(kinds["NOBLOB"]) > 3


_DERIVED_57 = (
    "s BIGINT AS (a + id) STORED, v VARCHAR(20) AS (CONCAT('#', id)) VIRTUAL, "
    "h INT DEFAULT 7, g VARCHAR(40) AS (UPPER(b)) STORED"
)
DERIVED = {
    "mysql-9.7": "s BIGINT AS (a + id) STORED, v VARCHAR(20) AS (CONCAT('#', id)) VIRTUAL, "
    "h INT INVISIBLE DEFAULT 7, g VARCHAR(40) AS (UPPER(b)) STORED INVISIBLE, INDEX ((a + 1))",
    "mysql-8.0": _DERIVED_57,
    "mysql-5.7": _DERIVED_57,
    "mysql-5.6": "",
    "mariadb-10.11": "s BIGINT AS (a + id) PERSISTENT, v VARCHAR(20) AS (CONCAT('#', id)) VIRTUAL, "
    "h INT INVISIBLE DEFAULT 7, g VARCHAR(40) AS (UPPER(b)) STORED INVISIBLE",
}
DERIVED["mariadb-11.8"] = DERIVED["mariadb-10.11"]


def test_generated_and_invisible_columns(server: Server, cursor: Any, metadata: str, tmp_path: Path) -> None:
    if not DERIVED[server.flavor]:
        pytest.skip("MySQL 5.6 has neither")
    cursor.execute(f"CREATE TABLE t (id INT PRIMARY KEY, b VARCHAR(20), a INT, {DERIVED[server.flavor]})")
    server.flush_binlog()
    start = server.binlogs()[-1]
    names = ["id", "b", "a", "s", "v", "h", "g"]
    states = []
    for statement in (
        "INSERT INTO t (id, b, a) VALUES (1, 'ä', 10)",
        "INSERT INTO t (id, b, a, h) VALUES (2, NULL, NULL, NULL)",
        "UPDATE t SET a = 11, b = 'new', h = 8 WHERE id = 1",
        "DELETE FROM t WHERE id = 1",
    ):
        before = selected(cursor, "t", dict(zip(names, names, strict=True)))
        cursor.execute(statement)
        states.append((before, selected(cursor, "t", dict(zip(names, names, strict=True)))))
    rows = ingested(server, start, tmp_path / "out", "t")
    got = [
        (row["_change_type"], {name: None if row[name] is None else str(row[name]) for name in names})
        for row in rows
    ]
    wanted = [
        ("insert", states[0][1]["1"]),
        ("insert", states[1][1]["2"]),
        ("update_preimage", states[2][0]["1"]),
        ("update_postimage", states[2][1]["1"]),
        ("delete", states[3][0]["1"]),
    ]
    assert got == [
        (kind, state | dict.fromkeys(absent(row))) for (kind, state), row in zip(wanted, rows, strict=True)
    ]
    lacking = {name for row in rows for name in absent(row)}
    if not server.flavor.startswith("mariadb"):
        assert not lacking
        return
    # From 11.8.9 on, the images of updates and deletes lack generated columns.
    assert lacking in (set(), {"s", "v", "g"})
    assert not any(map(absent, rows[:2]))
    images = [[number for number, name in enumerate(names, 1) if name not in absent(row)] for row in rows]
    assert images == [sorted(row.values) for row in printed_rows(server.tool("mysqlbinlog"), start)]


MOST_COLUMNS = {
    "mysql-9.7": 4096,
    "mysql-8.0": 4096,
    "mysql-5.7": 2599,
    "mysql-5.6": 2599,
    "mariadb-10.11": 2700,
    "mariadb-11.8": 2700,
}
"""Where definitions are kept in .frm files, these hold no more of them, with names as short as here."""


def test_as_many_columns_as_a_table_can_have(
    server: Server, cursor: Any, metadata: str, tmp_path: Path
) -> None:
    count = MOST_COLUMNS[server.flavor]
    names = ["id", *(f"c{number}" for number in range(1, count))]
    columns = ", ".join(f"{name} TINYINT" for name in names[1:])
    cursor.execute(f"CREATE TABLE t (id SMALLINT PRIMARY KEY, {columns}) ENGINE = MyISAM")
    server.flush_binlog()
    start = server.binlogs()[-1]
    values = [None if number % 7 == 0 else number % 256 - 128 for number in range(1, count)]
    literals = ", ".join("NULL" if value is None else str(value) for value in values)
    cursor.execute(f"INSERT INTO t VALUES (1, {literals})")
    cursor.execute("SET SESSION binlog_row_image = MINIMAL")
    cursor.execute(f"UPDATE t SET c1 = 5, c{count - 1} = 6")
    inserted, before, after = ingested(server, start, tmp_path / "out", "t")
    assert [inserted[name] for name in names] == [1, *values]
    assert [name for name in names if name not in absent(before)] == ["id"]
    assert {name: after[name] for name in names if name not in absent(after)} == {"c1": 5, f"c{count - 1}": 6}


def test_rows_of_several_megabytes(server: Server, cursor: Any, tmp_path: Path) -> None:
    cursor.execute("CREATE TABLE t (id INT PRIMARY KEY, b LONGBLOB, c LONGTEXT)")
    server.flush_binlog()
    start = server.binlogs()[-1]
    digests = "SELECT SHA2(b, 256), SHA2(c, 256), LENGTH(b) + LENGTH(c) FROM t"
    wants = []
    for statement in (
        "INSERT INTO t VALUES (1, REPEAT(x'00ff27', 1500000), REPEAT('größe', 500000))",
        "UPDATE t SET c = REPEAT('漢', 1000001)",
    ):
        cursor.execute(statement)
        cursor.execute(digests)
        wants.append(cursor.fetchall()[0])
    rows = ingested(server, start, tmp_path / "out", "t")
    got = [
        (
            hashlib.sha256(row["b"]).hexdigest(),
            hashlib.sha256(row["c"].encode()).hexdigest(),
            str(len(row["b"]) + len(row["c"].encode())),
        )
        for row in rows
    ]
    assert got == [wants[0], wants[0], wants[1]]
    assert int(wants[0][2]) > 7_000_000
