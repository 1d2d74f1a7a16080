"""A user with the documented privileges alone can take snapshots; each one that is missing is named."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.servers import Server
from tests.support.engine_run import Ended, assert_one_sentence, run_command
from tests.support.snapshot_runs import read_rows, table_snapshots

pytestmark = [pytest.mark.server, pytest.mark.fewer_servers]

DATABASE = "snapshot_grants"
NAME, PASSWORD = "snapshots", "secret"
TABLES = ("keyed", "keyless", "older")
STREAM = ("REPLICATION SLAVE, REPLICATION CLIENT", "*.*")
SELECT = ("SELECT", f"{DATABASE}.*")
LOCKS = ("LOCK TABLES", f"{DATABASE}.*")
LOCKED = {
    # Has GTIDs unless they are switched off: only a table without a key needs a place that is exact.
    "mysql-9.7": {"keyless"},
    "mysql-8.0": set(TABLES),
    "mysql-5.7": set(TABLES),
    "mysql-5.6": set(TABLES),
    # Have consistent snapshots, but not of MyISAM.
    "mariadb-10.11": {"older"},
    "mariadb-11.8": {"older"},
}
"""The tables that are locked for a moment."""


@pytest.fixture
def database(server: Server) -> Server:
    """A server with a table that has a key, one without a key, and one without transactions."""
    server.execute(
        f"DROP DATABASE IF EXISTS {DATABASE}",
        f"CREATE DATABASE {DATABASE}",
        f"CREATE TABLE {DATABASE}.keyed (id INT PRIMARY KEY, v INT)",
        f"CREATE TABLE {DATABASE}.keyless (id INT, v INT)",
        f"CREATE TABLE {DATABASE}.older (id INT PRIMARY KEY, v INT) ENGINE=MyISAM",
    )
    for table in TABLES:
        server.execute(f"INSERT INTO {DATABASE}.{table} VALUES (1, 10), (2, 20), (3, NULL)")
    return server


def run_with(server: Server, out: Path, *grants: tuple[str, str]) -> Ended:
    """A run that begins with a snapshot, by a user with these privileges."""
    server.create_replication_user(NAME, PASSWORD, privileges="USAGE")
    for privileges, level in grants:
        server.execute(f"GRANT {privileges} ON {level} TO {NAME}")
    login = f"--host={server.host}", f"--port={server.port}", f"--user={NAME}", f"--tables={DATABASE}.*"
    flags = "--out", str(out), "--stop-at-end", "--start=snapshot", "--workers=1"
    return run_command("run", *login, *flags, password=PASSWORD)


def test_the_documented_privileges_are_enough(database: Server, tmp_path: Path) -> None:
    ended = run_with(database, tmp_path, STREAM, SELECT, LOCKS)
    assert ended.status == 0, ended.stderr
    assert "sees none" not in ended.stderr
    # The run ends because of its snapshots, not because the stream ends.
    assert re.search(r"^9 rows and 0 transactions in \d commits, (?!0\.00 s)", ended.stderr, re.MULTILINE)
    for table in TABLES:
        assert table_snapshots(tmp_path)[table].state == "done", table_snapshots(tmp_path)[table].reason
        wanted = Counter(database.query(f"SELECT id, v FROM {DATABASE}.{table}"))
        assert read_rows(tmp_path, DATABASE, table, ("id", "v")) == wanted


def test_tables_that_the_user_does_not_see_are_missed(database: Server, tmp_path: Path) -> None:
    ended = run_with(database, tmp_path, STREAM)
    assert ended.status == 0, ended.stderr
    warning = f"a snapshot of {DATABASE}.* was asked for, but this user sees none of its tables"
    assert ended.stderr.count(warning) == 1
    assert not table_snapshots(tmp_path)


def has_prepared(server: Server) -> bool:
    """Whether any test has prepared an XA transaction there."""
    return server.query("SHOW GLOBAL STATUS LIKE 'Com_xa_prepare'")[0][1] != "0"


def test_tables_that_need_a_lock_are_set_aside_without_the_privilege(
    database: Server, tmp_path: Path
) -> None:
    ended = run_with(database, tmp_path, STREAM, SELECT)
    states = table_snapshots(tmp_path)
    locked = LOCKED[database.flavor]
    if database.flavor.startswith("mariadb") and has_prepared(database):
        locked = locked | {"keyless"}
    assert ended.status == (1 if locked else 0), ended.stderr
    assert not locked or "set aside: `binlog-engine status" in ended.sentence
    assert {name for name, each in states.items() if each.state == "failed"} == locked
    for table in locked:
        assert states[table].reason == (
            f"user '{NAME}' may not lock `{DATABASE}`.`{table}`, which its snapshot needs for an instant: "
            f"run GRANT SELECT, LOCK TABLES ON `{DATABASE}`.* TO '{NAME}'@'%' there"
        )
    for table in set(TABLES) - locked:
        assert read_rows(tmp_path, DATABASE, table, ("id", "v")).total() == 3


def test_a_run_without_replication_slave_is_refused(database: Server, tmp_path: Path) -> None:
    ended = run_with(database, tmp_path, ("REPLICATION CLIENT", "*.*"), SELECT, LOCKS)
    assert ended.status == 1
    assert_one_sentence(ended)
    assert "REPLICATION SLAVE" in ended.sentence, ended.sentence


def test_what_needs_replication_client_says_so(database: Server, tmp_path: Path) -> None:
    """MySQL 5.6 refuses the run; the others cannot tell the place of some tables, which they set aside."""
    ended = run_with(database, tmp_path, ("REPLICATION SLAVE", "*.*"), SELECT, LOCKS)
    reasons = {name: each.reason for name, each in table_snapshots(tmp_path).items() if each.reason}
    assert ended.status == 1
    assert_one_sentence(ended)
    reasons = reasons or {"run": ended.sentence}
    for reason in reasons.values():
        assert "REPLICATION CLIENT" in reason or "BINLOG MONITOR" in reason, reason
    for name, each in table_snapshots(tmp_path).items():
        rows = read_rows(tmp_path, DATABASE, name, ("id", "v")).total()
        assert rows == (3 if each.state == "done" else 0)
