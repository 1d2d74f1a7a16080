"""Scripts of `binlog-engine sql` on real servers: undone, tables are as before; redone, they are equal.

On each server all that the tests need is done at once, and read by one run of the engine.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from io import StringIO
from pathlib import Path
from random import Random
from typing import Any

import pymysql
import pytest

from engine.commands.sql import write_script
from engine.config.settings import SqlSettings
from engine.errors import EngineError
from tests.servers import FLAVORS, Server
from tests.support.engine_run import assert_one_sentence, drain, end_of_binlog, run_command
from tests.support.sql_scripts import TypedTables, execute_script

pytestmark = pytest.mark.server

TYPED, SHOP, OTHER = "sql_typed", "sql_shop", "sql_other"
Contents = dict[str, list[tuple[Any, ...]]]


@dataclass
class Played:
    """What was done on one server, and the output that contains it."""

    server: Server
    out: Path
    typed: TypedTables
    places: dict[str, str] = field(default_factory=dict)
    """Places in the binlog, by name."""
    typed_before: Contents = field(default_factory=dict)
    shop_before: Contents = field(default_factory=dict)

    def note(self, name: str) -> None:
        self.places[name] = place(self.server)

    def script(self, database: str, since: str, until: str, **settings: Any) -> str:
        tables = settings.pop("tables", (f"{database}.*",))
        text = StringIO()
        wanted = SqlSettings(
            sources=(self.out,), tables=tables, since=self.places[since], until=self.places[until]
        )
        write_script(self.out, replace(wanted, **settings), text)
        return text.getvalue()

    def refusal(self, since: str, until: str, **settings: Any) -> str:
        with pytest.raises(EngineError) as refused:
            self.script(OTHER, since, until, **settings)
        return str(refused.value)


def place(server: Server) -> str:
    return "{}:{}".format(*end_of_binlog(server))


def contents(server: Server, database: str) -> Contents:
    tables = [name for (name,) in server.query(f"SHOW TABLES FROM {database}")]
    quoted = {name: "`{}`".format(name.replace("`", "``")) for name in tables}
    return {n: sorted(server.query(f"SELECT * FROM {database}.{quoted[n]}"), key=repr) for n in tables}


def columns(server: Server, database: str) -> Contents:
    """What the columns of each table are."""
    quoted = [name.replace("`", "``") for (name,) in server.query(f"SHOW TABLES FROM {database}")]
    return {name: server.query(f"SHOW FULL COLUMNS FROM {database}.`{name}`") for name in quoted}


def create_shop(server: Server) -> None:
    """Tables with unusual names and columns."""
    server.execute(
        f"CREATE DATABASE {SHOP}",
        f"CREATE TABLE {SHOP}.`odd ``näme` (`_seq` INT AUTO_INCREMENT PRIMARY KEY, `a.``b` VARCHAR(20), "
        "changed TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP) -- a comment",
        f"CREATE TABLE {SHOP}.keyless (a VARCHAR(10), b DATE)",
        f"CREATE TABLE {SHOP}.breaks (a ENUM('x\r\ny'), b CHAR(3) DEFAULT '\0')",
        f"INSERT INTO {SHOP}.breaks (a) VALUES ('x\r\ny')",
        f"CREATE TABLE {SHOP}.copied ENGINE = InnoDB COMMENT = 'x' SELECT * FROM {SHOP}.breaks",
        f"CREATE TABLE {SHOP}.parted PARTITION BY HASH (number) SELECT 7 AS number",
        f"CREATE TABLE {SHOP}.zoned (a INT)",
        f"INSERT INTO {SHOP}.zoned VALUES (1)",
        "SET time_zone = '+05:00'",
        f"ALTER TABLE {SHOP}.zoned ADD moment TIMESTAMP NOT NULL DEFAULT '2020-01-01 00:00:00'",
        "SET time_zone = '+00:00', auto_increment_increment = 5, auto_increment_offset = 3",
        f"ALTER TABLE {SHOP}.zoned ADD made DATETIME(6) DEFAULT CURRENT_TIMESTAMP(6)",
        f"ALTER TABLE {SHOP}.zoned ADD number INT AUTO_INCREMENT UNIQUE",
        "SET auto_increment_increment = 1, auto_increment_offset = 1",
    )
    if "mariadb" in server.flavor:
        server.execute(
            "SET explicit_defaults_for_timestamp = 0",
            f"CREATE TABLE {SHOP}.undeclared (a INT, moment TIMESTAMP)",
            f"INSERT INTO {SHOP}.undeclared (a) VALUES (1)",
            "SET explicit_defaults_for_timestamp = DEFAULT",
        )
    if server.flavor == "mariadb-11.8":
        server.execute(
            "SET character_set_collations = 'latin1=latin1_bin'",
            f"CREATE TABLE {SHOP}.collated (a VARCHAR(9) CHARACTER SET latin1)",
            "SET character_set_collations = DEFAULT",
        )
    if "mariadb" in server.flavor:
        # A key of this length has a hidden column.
        server.execute(f"CREATE TABLE {SHOP}.hashed (a TEXT, UNIQUE (a))")
        server.execute(f"CREATE SEQUENCE {SHOP}.numbers", f"SELECT NEXT VALUE FOR {SHOP}.numbers")
        # The binlog contains such statements twice, also those that fail in the end.
        server.execute(
            f"CREATE TABLE {SHOP}.in_two_parts (a INT)",
            f"INSERT INTO {SHOP}.in_two_parts VALUES (1), (1)",
            "SET binlog_alter_two_phase = ON",
            f"ALTER TABLE {SHOP}.in_two_parts ADD b INT DEFAULT 5",
        )
        with pytest.raises(pymysql.err.IntegrityError):
            server.execute(f"ALTER TABLE {SHOP}.in_two_parts ADD UNIQUE (a)")
        server.execute("SET binlog_alter_two_phase = DEFAULT")
    if server.flavor != "mysql-5.6":
        server.execute(
            f"CREATE TABLE {SHOP}.derived (id INT PRIMARY KEY, a INT, total BIGINT AS (a + id) STORED, "
            "label VARCHAR(20) AS (CONCAT('#', id)) VIRTUAL)",
            f"CREATE TABLE {SHOP}.constant (one INT AS (1) STORED)",
            f"INSERT INTO {SHOP}.constant () VALUES ()",
        )


def sell(server: Server) -> None:
    odd, moment = f"{SHOP}.`odd ``näme`", "'2001-02-03 04:05:06'"
    server.execute(
        f"INSERT INTO {odd} (`_seq`, `a.``b`, changed) VALUES (1, 'x\r\ny;\\0''\\\\-- z\\Z', {moment}), "
        f"(-5, NULL, {moment})",
        f"UPDATE {odd} SET `a.``b` = 'new', changed = changed WHERE `_seq` = 1",
        f"UPDATE {odd} SET `a.``b` = 'newer' WHERE `_seq` = -5",
        # Equal for a collation, and yet other rows.
        f"INSERT INTO {SHOP}.keyless VALUES ('a', NULL), ('A', NULL), ('a ', 20200101), ('a', 20200101)",
        f"DELETE FROM {SHOP}.keyless WHERE BINARY a = 'A'",
        f"UPDATE {SHOP}.keyless SET a = 'b' WHERE b IS NOT NULL AND LENGTH(a) = 2",
    )
    if "mariadb" in server.flavor:
        server.execute(f"INSERT INTO {SHOP}.hashed VALUES ('a'), ('b')", f"DELETE FROM {SHOP}.hashed LIMIT 1")
        server.execute(f"SELECT SETVAL({SHOP}.numbers, 5000)")
    if server.flavor != "mysql-5.6":
        server.execute(
            f"INSERT INTO {SHOP}.derived (id, a) VALUES (1, 10), (2, NULL), (3, 30)",
            f"UPDATE {SHOP}.derived SET a = 11 WHERE id = 1",
            f"DELETE FROM {SHOP}.derived WHERE id = 3",
            f"INSERT INTO {SHOP}.constant () VALUES (), ()",
            f"DELETE FROM {SHOP}.constant LIMIT 1",
        )


def do_what_cannot_be_undone(played: Played) -> None:
    with played.server.connect() as connection, connection.cursor() as cursor:
        run = cursor.execute
        run(f"USE {OTHER}")
        run("SET binlog_row_image = 'MINIMAL'")
        run("INSERT INTO keyed (id) VALUES (7)")
        played.note("minimal")
        run("UPDATE keyed SET v = 'v' WHERE id = 7")
        run("SET binlog_row_image = 'FULL'")
        played.note("altered")
        run("ALTER TABLE keyless ADD COLUMN c INT")
        played.note("statement")
        run("SET binlog_format = 'STATEMENT'")
        run("INSERT INTO keyless (a) VALUES (1)")
        played.note("end")


@pytest.fixture(scope="module", params=FLAVORS)
def played(
    request: pytest.FixtureRequest,
    shared_server: Callable[[str], Server],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Played]:
    server = shared_server(request.param)
    played = Played(server, tmp_path_factory.mktemp("sql") / "out", TypedTables(server, TYPED))
    # Before the stream's start, so that it knows these tables from the server, if at all.
    server.execute(
        f"CREATE DATABASE {OTHER}",
        f"CREATE TABLE {OTHER}.keyed (id INT PRIMARY KEY, v TEXT)",
        f"CREATE TABLE {OTHER}.keyless (a INT)",
    )
    played.note("start")
    create_shop(server)
    played.note("sold")
    played.shop_before = contents(server, SHOP)
    sell(server)
    with server.connect() as connection, connection.cursor() as cursor:
        played.typed.create(cursor)
        played.note("typed")
        played.typed_before = played.typed.rows()
        played.typed.change(cursor, Random(server.flavor))
    played.note("single")
    for number in (1, 2, 3):
        server.execute(f"INSERT INTO {OTHER}.keyed (id) VALUES ({number})")
    played.note("refused")
    do_what_cannot_be_undone(played)
    drain(server, played.out, start=played.places["start"], temporal="text", tables="sql_*.*")
    yield played
    for database in (TYPED, SHOP, OTHER):
        server.execute(f"DROP DATABASE {database}")


def test_columns_of_every_type(played: Played) -> None:
    typed, server = played.typed, played.server
    after = typed.rows()
    assert after != played.typed_before
    execute_script(server, played.script(TYPED, "typed", "single", undo=True))
    assert typed.rows() == played.typed_before
    server.execute(f"DROP DATABASE {TYPED}")
    execute_script(server, played.script(TYPED, "start", "single"))
    assert typed.rows() == after


def test_unusual_tables(played: Played) -> None:
    server = played.server
    after, shapes = contents(server, SHOP), columns(server, SHOP)
    execute_script(server, played.script(SHOP, "sold", "typed", undo=True))
    kept = {name: rows for name, rows in after.items() if name == "numbers"}
    assert contents(server, SHOP) == played.shop_before | kept
    server.execute(f"DROP DATABASE {SHOP}")
    redo = played.script(SHOP, "start", "typed")
    if server.flavor == "mysql-5.6":
        execute_script(server, redo)
    else:
        options = "--no-defaults", f"--socket={server.socket}", "--user=root", "--binary-mode"
        subprocess.run([*server.tool("mysql"), *options], input=redo.encode(), check=True, timeout=60)
    assert contents(server, SHOP) == after
    assert columns(server, SHOP) == shapes


def test_one_transaction_by_its_gtid(played: Played) -> None:
    made = played.script(OTHER, "single", "refused")
    ids = f"SELECT id FROM {OTHER}.keyed WHERE id < 4 ORDER BY id"
    if not played.server.has_gtids:
        # There are none, and the output no bookkeeping events, so transactions of a commit are one.
        assert re.search(r"binlog\.\d+:\d+\nBEGIN;\n", made)
        return
    (gtid,) = re.findall(r"\((\S+)\)\nBEGIN;\nINSERT .* VALUES \(2, NULL\);", made)
    execute_script(played.server, played.script(OTHER, "start", "end", undo=True, gtids=gtid))
    assert played.server.query(ids) == [(1,), (3,)]


def test_what_cannot_be_undone_is_refused_by_name(played: Played) -> None:
    assert "the old values of `v`" in played.refusal("minimal", "altered", undo=True)
    assert "ALTER TABLE keyless ADD COLUMN c INT" in played.refusal("altered", "statement", undo=True)
    for undo in (True, False):
        assert "INSERT INTO keyless (a) VALUES (1)" in played.refusal("statement", "end", undo=undo)


def test_other_tables_and_partial_images_redone(played: Played) -> None:
    redo = played.script(OTHER, "refused", "statement", tables=(f"{OTHER}.keyed",))
    assert "ALTER" not in redo
    played.server.execute(f"DELETE FROM {OTHER}.keyed WHERE id = 7")
    execute_script(played.server, redo)
    assert played.server.query(f"SELECT v FROM {OTHER}.keyed WHERE id = 7") == [("v",)]


def test_tables_that_the_output_does_not_have(played: Played) -> None:
    for how in ((), ("--undo",)):
        ended = run_command("sql", str(played.out), f"--tables={OTHER}.keyed,{OTHER}.keylesss", *how)
        assert (ended.status, ended.stdout) == (1, "")
        assert_one_sentence(ended)
        assert f"matches --tables {OTHER}.keylesss" in ended.sentence
        assert f"did you mean {OTHER}.keyless?" in ended.sentence


@pytest.mark.parametrize("flavor", ["mysql-9.7", "mariadb-11.8"])
def test_rolled_back_xa_transactions_are_left_out(
    shared_server: Callable[[str], Server], flavor: str
) -> None:
    server, database = shared_server(flavor), "sql_prepared"
    server.execute(f"CREATE DATABASE {database}", f"CREATE TABLE {database}.t (id INT PRIMARY KEY, v INT)")
    start = place(server)
    server.execute(f"INSERT INTO {database}.t VALUES (1, 1), (2, 2)")

    def prepare(name: str, *statements: str) -> None:
        server.execute(f"XA START '{name}'", *statements, f"XA END '{name}'", f"XA PREPARE '{name}'")

    prepare("gone", f"UPDATE {database}.t SET v = 10 WHERE id = 1", f"INSERT INTO {database}.t VALUES (3, 3)")
    between = place(server)
    server.execute("XA ROLLBACK 'gone'")
    prepare(
        "kept", f"UPDATE {database}.t SET v = 20 WHERE id = 2", f"INSERT INTO {database}.t VALUES (3, 30)"
    )
    server.execute("XA COMMIT 'kept'")
    after = contents(server, database)
    login = (f"--host={server.host}", f"--port={server.port}", "--user=root", f"--tables={database}.*")

    def execute(*choice: str) -> None:
        made = run_command("sql", *login, *choice)
        assert made.status == 0, made.stderr
        execute_script(server, made.stdout)

    end = place(server)
    execute("--undo", f"--since={between}", f"--until={end}")
    assert contents(server, database) == {"t": [(1, 1), (2, 2)]}
    execute("--undo", f"--since={start}", f"--until={between}")
    assert contents(server, database) == {"t": []}
    execute(f"--since={start}", f"--until={between}")
    execute(f"--since={between}", f"--until={end}")
    assert contents(server, database) == after == {"t": [(1, 1), (2, 20), (3, 30)]}
    server.execute(f"DROP DATABASE {database}")


def test_a_server_and_its_files_give_the_same_script(mysql97: Server) -> None:
    database = "sql_sources"
    mysql97.execute(f"CREATE DATABASE {database}")
    start = place(mysql97)
    mysql97.execute(f"CREATE TABLE {database}.t (id INT PRIMARY KEY, d DATE)")
    created = place(mysql97)
    mysql97.execute(f"INSERT INTO {database}.t VALUES (1, '2020-02-20')", f"UPDATE {database}.t SET id = 2")
    mysql97.flush_binlog()
    wanted = ("--undo", f"--since={created}", f"--tables={database}.*")
    login = (f"--host={mysql97.host}", f"--port={mysql97.port}", "--user=root")
    followed = run_command("sql", *login, *wanted)
    assert followed.status == 0, followed.stderr
    written = [str(file) for file in mysql97.binlogs() if file.name >= start.partition(":")[0]]
    decoded = run_command("sql", *written, *wanted)
    assert decoded.status == 0, decoded.stderr
    assert decoded.stdout == followed.stdout
    assert [line for line in decoded.stdout.splitlines() if line.startswith(("UPDATE", "DELETE"))] == [
        "UPDATE `sql_sources`.`t` SET `id` = 1, `d` = '2020-02-20' WHERE `id` = 2;",
        "DELETE FROM `sql_sources`.`t` WHERE `id` = 1;",
    ]
    refused = run_command("sql", *written, "--undo", f"--since={start}", f"--tables={database}.*")
    assert (refused.status, refused.stdout) == (1, "")
    assert "CREATE TABLE sql_sources.t" in refused.sentence
    mysql97.execute(f"DROP DATABASE {database}")
