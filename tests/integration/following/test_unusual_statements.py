"""Statements that are not logged, that concern other objects, or that change rows without row events.

All of it happens before an engine reads any of it, on servers that write no column names.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.output.commit_log import CommitLog
from engine.output.reader import Changes
from engine.output.schema_history import rewritten_tables, schema_history
from engine.schema.changes import TableName
from tests.servers import FLAVORS, Server
from tests.support.engine_run import assert_one_sentence, command_line, drain, end_of_binlog, run_command

pytestmark = pytest.mark.server

DATABASE = "unusual"
MARIADB = [flavor for flavor in FLAVORS if flavor.startswith("mariadb")]


@pytest.fixture(scope="module", params=FLAVORS)
def server(request: pytest.FixtureRequest, shared_server: Callable[[str], Server]) -> Iterator[Server]:
    server = shared_server(request.param)
    server.execute(f"CREATE DATABASE {DATABASE}")
    yield server
    server.execute(f"DROP DATABASE {DATABASE}")


def rows_of(out: Path, table: str) -> list[dict[str, Any]]:
    """Each row by the names that it came with."""
    found = Changes(out).read(DATABASE, table).sort_by("_seq").to_pylist()
    return [
        {name: value for name, value in row.items() if name[0] != "_" and value is not None} for row in found
    ]


def executed(server: Server, *statements: str) -> str:
    """Execute them in one session; returns the position before them."""
    start = "{}:{}".format(*end_of_binlog(server))
    server.execute(f"USE {DATABASE}", *statements)
    return start


def test_a_column_that_an_unlogged_statement_adds(server: Server, tmp_path: Path) -> None:
    """The table map shows it, and the server proves the definition."""
    start = executed(
        server,
        "CREATE TABLE unlogged (id INT PRIMARY KEY, a VARCHAR(10))",
        "INSERT INTO unlogged VALUES (1, 'x')",
        "SET sql_log_bin = 0",
        "ALTER TABLE unlogged ADD b INT",
        "SET sql_log_bin = 1",
        "INSERT INTO unlogged VALUES (2, 'y', 3)",
    )
    drain(server, tmp_path, start=start, tables=f"{DATABASE}.unlogged")
    assert rows_of(tmp_path, "unlogged") == [{"id": 1, "a": "x"}, {"id": 2, "a": "y", "b": 3}]


def test_an_unlogged_statement_before_a_logged_one(server: Server, tmp_path: Path) -> None:
    """The rows between the two cannot be proven: the run stops there, and says so."""
    start = executed(
        server,
        "CREATE TABLE between_two (id INT PRIMARY KEY)",
        "SET sql_log_bin = 0",
        "ALTER TABLE between_two ADD b INT",
        "SET sql_log_bin = 1",
        "INSERT INTO between_two VALUES (1, 2)",
        "DROP TABLE between_two",
        "CREATE TABLE between_two (id INT PRIMARY KEY, c INT)",
    )
    tables = f"{DATABASE}.between_two"
    ended = run_command(*command_line(server, tmp_path, "--stop-at-end", start=start, tables=tables))
    assert ended.status == 1
    assert_one_sentence(ended)
    assert f"the columns of {tables} cannot be named" in ended.sentence
    assert "DROP TABLE `between_two`" in ended.sentence
    assert "--schema-file" in ended.sentence


def test_a_name_that_the_server_writes_in_utf8(server: Server, tmp_path: Path) -> None:
    """The table of the rows is dropped by a client of another character set, and made anew."""
    server.execute(f"CREATE TABLE {DATABASE}.`größe` (a INT, b INT)")
    start = executed(server, "INSERT INTO `größe` VALUES (1, 2)")
    with server.connect(charset="latin1", database=DATABASE) as client, client.cursor() as cursor:
        cursor.execute("DROP TABLE `größe`")
        cursor.execute("CREATE TABLE `größe` (b INT, a INT)")
    arguments = command_line(server, tmp_path, "--stop-at-end", start=start, tables=f"{DATABASE}.größe")
    ended = run_command(*arguments)
    assert ended.status == 1
    assert "DROP TABLE `größe`" in ended.sentence


def test_objects_of_other_kinds(server: Server, tmp_path: Path) -> None:
    start = executed(
        server,
        "CREATE TABLE kept (id INT PRIMARY KEY, a INT)",
        "CREATE VIEW seen AS SELECT id AS a, a AS id FROM kept",
        "CREATE TRIGGER fired BEFORE INSERT ON kept FOR EACH ROW SET NEW.a = NEW.a + 1",
        "CREATE TEMPORARY TABLE kept (b INT, id INT)",
        "INSERT INTO kept VALUES (5, 5)",
        "ALTER TABLE kept CHANGE b a INT",
        "DROP TEMPORARY TABLE kept",
        "INSERT INTO kept VALUES (1, 1)",
        "DROP TRIGGER fired",
        "DROP VIEW seen",
    )
    drain(server, tmp_path, start=start, tables=f"{DATABASE}.kept")
    assert rows_of(tmp_path, "kept") == [{"id": 1, "a": 2}]


@pytest.mark.parametrize("flavor", MARIADB)
def test_sequences(shared_server: Callable[[str], Server], flavor: str, tmp_path: Path) -> None:
    """MariaDB's are tables of one row; those that were dropped or renamed, the server cannot name."""
    server = shared_server(flavor)
    server.execute("CREATE DATABASE sequences", "USE sequences")
    start = "{}:{}".format(*end_of_binlog(server))
    server.execute(
        *("CREATE SEQUENCE dropped CACHE 3", "DO NEXTVAL(dropped)", "DROP SEQUENCE dropped"),
        *("CREATE SEQUENCE kept", "DO NEXTVAL(kept)", "CREATE OR REPLACE SEQUENCE kept START WITH 7 CACHE 5"),
        *("DO NEXTVAL(kept)", "ALTER TABLE kept RENAME other", "ALTER SEQUENCE other RESTART 90"),
    )
    drain(server, tmp_path, start=start, tables="sequences.*")
    catalog = server.query(
        "SELECT column_name, column_type FROM information_schema.columns"
        " WHERE table_schema = 'sequences' ORDER BY ordinal_position"
    )
    server.execute("DROP DATABASE sequences")
    shown = run_command("schema", str(tmp_path), "sequences.other", "--at=0", "--json").stdout
    assert [(each["name"], each["column_type"]) for each in json.loads(shown)["columns"]] == list(catalog)
    columns = ["next_not_cached_value", "_change_type"]
    found = {
        table: [
            tuple(row.values())
            for row in Changes(tmp_path).read("sequences", table).select(columns).to_pylist()
        ]
        for table in ("dropped", "kept")
    }
    assert found == {
        "dropped": [(4, "insert"), (None, "truncate")],
        "kept": [(1001, "insert"), (None, "truncate"), (12, "insert")],
    }


def test_a_comment_that_ends_like_an_atomic_create(server: Server, tmp_path: Path) -> None:
    """MySQL 8 logs CREATE TABLE … SELECT with such an end, and the rows in the same transaction."""
    start = executed(
        server,
        "CREATE TABLE commented (id INT PRIMARY KEY) -- START TRANSACTION",
        "CREATE TABLE noted (id INT PRIMARY KEY) # START TRANSACTION",
        "INSERT INTO commented VALUES (1)",
        "INSERT INTO noted VALUES (2)",
    )
    ended = drain(server, tmp_path, start=start, tables=f"{DATABASE}.*")
    assert "and 4 transactions" in ended.stderr
    assert rows_of(tmp_path, "commented") == [{"id": 1}]
    assert rows_of(tmp_path, "noted") == [{"id": 2}]


def test_a_table_is_never_there_without_the_rows_of_its_select(server: Server, tmp_path: Path) -> None:
    """With table options, MySQL 8 writes START TRANSACTION before these."""
    if server.flavor != "mysql-9.7":
        pytest.skip("others log the statement and its rows one after the other")
    start = executed(
        server,
        "CREATE TABLE from_select ENGINE = InnoDB COMMENT = ')' SELECT 1 AS id UNION SELECT 2",
        "CREATE TABLE parted_select PARTITION BY HASH (id) SELECT 3 AS id",
    )
    ended = drain(server, tmp_path, "--commit-bytes=1", start=start, tables=f"{DATABASE}.*")
    assert "and 2 transactions in 2 commits" in ended.stderr
    assert rows_of(tmp_path, "from_select") == [{"id": 1}, {"id": 2}]
    assert rows_of(tmp_path, "parted_select") == [{"id": 3}]


def test_a_sequence_that_is_gone(server: Server, tmp_path: Path) -> None:
    if "mariadb" not in server.flavor:
        pytest.skip("sequences are MariaDB's")
    start = executed(
        server,
        "CREATE SEQUENCE counted START WITH 5 NOCACHE",
        "SELECT NEXTVAL(counted)",
        "CREATE TABLE counted_too (id INT PRIMARY KEY)",
        "INSERT INTO counted_too VALUES (1)",
        "DROP SEQUENCE IF EXISTS counted, counted_too",
    )
    drain(server, tmp_path, start=start, tables=f"{DATABASE}.counted*")
    (first, *_) = rows_of(tmp_path, "counted")
    assert (first["next_not_cached_value"], first["start_value"]) == (6, 5)
    assert rows_of(tmp_path, "counted_too") == [{"id": 1}]


def test_any_space_in_set_statement(server: Server, tmp_path: Path) -> None:
    if "mariadb" not in server.flavor:
        pytest.skip("SET STATEMENT is MariaDB's")
    start = executed(
        server,
        "CREATE TABLE spaced (a INT, b INT)",
        "INSERT INTO spaced VALUES (1, 2)",
        "SET\n STATEMENT max_statement_time=10 FOR ALTER TABLE spaced CHANGE a c INT",
        "INSERT INTO spaced VALUES (3, 4)",
        "SET/* */STATEMENT max_statement_time=10 FOR ALTER TABLE spaced CHANGE b d INT",
        "INSERT INTO spaced VALUES (5, 6)",
    )
    drain(server, tmp_path, start=start, tables=f"{DATABASE}.spaced")
    assert rows_of(tmp_path, "spaced") == [{"a": 1, "b": 2}, {"c": 3, "b": 4}, {"c": 5, "d": 6}]


def test_a_primary_key_that_is_another_one_later(server: Server, tmp_path: Path) -> None:
    """What the server shows is not the key that rows before the statement had."""
    server.execute(f"USE {DATABASE}", "CREATE TABLE keyed (id INT PRIMARY KEY, a INT NOT NULL)")
    start = executed(
        server,
        "INSERT INTO keyed VALUES (1, 7), (2, 7)",
        "DELETE FROM keyed WHERE id = 1",
        "ALTER TABLE keyed DROP PRIMARY KEY, ADD PRIMARY KEY (a)",
    )
    drain(server, tmp_path, start=start, tables=f"{DATABASE}.keyed")
    keys = [
        [column.name for column in table.columns or () if column.primary_key]
        for entry in schema_history(tmp_path, DATABASE, "keyed")
        for table in entry.change.tables
    ]
    assert keys == [[], ["a"]]


def test_programs_that_begin_a_transaction(server: Server, tmp_path: Path) -> None:
    """Statements that end like MySQL 8's CREATE TABLE … SELECT, and are transactions of their own."""
    start = executed(
        server,
        "CREATE PROCEDURE begun() START TRANSACTION",
        "CREATE EVENT started ON SCHEDULE EVERY 1 DAY DO START TRANSACTION",
        "CREATE PROCEDURE begun_again() START TRANSACTION",
    )
    ended = drain(server, tmp_path, start=start, tables=f"{DATABASE}.*")
    assert "and 3 transactions" in ended.stderr
    assert Changes(tmp_path).events().num_rows == 3


def test_rows_that_are_changed_without_row_events(server: Server, tmp_path: Path) -> None:
    start = executed(
        server,
        "CREATE TABLE parts (id INT PRIMARY KEY) PARTITION BY RANGE (id) "
        "(PARTITION low VALUES LESS THAN (10), PARTITION high VALUES LESS THAN (20))",
        "CREATE TABLE other (id INT PRIMARY KEY)",
        "CREATE TABLE sound (id INT PRIMARY KEY, a SMALLINT)",
        "INSERT INTO parts VALUES (1), (11)",
        "INSERT INTO other VALUES (2)",
        "INSERT INTO sound VALUES (1, 1)",
        "ALTER TABLE parts EXCHANGE PARTITION low WITH TABLE other",
        "ALTER TABLE sound MODIFY a INT, ADD b INT DEFAULT 3",
        "CREATE TABLE cut (id INT PRIMARY KEY, a TINYTEXT CHARACTER SET latin1)",
        "INSERT INTO cut VALUES (1, REPEAT(_latin1 0xE9, 200))",
        "SET sql_mode = ''",
        "ALTER TABLE cut MODIFY a TINYTEXT CHARACTER SET utf8mb4",
    )
    drain(server, tmp_path, start=start, tables=f"{DATABASE}.*")
    marked = rewritten_tables(tmp_path, CommitLog(tmp_path).latest_version())
    assert set(marked) == {TableName(DATABASE, name) for name in ("parts", "other", "cut")}
    statement = marked[TableName(DATABASE, "parts")].change.statement
    assert statement is not None and statement.startswith("ALTER TABLE parts EXCHANGE PARTITION")
