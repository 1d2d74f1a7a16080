"""Servers that write no column names, and statements that the engine reads later than they were executed.

A stream that contains a table's CREATE has the right names for each row. A stream that starts after it has
right names as far as the server can prove them, or what the statements did can be undone; otherwise it stops
or numbers the columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from engine.output.reader import Changes
from tests.servers import FLAVORS, Server
from tests.support.committed import assert_sound
from tests.support.engine_run import (
    Ended,
    assert_one_sentence,
    command_line,
    drain,
    end_of_binlog,
    follow,
    run_command,
)

pytestmark = [pytest.mark.server, pytest.mark.fewer_servers]

COLUMNS = "(id INT PRIMARY KEY, a INT, b INT)"
OTHER_COLUMNS = "(id INT PRIMARY KEY, c INT, d INT)"
NAMES, ROW = ("id", "a", "b"), (1, 10, 100)
SHOW_TYPES = ("mysql-8.0", "mysql-9.7")
"""Their table maps contain signs and character sets."""


@dataclass(frozen=True)
class Case:
    """What happened to the table `t`, which has a row of before and one of after."""

    statements: tuple[str, ...]
    blamed: str
    """The statement because of which the first row has no names."""
    after: tuple[str, ...]
    """Columns of the second."""
    table: str = "t"
    undone: str = ""
    """`always`, or `shown`: where table maps show what the types are but for the names."""


CASES = {
    "changed places": Case(
        (
            f"CREATE TABLE u {OTHER_COLUMNS}",
            "RENAME TABLE t TO x, u TO t, x TO u",
        ),
        "RENAME TABLE t TO x, u TO t, x TO u",
        ("id", "c", "d"),
        undone="always",
    ),
    "made anew": Case(
        ("DROP TABLE t", f"CREATE TABLE t {OTHER_COLUMNS}"), "DROP TABLE `t`", ("id", "c", "d")
    ),
    "columns changed places": Case(
        ("ALTER TABLE t CHANGE a b INT, CHANGE b a INT",),
        "ALTER TABLE t CHANGE a b INT, CHANGE b a INT",
        ("id", "b", "a"),
        undone="shown",
    ),
    "a column has another place": Case(
        ("ALTER TABLE t MODIFY a INT AFTER b",), "ALTER TABLE t MODIFY a INT AFTER b", ("id", "b", "a")
    ),
    "a column renamed": Case(
        ("ALTER /* by a tool */ TABLE t CHANGE a c INT",),
        "ALTER /* by a tool */ TABLE t CHANGE a c INT",
        ("id", "c", "b"),
        undone="shown",
    ),
    "renamed and back": Case(
        ("ALTER TABLE t CHANGE a c INT", "ALTER TABLE `t` CHANGE c a INT"),
        "ALTER TABLE `t` CHANGE c a INT",
        ("id", "a", "b"),
        undone="shown",
    ),
    "the database made anew": Case(
        (
            "DROP DATABASE {database}",
            "CREATE DATABASE {database}",
            "USE {database}",
            f"CREATE TABLE t {OTHER_COLUMNS}",
        ),
        "DROP DATABASE ",
        ("id", "c", "d"),
    ),
    "a name that is not a word": Case(
        ("ALTER TABLE `t-1` CHANGE a c INT",),
        "ALTER TABLE `t-1` CHANGE a c INT",
        ("id", "c", "b"),
        table="t-1",
        undone="shown",
    ),
}
HARMLESS = (
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
    "ALTER TABLE t COMMENT 'CHANGE a x INT', DROP INDEX i",
    "CREATE DATABASE late_elsewhere",
    "CREATE TABLE late_elsewhere.t (x INT)",
    "ALTER TABLE late_elsewhere.t CHANGE x y INT",
    "DROP DATABASE late_elsewhere",
    "FLUSH BINARY LOGS",
)
ALONE = "late_alone"
"""The database in which only harmless statements were executed."""
ROUNDS, ROUND_ROWS = 4, 200


class Late:
    """A server on which all cases have happened before an engine reads of them, each in its own database."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.start = "{}:{}".format(*end_of_binlog(server))
        self.databases = {case: f"late_{number}" for number, case in enumerate(CASES)}
        for name, case in CASES.items():
            self._create(self.databases[name], case.table)
        self._create(ALONE, "t")
        self.later = "{}:{}".format(*end_of_binlog(server))
        """The position between the creation of the tables and the first row."""
        for name, case in CASES.items():
            self._change(self.databases[name], case)
        server.execute(f"USE {ALONE}")
        for number, statement in enumerate(HARMLESS):
            server.execute(f"INSERT INTO t VALUES ({number}, 1, 2)", statement)
        self._write_much()

    def _create(self, database: str, table: str) -> None:
        self.server.execute(
            f"CREATE DATABASE {database}", f"USE {database}", f"CREATE TABLE `{table}` {COLUMNS}"
        )

    def _change(self, database: str, case: Case) -> None:
        self.server.execute(
            f"USE {database}",
            f"INSERT INTO `{case.table}` VALUES (1, 10, 100)",
            *(statement.format(database=database) for statement in case.statements),
            f"INSERT INTO `{case.table}` VALUES (2, 20, 200)",
        )

    def _write_much(self) -> None:
        """Several files and many transactions, with statements about another table between them."""
        self.server.execute(f"CREATE TABLE much {COLUMNS}", "CREATE TABLE other (id INT, v INT)")
        for number in range(ROUNDS):
            with self.server.cursor() as cursor:
                for key in range(ROUND_ROWS):
                    cursor.execute(f"INSERT INTO much VALUES ({number * ROUND_ROWS + key}, 1, 2)")
            self.server.execute(
                f"ALTER TABLE other CHANGE v{number or ''} v{number + 1} INT", "FLUSH BINARY LOGS"
            )

    def run(self, out: Path, *arguments: str, **settings: Any) -> Ended:
        settings = {"start": self.start, "tables": "late_*.*", **settings}
        return run_command(*command_line(self.server, out, "--stop-at-end", *arguments, **settings))

    def undoes(self, case: Case) -> bool:
        """Whether the names before the case's statements follow from those after them."""
        return case.undone == "always" or (case.undone == "shown" and self.server.flavor in SHOW_TYPES)

    def assert_found(self, out: Path, uncertain: Sequence[str] = NAMES) -> None:
        """Check that each case's table has its two rows, the first with `uncertain` names if not undone."""
        for name, case in CASES.items():
            names = NAMES if self.undoes(case) else uncertain
            found = [row for row in rows_of(out, self.databases[name], case.table) if row]
            rows = (names, ROW), (case.after, (2, 20, 200))
            assert found == [dict(zip(*row, strict=True)) for row in rows], name

    def destroy(self) -> None:
        for database in (*self.databases.values(), ALONE):
            self.server.execute(f"DROP DATABASE {database}")


@pytest.fixture(scope="module", params=FLAVORS)
def late(request: pytest.FixtureRequest, shared_server: Callable[[str], Server]) -> Iterator[Late]:
    late = Late(shared_server(request.param))
    yield late
    late.destroy()


def rows_of(out: Path, database: str, table: str) -> list[dict[str, Any]]:
    """Each row by the names that it came with."""
    found = Changes(out).read(database, table).to_pylist()
    return [
        {name: value for name, value in row.items() if name[0] != "_" and value is not None} for row in found
    ]


def test_rows_have_the_names_of_their_time(late: Late, tmp_path: Path) -> None:
    ended = late.run(tmp_path)
    assert ended.status == 0, ended.stderr
    late.assert_found(tmp_path)


@pytest.mark.parametrize("name", CASES)
def test_a_row_whose_names_are_not_certain_ends_the_run(late: Late, tmp_path: Path, name: str) -> None:
    case, database = CASES[name], late.databases[name]
    if late.undoes(case):
        pytest.skip("the names are certain")
    ended = late.run(tmp_path / "out", tables=f"{database}.*", start=late.later)
    assert ended.status == 1
    assert_one_sentence(ended)
    assert f"{database}.{case.table} cannot be named" in ended.sentence
    assert case.blamed in ended.sentence
    assert "--unknown-columns number" in ended.sentence
    assert not list(tmp_path.glob("out/late*"))


def test_names_are_numbers_until_they_are_certain(late: Late, tmp_path: Path) -> None:
    ended = late.run(tmp_path, start=late.later, unknown_columns="number")
    assert ended.status == 0, ended.stderr
    late.assert_found(tmp_path, ("@1", "@2", "@3"))


def test_a_schema_file_has_the_definition_of_that_time(late: Late, tmp_path: Path) -> None:
    schema = tmp_path / "schema.sql"
    tables = ((late.databases[name], case.table) for name, case in CASES.items())
    schema.write_text("".join(f"CREATE TABLE {name}.`{table}` {COLUMNS};\n" for name, table in tables))
    ended = late.run(tmp_path / "out", start=late.later, schema_file=schema)
    assert ended.status == 0, ended.stderr
    late.assert_found(tmp_path / "out")


@pytest.mark.parametrize("start", ["before the table's creation", "after it"])
def test_statements_that_leave_the_columns_alone(late: Late, tmp_path: Path, start: str) -> None:
    place = late.later if start == "after it" else late.start
    ended = late.run(tmp_path / "out", tables=f"{ALONE}.*", start=place)
    assert ended.status == 0, ended.stderr
    assert_sound(tmp_path / "out")
    for table, count in (("t", len(HARMLESS)), ("much", ROUNDS * ROUND_ROWS)):
        found = rows_of(tmp_path / "out", ALONE, table)
        assert found == [{"id": key, "a": 1, "b": 2} for key in range(count)]


def test_a_table_that_a_statement_makes_unless_it_exists(late: Late, tmp_path: Path) -> None:
    """The stream begins after the database's creation, so only the event shows that the table is new."""
    server = late.server
    server.execute("CREATE DATABASE late_made")
    start = "{}:{}".format(*end_of_binlog(server))
    server.execute(
        "USE late_made",
        f"CREATE TABLE IF NOT EXISTS t {COLUMNS}",
        "INSERT INTO t VALUES (1, 10, 100)",
        "ALTER TABLE t DROP a",
        "INSERT INTO t VALUES (2, 200)",
    )
    ended = late.run(tmp_path, tables="late_made.*", start=start)
    server.execute("DROP DATABASE late_made")
    if server.flavor in ("mysql-5.6", "mysql-5.7"):
        # Their events do not show whether the table was there before.
        assert ended.status == 1
        assert "late_made.t cannot be named" in ended.sentence
    else:
        assert ended.status == 0, ended.stderr
        assert rows_of(tmp_path, "late_made", "t") == [{"id": 1, "a": 10, "b": 100}, {"id": 2, "b": 200}]


def test_a_table_with_the_character_set_of_its_database(late: Late, tmp_path: Path) -> None:
    """The stream begins after the database's creation, so only the server knows its default."""
    server = late.server
    server.execute("CREATE DATABASE late_text CHARACTER SET latin1")
    start = "{}:{}".format(*end_of_binlog(server))
    server.execute(
        "USE late_text",
        "CREATE TABLE t (a ENUM('ä', 'ö'), b VARCHAR(20) BINARY, c TEXT(300))",
        "INSERT INTO t VALUES ('ö', 'ü', 'ß')",
        "CREATE TABLE u (a VARCHAR(20))",
        "ALTER TABLE u CONVERT TO CHARACTER SET utf8mb4",
        "INSERT INTO u VALUES ('ü')",
        "DROP TABLE t, u",
    )
    ended = late.run(tmp_path, tables="late_text.*", start=start)
    server.execute("DROP DATABASE late_text")
    assert ended.status == 0, ended.stderr
    assert rows_of(tmp_path, "late_text", "t") == [{"a": "ö", "b": "ü", "c": "ß"}, {}]
    assert rows_of(tmp_path, "late_text", "u") == [{"a": "ü"}, {}]


@pytest.mark.parametrize("sql_mode", ["ANSI", "MYSQL40,NO_TABLE_OPTIONS", "ORACLE"])
def test_a_table_that_the_server_writes_without_its_options(
    late: Late, tmp_path: Path, sql_mode: str
) -> None:
    """Its character set is not in the statement, but in the table maps of servers that show types."""
    server = late.server
    if sql_mode != "ANSI" and server.flavor in SHOW_TYPES:
        pytest.skip("this server does not have these modes")
    server.execute("CREATE DATABASE late_dialect CHARACTER SET utf8mb4")
    start = "{}:{}".format(*end_of_binlog(server))
    server.execute(
        f"SET sql_mode = '{sql_mode}'",
        "USE late_dialect",
        "CREATE TABLE numbers AS SELECT 1 AS a, 2.5 AS b",
        "CREATE TABLE texts (b INT PRIMARY KEY) CHARACTER SET latin1 AS SELECT _latin1 0xE4 AS a, 1 AS b",
        "DROP TABLE numbers, texts",
    )
    numbers = late.run(tmp_path / "numbers", tables="late_dialect.numbers", start=start)
    texts = late.run(tmp_path / "texts", tables="late_dialect.texts", start=start)
    server.execute("DROP DATABASE late_dialect")
    assert numbers.status == 0, numbers.stderr
    assert rows_of(tmp_path / "numbers", "late_dialect", "numbers") == [{"a": 1, "b": Decimal("2.5")}, {}]
    if server.flavor not in SHOW_TYPES:
        assert "late_dialect.texts cannot be named" in texts.sentence
    else:
        assert texts.status == 0, texts.stderr
        assert rows_of(tmp_path / "texts", "late_dialect", "texts") == [{"b": 1, "a": "ä"}, {}]


UNDONE = {
    "an added column": ("ADD c INT FIRST, ADD d TEXT AFTER a",),
    "a column added and dropped again": ("ADD c INT, ADD INDEX (c)", "DROP c, ADD d INT"),
    "keys and defaults": (
        "DROP PRIMARY KEY, ADD x SERIAL, ALTER a SET DEFAULT 5",
        "COMMENT 'x'",
        "ADD y INT",
    ),
}
UNDONE_WITH_TYPES = {
    "a larger type": ("MODIFY a BIGINT, MODIFY id INT UNSIGNED", "ADD d INT"),
    "a dropped column": ("DROP c", "ADD d INT"),
    "another place": ("MODIFY c TEXT FIRST", "CHANGE c a2 VARCHAR(20) CHARACTER SET utf8mb4"),
    "another character set": ("CONVERT TO CHARACTER SET utf8mb4", "ADD d CHAR"),
    "a renamed column": ("RENAME COLUMN a TO x, RENAME COLUMN b TO a", "RENAME COLUMN x TO b"),
}


@pytest.mark.parametrize("case", [*UNDONE, *UNDONE_WITH_TYPES])
def test_statements_that_can_be_undone(late: Late, tmp_path: Path, case: str) -> None:
    server = late.server
    if case in UNDONE_WITH_TYPES and server.flavor not in SHOW_TYPES:
        pytest.skip("the table maps do not show the types")
    columns = "(id INT PRIMARY KEY, a INT, b BIGINT UNSIGNED, c VARCHAR(9) CHARACTER SET latin1, KEY b (b))"
    if case in UNDONE:
        columns = "(id INT PRIMARY KEY, a INT, b INT, KEY b (b))"
    server.execute("DROP DATABASE IF EXISTS late_undone", "CREATE DATABASE late_undone", "USE late_undone")
    server.execute(f"CREATE TABLE t {columns}")
    start = "{}:{}".format(*end_of_binlog(server))
    server.execute("INSERT INTO t (id, a, b) VALUES (1, 10, 100)")
    for clauses in (UNDONE | UNDONE_WITH_TYPES)[case]:
        server.execute(
            f"ALTER TABLE t {clauses}", "INSERT INTO t (id) VALUES (2)", "DELETE FROM t WHERE id = 2"
        )
    ended = late.run(tmp_path, tables="late_undone.*", start=start)
    server.execute("DROP DATABASE late_undone")
    assert ended.status == 0, ended.stderr
    assert rows_of(tmp_path, "late_undone", "t")[0] == {"id": 1, "a": 10, "b": 100}


KEPT = "a new table, and the old one is kept"
ONLINE = {
    "a copy that gets the name": (
        "CREATE TABLE _t_gho LIKE t",
        "ALTER TABLE _t_gho ADD c INT FIRST, ADD INDEX (a)",
        "CREATE TABLE _t_del (id INT AUTO_INCREMENT PRIMARY KEY)",
        "INSERT INTO _t_gho (id, a, b) SELECT id, a, b FROM t",
        "DROP TABLE IF EXISTS _t_del",
        "RENAME TABLE t TO _t_del, _t_gho TO t",
        "DROP TABLE _t_del",
    ),
    "the same, again": (
        "CREATE TABLE _t_new LIKE t",
        "ALTER TABLE _t_new ADD c INT FIRST",
        "INSERT INTO _t_new (id, a, b) SELECT id, a, b FROM t",
        "RENAME TABLE t TO _t_old, _t_new TO t",
        "DROP TABLE _t_old",
        "CREATE TABLE _t_new LIKE t",
        "INSERT INTO _t_new (id, a, b, c) SELECT id, a, b, c FROM t",
        "ALTER TABLE _t_new ADD d INT AFTER id",
        "RENAME TABLE t TO _t_old, _t_new TO t",
        "DROP TABLE _t_old",
    ),
    KEPT: (
        "CREATE TABLE _t_new (id INT PRIMARY KEY, x INT, b INT)",
        "INSERT INTO _t_new (id, x, b) SELECT id, a, b FROM t",
        "RENAME TABLE t TO _t_old, _t_new TO t",
        "ALTER TABLE _t_old ADD c INT",
    ),
    "a table that has another name now": (
        "ALTER TABLE t ADD c INT, RENAME TO late_online.u",
        "DELETE FROM u",
        "RENAME TABLE u TO v",
        "ALTER TABLE v ADD d INT",
    ),
    "a table that was copied, and dropped": (
        "CREATE TABLE u LIKE t",
        "DROP TABLE t",
        "CREATE TABLE t (x INT)",
    ),
}


@pytest.mark.parametrize("case", ONLINE)
def test_tables_that_get_another_name(late: Late, tmp_path: Path, case: str) -> None:
    """As tools that alter tables online do it."""
    server = late.server
    server.execute("DROP DATABASE IF EXISTS late_online", "CREATE DATABASE late_online", "USE late_online")
    server.execute(f"CREATE TABLE t {COLUMNS}")
    start = "{}:{}".format(*end_of_binlog(server))
    server.execute("INSERT INTO t VALUES (1, 10, 100)", *ONLINE[case])
    ended = late.run(tmp_path, tables="late_online.*", start=start)
    server.execute("DROP DATABASE late_online")
    assert ended.status == 0, ended.stderr
    copied = {"id": 1, "x": 10, "b": 100}
    for database, table in Changes(tmp_path).tables():
        expected = copied if (case, table) == (KEPT, "_t_new") else {"id": 1, "a": 10, "b": 100}
        assert rows_of(tmp_path, database, table)[0] == expected, table


def test_a_start_after_the_statement(late: Late, tmp_path: Path) -> None:
    database = late.databases["a column has another place"]
    ended = late.run(tmp_path / "out", tables=f"{database}.*", start=late.later)
    place = ended.sentence.partition("the event at ")[2].partition(" may have")[0]
    file, _, position = place.partition(" position ")
    ((*_, end, _),) = late.server.query(f"SHOW BINLOG EVENTS IN '{file}' FROM {position} LIMIT 1")
    ended = late.run(tmp_path / "later", tables=f"{database}.*", start=f"{file}:{end}")
    assert ended.status == 0, ended.stderr
    assert rows_of(tmp_path / "later", database, "t") == [{"id": 2, "b": 20, "a": 200}]


def test_a_user_who_may_not_ask_where_the_binlog_ends(late: Late, tmp_path: Path) -> None:
    late.server.create_replication_user("late", "secret", privileges="REPLICATION SLAVE, SELECT")
    database = late.databases["a column has another place"]
    arguments = command_line(
        late.server, tmp_path / "out", start=late.later, user="late", tables=f"{database}.*"
    )
    ended = run_command(*arguments, "--stop-at-end", password="secret")
    assert ended.status == 1
    assert CASES["a column has another place"].blamed in ended.sentence


def test_statements_while_the_engine_follows(late: Late, tmp_path: Path) -> None:
    server = late.server
    start = "{}:{}".format(*end_of_binlog(server))
    server.execute("CREATE DATABASE late_followed", "USE late_followed", f"CREATE TABLE t {COLUMNS}")
    with follow(server, tmp_path, start=start, tables="late_followed.*") as engine:
        for number, change in enumerate(("a c INT", "c d INT", "d a INT")):
            server.execute(f"INSERT INTO t VALUES ({number}, 10, 100)")
            engine.catch_up(server)
            server.execute(f"ALTER TABLE t CHANGE {change}")
            engine.catch_up(server)
        assert engine.stop().status == 0
    assert rows_of(tmp_path, "late_followed", "t") == [
        {"id": 0, "a": 10, "b": 100},
        {"id": 1, "c": 10, "b": 100},
        {"id": 2, "d": 10, "b": 100},
    ]
    server.execute("DROP DATABASE late_followed")


UUID = "6ccd780c-baba-1026-9564-5b8c656024db"
CHANGES = {
    "added": "ALTER TABLE added ADD v INT",
    "renamed": "ALTER TABLE renamed CHANGE i k INET6",
    "other_type": "ALTER TABLE other_type MODIFY u BINARY(16)",
    "compressed": "ALTER TABLE compressed MODIFY u BINARY(16) COMMENT 'in a compressed event'",
}


@pytest.fixture(scope="module", params=["mariadb-10.11", "mariadb-11.8"])
def typed(
    request: pytest.FixtureRequest, shared_server: Callable[[str], Server]
) -> Iterator[tuple[Server, tuple[str, str]]]:
    server = shared_server(request.param)
    first = "{}:{}".format(*end_of_binlog(server))
    options = {"binlog_row_metadata": "FULL", "log_bin_compress": "ON", "log_bin_compress_min_len": "10"}
    for name, value in options.items():
        server.execute(f"SET GLOBAL {name} = {value}")
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE typed")
        cursor.execute("USE typed")
        for table in ("kept", *CHANGES):
            cursor.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, u UUID, i INET6, j INET4)")
        start = "{}:{}".format(*end_of_binlog(server))
        for table in ("kept", *CHANGES):
            cursor.execute(f"INSERT INTO {table} VALUES (1, '{UUID}', '::1', '1.2.3.4')")
            cursor.execute(CHANGES.get(table, "ALTER TABLE kept ADD INDEX (u)"))
        cursor.execute("CREATE TABLE plain (id INT)")
        cursor.execute("INSERT INTO plain VALUES (1)")
        cursor.execute("ALTER TABLE plain CHANGE id number INT")
    yield server, (first, start)
    server.execute("DROP DATABASE typed")
    for name in options:
        server.execute(f"SET GLOBAL {name} = DEFAULT")


class TestTypes:
    """MariaDB's UUID, INET4 and INET6 are BINARY in the binlog, whose full metadata has all else."""

    def test_that_statements_define(self, typed: tuple[Server, tuple[str, str]], tmp_path: Path) -> None:
        server, (first, _) = typed
        drain(server, tmp_path, start=first, tables="typed.*")
        for table in ("kept", *CHANGES):
            (row,) = rows_of(tmp_path, "typed", table)
            assert row == {"id": 1, "u": UUID, "i": "::1", "j": "1.2.3.4"}

    def test_that_are_certain(self, typed: tuple[Server, tuple[str, str]], tmp_path: Path) -> None:
        server, (_, start) = typed
        drain(server, tmp_path, start=start, tables="typed.kept")
        assert rows_of(tmp_path, "typed", "kept") == [{"id": 1, "u": UUID, "i": "::1", "j": "1.2.3.4"}]

    def test_that_cannot_be_in_doubt(self, typed: tuple[Server, tuple[str, str]], tmp_path: Path) -> None:
        server, (_, start) = typed
        drain(server, tmp_path, start=start, tables="typed.plain")
        assert rows_of(tmp_path, "typed", "plain") == [{"id": 1}]

    def test_before_a_column_was_added(self, typed: tuple[Server, tuple[str, str]], tmp_path: Path) -> None:
        server, (_, start) = typed
        drain(server, tmp_path, start=start, tables="typed.added")
        assert rows_of(tmp_path, "typed", "added") == [{"id": 1, "u": UUID, "i": "::1", "j": "1.2.3.4"}]

    @pytest.mark.parametrize("table", ["renamed", "compressed"])
    def test_that_are_not_certain(
        self, typed: tuple[Server, tuple[str, str]], tmp_path: Path, table: str
    ) -> None:
        server, (_, start) = typed
        tables = f"typed.{table}"
        ended = run_command(*command_line(server, tmp_path, "--stop-at-end", start=start, tables=tables))
        assert ended.status == 1
        assert_one_sentence(ended)
        assert f"the types of {tables}'s columns are not certain" in ended.sentence
        assert "--unknown-columns number" in ended.sentence
        assert not list(tmp_path.glob("typed*"))

    def test_that_come_as_bytes(self, typed: tuple[Server, tuple[str, str]], tmp_path: Path) -> None:
        server, (_, start) = typed
        drain(server, tmp_path, start=start, tables="typed.*", unknown_columns="number")
        for table in ("kept", *CHANGES):
            (row,) = rows_of(tmp_path, "typed", table)
            assert row["u"] == UUID if table in ("kept", "added") else isinstance(row["u"], bytes)
