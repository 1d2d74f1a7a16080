"""Snapshots beside prepared XA transactions: tables are read after their end, so no change is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.servers import Server
from tests.support.engine_run import EngineRun, command_line, drain, follow, run_command, wait_until
from tests.support.snapshot_runs import read_rows, request, wait_for_snapshots

pytestmark = pytest.mark.server

DATABASE = "prepared"
TABLES = ("keyed", "keyless")
COLUMNS = ("id", "v")
BEFORE = Counter({(1, 10): 1, (2, 20): 1, (3, 30): 1})
AFTER = Counter({(1, 11): 1, (3, 30): 1, (4, 40): 1})
STREAM = {"tables": f"{DATABASE}.*", "workers": 1}


@pytest.fixture(params=["mysql-9.7", "mariadb-10.11", "mariadb-11.8"])
def database(request: pytest.FixtureRequest, shared_server: Callable[[str], Server]) -> Iterator[Server]:
    """A server that logs XA PREPARE, with two tables, and a prepared transaction that changes both."""
    server = shared_server(request.param)
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
