"""An engine that comes late, at servers that write no column names: right names, or none, and it says why."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.reader import Changes
from tests.committed import assert_sound
from tests.engine_run import (
    Ended,
    assert_one_sentence,
    command_line,
    end_of_binlog,
    follow,
    run_command,
)
from tests.servers import FLAVORS, Server

pytestmark = pytest.mark.server

NEW_COLUMN_SYNTAX = ("mysql-9.7", "mariadb-10.11", "mariadb-11.8")
"""Flavors that know RENAME COLUMN."""


class Late:
    """A server whose binlog an engine reads only after all has happened, from the test's beginning on."""

    def __init__(self, server: Server, out: Path) -> None:
        self.server = server
        self.out = out
        self.start = "{}:{}".format(*end_of_binlog(server))
        server.execute(
            "CREATE DATABASE late", "USE late", "CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT)"
        )

    def execute(self, *statements: str) -> None:
        self.server.execute("USE late", *statements)

    def run(self, **settings: Any) -> Ended:
        settings = {"start": self.start, "tables": "late.*", **settings}
        return run_command(*command_line(self.server, self.out, "--stop-at-end", **settings))

    def rows(self, table: str) -> list[dict[str, Any]]:
        """Each row by the names that it came with."""
        found = Changes(self.out).read("late", table).to_pylist()
        return [
            {name: value for name, value in row.items() if name[0] != "_" and value is not None}
            for row in found
        ]

    def stops(self, table: str, statement: str) -> None:
        """It stops at a row of the table, because of the statement, and nothing of the table comes out."""
        ended = self.run()
        assert ended.status == 1
        assert_one_sentence(ended)
        assert f"late.{table} cannot be named" in ended.sentence
        assert statement in ended.sentence
        assert "--unknown-columns number" in ended.sentence
        assert not list(self.out.glob(f"late.{table}"))

    def numbers(self) -> None:
        """It goes on where it stopped, with numbers in place of names that are not certain."""
        ended = self.run(unknown_columns="number")
        assert ended.status == 0, ended.stderr
        assert_sound(self.out)


@pytest.fixture(params=FLAVORS)
def late(
    request: pytest.FixtureRequest, shared_server: Callable[[str], Server], tmp_path: Path
) -> Iterator[Late]:
    server = shared_server(request.param)
    try:
        yield Late(server, tmp_path / "out")
    finally:
        server.execute("DROP DATABASE late")


def test_tables_that_changed_places(late: Late) -> None:
    late.execute(
        "CREATE TABLE u (id INT PRIMARY KEY, c INT, d INT)",
        "INSERT INTO t VALUES (1, 10, 100)",
        "RENAME TABLE t TO x, u TO t, x TO u",
        "INSERT INTO t VALUES (2, 20, 200)",
    )
    late.stops("t", "RENAME TABLE t TO x, u TO t, x TO u")
    late.numbers()
    assert late.rows("t") == [{"@1": 1, "@2": 10, "@3": 100}, {"id": 2, "c": 20, "d": 200}]


def test_a_table_that_was_made_anew(late: Late) -> None:
    late.execute(
        "INSERT INTO t VALUES (1, 10, 100)",
        "DROP TABLE t",
        "CREATE TABLE t (id INT PRIMARY KEY, c INT, d INT)",
        "INSERT INTO t VALUES (2, 20, 200)",
    )
    late.stops("t", "DROP TABLE `t`")
    late.numbers()
    assert late.rows("t") == [{"@1": 1, "@2": 10, "@3": 100}, {"id": 2, "c": 20, "d": 200}]


def test_a_database_that_was_made_anew(late: Late) -> None:
    late.execute("INSERT INTO t VALUES (1, 10, 100)", "DROP DATABASE late", "CREATE DATABASE late")
    late.execute("CREATE TABLE t (id INT PRIMARY KEY, c INT, d INT)", "INSERT INTO t VALUES (2, 20, 200)")
    late.stops("t", "DROP DATABASE late")


def test_columns_that_changed_places(late: Late) -> None:
    late.execute(
        "INSERT INTO t VALUES (1, 10, 100)",
        "ALTER TABLE t CHANGE a b INT, CHANGE b a INT",
        "INSERT INTO t VALUES (2, 20, 200)",
    )
    late.stops("t", "ALTER TABLE t CHANGE a b INT, CHANGE b a INT")
    late.numbers()
    assert late.rows("t") == [{"@1": 1, "@2": 10, "@3": 100}, {"id": 2, "b": 20, "a": 200}]


def test_a_column_that_was_renamed_twice(late: Late) -> None:
    """The rows between the two have a name that the server does not know any more."""
    late.execute(
        "INSERT INTO t VALUES (1, 10, 100)",
        "ALTER TABLE t CHANGE a c INT",
        "INSERT INTO t VALUES (2, 20, 200)",
        "ALTER TABLE late.`t` CHANGE c a INT /* back */",
        "INSERT INTO t VALUES (3, 30, 300)",
    )
    late.stops("t", "ALTER TABLE late.`t` CHANGE c a INT")
    late.numbers()
    assert late.rows("t")[1:] == [{"@1": 2, "@2": 20, "@3": 200}, {"id": 3, "a": 30, "b": 300}]


def test_a_start_after_the_statement(late: Late) -> None:
    late.execute("INSERT INTO t VALUES (1, 10, 100)", "ALTER TABLE t CHANGE a c INT")
    late.stops("t", "ALTER TABLE t CHANGE a c INT")
    late.execute("INSERT INTO t VALUES (2, 20, 200)")
    place = late.run().sentence.partition("what stands at ")[2].partition(":")[0]
    late.out = late.out.with_name("after")
    ended = late.run(start=place.replace(" position ", ":"))
    assert ended.status == 0, ended.stderr
    assert late.rows("t") == [{"id": 2, "c": 20, "b": 200}]


def test_statements_that_leave_the_columns_alone(late: Late) -> None:
    late.execute(
        "INSERT INTO t VALUES (1, 10, 100)",
        "ALTER TABLE t ADD INDEX (a)",
        "CREATE INDEX i ON t (b)",
        "CREATE TABLE IF NOT EXISTS t (x INT)",
        "CREATE TABLE t_archive (x INT, t INT)",
        "CREATE TABLE like_t LIKE t",
        "ALTER TABLE t_archive CHANGE x y INT, DROP t",
        "DROP TABLE t_archive",
        "CREATE VIEW v AS SELECT * FROM t",
        "DROP VIEW v",
        "CREATE TRIGGER r BEFORE INSERT ON t FOR EACH ROW SET @x = 1",
        "DROP TRIGGER r",
        "INSERT INTO t VALUES (2, 20, 200)",
        "ALTER TABLE t COMMENT 'CHANGE a x INT', DROP INDEX i",
        "FLUSH BINARY LOGS",
        "INSERT INTO t VALUES (3, 30, 300)",
    )
    assert late.run().status == 0
    assert late.rows("t") == [{"id": n, "a": 10 * n, "b": 100 * n} for n in (1, 2, 3)]


def test_a_table_of_the_same_name_elsewhere(late: Late) -> None:
    late.execute(
        "INSERT INTO t VALUES (1, 10, 100)",
        "CREATE DATABASE late_too",
        "CREATE TABLE late_too.t (x INT)",
        "ALTER TABLE late_too.t CHANGE x y INT",
        "DROP DATABASE late_too",
    )
    assert late.run().status == 0
    assert late.rows("t") == [{"id": 1, "a": 10, "b": 100}]


def test_a_name_that_is_no_word(late: Late) -> None:
    late.execute(
        "CREATE TABLE `t-1` (id INT, a INT)",
        "INSERT INTO `t-1` VALUES (1, 10)",
        "ALTER TABLE `t-1` CHANGE a b INT",
    )
    late.stops("t-1", "ALTER TABLE `t-1` CHANGE a b INT")


def test_a_long_binlog(late: Late) -> None:
    """Several files, thousands of transactions, and statements about other tables in between."""
    late.execute("CREATE TABLE other (id INT PRIMARY KEY, v INT)")
    for number in range(6):
        with late.server.cursor() as cursor:
            for key in range(300):
                cursor.execute(f"INSERT INTO late.t VALUES ({number * 300 + key}, 1, 2)")
            cursor.execute(f"ALTER TABLE late.other CHANGE v{number or ''} v{number + 1} INT")
            cursor.execute("FLUSH BINARY LOGS")
    assert late.run().status == 0
    assert late.rows("t") == [{"id": n, "a": 1, "b": 2} for n in range(1800)]


def test_statements_while_the_engine_follows(late: Late) -> None:
    with follow(late.server, late.out, start=late.start, tables="late.*") as engine:
        for number, change in enumerate(("a c INT", "c d INT", "d a INT")):
            late.execute(f"INSERT INTO t VALUES ({number}, 10, 100)")
            engine.catch_up(late.server)
            late.execute(f"ALTER TABLE t CHANGE {change}")
            engine.catch_up(late.server)
        assert engine.stop().status == 0
    assert late.rows("t") == [
        {"id": 0, "a": 10, "b": 100},
        {"id": 1, "c": 10, "b": 100},
        {"id": 2, "d": 10, "b": 100},
    ]


def test_a_user_who_may_not_ask_where_the_binlog_ends(late: Late) -> None:
    late.server.create_replication_user("late", "secret", privileges="REPLICATION SLAVE, SELECT")
    late.execute("INSERT INTO t VALUES (1, 10, 100)", "ALTER TABLE t CHANGE a c INT")
    late.execute("INSERT INTO t VALUES (2, 20, 200)")
    arguments = command_line(late.server, late.out, "--stop-at-end", start=late.start, user="late")
    ended = run_command(*arguments, "--tables=late.*", password="secret")
    assert ended.status == 1
    assert "ALTER TABLE t CHANGE a c INT" in ended.sentence


class TestTypes:
    """MariaDB's UUID, INET4 and INET6 are BINARY in the binlog, which with full metadata tells all else."""

    @pytest.fixture(params=["mariadb-10.11", "mariadb-11.8"])
    def late(
        self, request: pytest.FixtureRequest, shared_server: Callable[[str], Server], tmp_path: Path
    ) -> Iterator[Late]:
        server = shared_server(request.param)
        server.execute("SET GLOBAL binlog_row_metadata = FULL", "SET SESSION binlog_row_metadata = FULL")
        late = Late(server, tmp_path / "out")
        late.execute("CREATE TABLE u (id INT PRIMARY KEY, u UUID, i INET6, j INET4)")
        late.execute("INSERT INTO u VALUES (1, '6ccd780c-baba-1026-9564-5b8c656024db', '::1', '1.2.3.4')")
        try:
            yield late
        finally:
            server.execute("DROP DATABASE late")
            server.execute(
                "SET GLOBAL binlog_row_metadata = DEFAULT", "SET SESSION binlog_row_metadata = DEFAULT"
            )

    def test_that_are_certain(self, late: Late) -> None:
        late.execute("INSERT INTO t VALUES (1, 10, 100)", "ALTER TABLE t CHANGE a c INT")
        assert late.run().status == 0
        uuid_text = "6ccd780c-baba-1026-9564-5b8c656024db"
        assert late.rows("u") == [{"id": 1, "u": uuid_text, "i": "::1", "j": "1.2.3.4"}]
        assert late.rows("t") == [{"id": 1, "a": 10, "b": 100}]

    @pytest.mark.parametrize(
        "change", ["ADD v INT", "CHANGE u w UUID", "MODIFY u BINARY(16)", "MODIFY i BINARY(16) FIRST"]
    )
    def test_that_are_not(self, late: Late, change: str) -> None:
        late.execute(f"ALTER TABLE u {change}", "INSERT INTO t VALUES (1, 10, 100)")
        ended = late.run()
        assert ended.status == 1
        assert_one_sentence(ended)
        assert "the types of late.u's columns are not certain" in ended.sentence
        assert not list(late.out.glob("late.u"))
        late.numbers()
        ((row,)) = late.rows("u")
        assert row["u"] == uuid.UUID("6ccd780c-baba-1026-9564-5b8c656024db").bytes or len(row["u"]) == 16
        assert late.rows("t") == [{"id": 1, "a": 10, "b": 100}]
