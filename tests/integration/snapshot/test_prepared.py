"""Snapshots beside prepared XA transactions: tables are read after their end, so no change is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from threading import Thread

import pytest

from engine.config.secret import Secret
from engine.config.server_address import Login, ServerAddress
from engine.config.tls import NO_TLS
from engine.net.client.connect import connect
from engine.net.client.source_facts import read_facts
from engine.net.client.xa_in_binlog import wait_until_listed
from engine.output.snapshot_requests import has_requests
from tests.servers import Server
from tests.support.engine_run import (
    EngineRun,
    command_line,
    drain,
    end_of_binlog,
    follow,
    run_command,
    wait_until,
)
from tests.support.held_redo_log import HeldRedoLog
from tests.support.preload import MISSING_COMPILER, can_compile
from tests.support.snapshot_load import boundaries
from tests.support.snapshot_runs import read_rows, request, wait_for_snapshots
from tests.support.xa_transactions import end_prepared, prepare

pytestmark = [pytest.mark.server, pytest.mark.fewer_servers]

DATABASE = "prepared"
TABLES = ("keyed", "keyless")
COLUMNS = ("id", "v")
BEFORE = Counter({(1, 10): 1, (2, 20): 1, (3, 30): 1})
AFTER = Counter({(1, 11): 1, (3, 30): 1, (4, 40): 1})
STREAM = {"tables": f"{DATABASE}.*", "workers": 1}


@pytest.fixture(params=["mysql-9.7", "mysql-8.0", "mysql-5.7", "mariadb-10.11", "mariadb-11.8"])
def database(request: pytest.FixtureRequest, gtid_server: Callable[[str], Server]) -> Iterator[Server]:
    """A server that logs XA PREPARE, with two tables, and a prepared transaction that changes both."""
    server = gtid_server(request.param)
    server.execute(f"DROP DATABASE IF EXISTS {DATABASE}", f"CREATE DATABASE {DATABASE}")
    server.execute(f"CREATE TABLE {DATABASE}.keyed (id INT PRIMARY KEY, v INT)")
    server.execute(f"CREATE TABLE {DATABASE}.keyless (id INT, v INT)")
    changes = []
    for table in TABLES:
        server.execute(f"INSERT INTO {DATABASE}.{table} VALUES (1, 10), (2, 20), (3, 30)")
        changes += [
            f"INSERT INTO {DATABASE}.{table} VALUES (4, 40)",
            f"UPDATE {DATABASE}.{table} SET v = 11 WHERE id = 1",
            f"DELETE FROM {DATABASE}.{table} WHERE id = 2",
        ]
    server.execute("XA START 'one'", *changes, "XA END 'one'", "XA PREPARE 'one'")
    yield server
    if server.query("XA RECOVER"):
        server.execute("XA ROLLBACK 'one'")


def wait_for_warning(engine: EngineRun) -> None:
    sentence = "the snapshot waits for the end of the XA transaction"
    wait_until(lambda: sentence in engine.stderr, "warning", check=engine.must_run)


def assert_read(server: Server, out: Path, expected: Counter[tuple[int, int]]) -> None:
    for table in TABLES:
        assert Counter(server.query(f"SELECT id, v FROM {DATABASE}.{table}")) == expected
        assert read_rows(out, DATABASE, table, COLUMNS) == expected


@pytest.mark.parametrize(("end", "expected"), [("COMMIT", AFTER), ("ROLLBACK", BEFORE)])
def test_the_output_begins_after_its_rows(
    database: Server, tmp_path: Path, end: str, expected: Counter[tuple[int, int]]
) -> None:
    with follow(database, tmp_path, start="snapshot", **STREAM) as engine:
        wait_for_warning(engine)
        assert not any(read_rows(tmp_path, DATABASE, table, COLUMNS) for table in TABLES)
        database.execute(f"XA {end} 'one'")
        wait_for_snapshots(engine, tmp_path)
        assert engine.stop().status == 0
    assert_read(database, tmp_path, expected)


def test_the_output_has_its_rows(database: Server, tmp_path: Path) -> None:
    """Change rows that a snapshot of the rows before them would undo."""
    drain(database, tmp_path, **STREAM)
    with follow(database, tmp_path, **STREAM) as engine:
        assert request(tmp_path, f"{DATABASE}.*").status == 0
        wait_for_warning(engine)
        database.execute("XA COMMIT 'one'")
        wait_for_snapshots(engine, tmp_path)
        assert engine.stop().status == 0
    assert_read(database, tmp_path, AFTER)


def test_a_table_that_cannot_be_locked_is_named(
    shared_server: Callable[[str], Server], tmp_path: Path
) -> None:
    """Where snapshots lock tables, the lock waits for the transaction."""
    server = shared_server("mysql-8.0")
    server.execute(
        f"DROP DATABASE IF EXISTS {DATABASE}",
        f"CREATE DATABASE {DATABASE}",
        f"CREATE TABLE {DATABASE}.t (id INT PRIMARY KEY, v INT)",
        f"INSERT INTO {DATABASE}.t VALUES (1, 10)",
    )
    prepare(server, DATABASE, "'one'", "UPDATE t SET v = 11")
    with follow(server, tmp_path, start="snapshot", **STREAM) as engine:
        sentence = f"the snapshot waits for {DATABASE}.t, which others have locked"
        wait_until(lambda: sentence in engine.stderr, "warning", check=engine.must_run)
        end_prepared(server, "COMMIT", "'one'")
        wait_for_snapshots(engine, tmp_path)
        ended = engine.stop()
    assert (ended.status, ended.stderr.count(sentence)) == (0, 1)
    assert read_rows(tmp_path, DATABASE, "t", COLUMNS) == Counter([(1, 11)])


@pytest.fixture
def held_log(tmp_path: Path) -> HeldRedoLog:
    (tmp_path / "log").mkdir()
    return HeldRedoLog(tmp_path / "log")


@pytest.fixture
def slow_server(
    held_log: HeldRedoLog, own_server: Callable[..., Server], monkeypatch: pytest.MonkeyPatch
) -> Server:
    """A MariaDB server whose redo log can be held back, with two tables."""
    with monkeypatch.context() as environment:
        for name, value in held_log.environment.items():
            environment.setenv(name, value)
        # Statistics of tables that are kept on disk are written by statements that open a table.
        options = {"innodb_flush_log_at_trx_commit": "1", "innodb_stats_persistent": "OFF"}
        server = own_server("mariadb-11.8", options)
    server.execute(f"DROP DATABASE IF EXISTS {DATABASE}", f"CREATE DATABASE {DATABASE}")
    for table, key in zip(TABLES, (" PRIMARY KEY", ""), strict=True):
        server.execute(
            f"CREATE TABLE {DATABASE}.{table} (id INT{key}, v INT)",
            f"INSERT INTO {DATABASE}.{table} VALUES (1, 10), (2, 20)",
        )
    return server


@pytest.mark.skipif(not can_compile(), reason=MISSING_COMPILER)
def test_one_that_the_server_does_not_list_yet(
    slow_server: Server, held_log: HeldRedoLog, tmp_path: Path
) -> None:
    """MariaDB has XA PREPARE in the binlog first, and views do not have the rows until XA COMMIT."""
    out = tmp_path / "out"
    drain(slow_server, out, **STREAM)
    updates = [f"UPDATE {table} SET v = 11 WHERE id = 1" for table in TABLES]
    preparing = Thread(target=prepare, args=(slow_server, DATABASE, "'one'", *updates))
    with follow(slow_server, out, **STREAM) as engine:
        with held_log.held():
            preparing.start()
            engine.wait_for_commit(lambda commit: bool(commit.prepared), "commit of the prepared rows")
            assert not slow_server.query("XA RECOVER")
            assert request(out, f"{DATABASE}.*").status == 0
            wait_until(lambda: not has_requests(out), "begin of the snapshot", check=engine.must_run)
        preparing.join()
        wait_for_warning(engine)
        end_prepared(slow_server, "COMMIT", "'one'")
        wait_for_snapshots(engine, out)
        assert engine.stop().status == 0
    for table in TABLES:
        *_, last = boundaries(out, DATABASE, table, COLUMNS)
        assert last.rows == Counter(slow_server.query(f"SELECT id, v FROM {DATABASE}.{table}"))


@pytest.mark.skipif(not can_compile(), reason=MISSING_COMPILER)
def test_a_start_waits_until_the_server_lists_them(slow_server: Server, held_log: HeldRedoLog) -> None:
    """Rows that were in the binlog before the start come with the snapshot alone."""
    login = Login("root", (Secret(""),), NO_TLS, "none", None)
    server = partial(connect, ServerAddress(slow_server.host, slow_server.port, login, None))
    with server() as connection:
        facts = read_facts(connection)
    file, before = end_of_binlog(slow_server)
    wait_until_listed(server, facts, file)
    waiting = Thread(target=wait_until_listed, args=(server, facts, file))
    preparing = Thread(target=prepare, args=(slow_server, DATABASE, "'two'", "DELETE FROM keyed"))
    with held_log.held():
        preparing.start()
        wait_until(lambda: end_of_binlog(slow_server) > (file, before), "XA PREPARE in the binlog")
        waiting.start()
        waiting.join(0.5)
        assert waiting.is_alive()
        assert not slow_server.query("XA RECOVER")
    waiting.join()
    preparing.join()
    assert slow_server.query("XA RECOVER")
    end_prepared(slow_server, "ROLLBACK", "'two'")
    wait_until_listed(server, facts, file)


def test_a_user_to_whom_the_server_does_not_list_them_is_warned(mysql97: Server, tmp_path: Path) -> None:
    mysql97.execute(f"DROP DATABASE IF EXISTS {DATABASE}", f"CREATE DATABASE {DATABASE}")
    mysql97.execute(f"CREATE TABLE {DATABASE}.t (id INT PRIMARY KEY)", f"INSERT INTO {DATABASE}.t VALUES (1)")
    with mysql97.cursor() as cursor:
        for statement in ("XA START 'two'", "XA END 'two'", "XA PREPARE 'two'", "XA COMMIT 'two'"):
            cursor.execute(statement)
    said = []
    for number, privilege in enumerate(("REPLICATION CLIENT", "REPLICATION CLIENT, XA_RECOVER_ADMIN")):
        mysql97.create_replication_user(
            "lister", "secret", privileges=f"REPLICATION SLAVE, SELECT, {privilege}"
        )
        settings = {"start": "snapshot", "user": "lister", **STREAM}
        command = command_line(mysql97, tmp_path / str(number), "--stop-at-end", **settings)
        ended = run_command(*command, password="secret")
        assert ended.status == 0, ended.stderr
        said.append("does not list them for this user: grant XA_RECOVER_ADMIN" in ended.stderr)
    assert said == [True, False]
