"""Requests for snapshots: of a running engine and of the next run, queued, canceled; what cannot be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.output.commit_log import CommitLog
from engine.output.reader import Changes
from engine.output.snapshot_requests import REQUESTS_FOLDER, has_requests, request_snapshot
from tests.servers import Server
from tests.support.engine_run import assert_one_sentence, command_line, drain, follow, run_command, wait_until
from tests.support.snapshot_runs import (
    read_rows,
    request,
    snapshot_state,
    table_snapshots,
    wait_for_snapshots,
)

pytestmark = pytest.mark.server

DATABASE = "snapshot_requests"
COLUMNS = ("id", "v")
ROWS = {"a": range(1000), "b": range(50), "c": range(7)}
STREAM = {"tables": f"{DATABASE}.*", "commit_interval": 0.05, "workers": 1}


@pytest.fixture
def database(mysql97: Server) -> Iterator[Server]:
    """A server with three tables."""
    mysql97.execute(f"DROP DATABASE IF EXISTS {DATABASE}", f"CREATE DATABASE {DATABASE}")
    for table, rows in ROWS.items():
        mysql97.execute(f"CREATE TABLE {DATABASE}.{table} (id INT PRIMARY KEY, v INT)")
        mysql97.execute_many(f"INSERT INTO {DATABASE}.{table} VALUES (%s, %s)", [(n, -n) for n in rows])
    yield mysql97
    mysql97.execute(f"DROP DATABASE {DATABASE}")


def selected(server: Server, table: str, where: str = "TRUE") -> Counter[tuple[Any, ...]]:
    return Counter(server.query(f"SELECT id, v FROM {DATABASE}.{table} WHERE {where}"))


def read(out: Path, table: str) -> Counter[tuple[Any, ...]]:
    return read_rows(out, DATABASE, table, COLUMNS)


def begin(server: Server, out: Path) -> None:
    """An output that has one row of `c`, of a transaction that is over."""
    file, position, *_ = server.query("SHOW BINARY LOG STATUS")[0]
    server.execute(f"INSERT INTO {DATABASE}.c VALUES (1000, 0)")
    drain(server, out, start=f"{file}:{position}", **STREAM)


def test_requests_of_a_running_engine_queue(database: Server, tmp_path: Path) -> None:
    begin(database, tmp_path)
    with follow(database, tmp_path, **STREAM) as engine:
        wait_until(lambda: engine.process("sink"), "sink")
        for arguments in (("a",), ("b", "--where", "id >= 40"), ("c",), ("a",)):
            ended = request(tmp_path, f"{DATABASE}.{arguments[0]}", *arguments[1:])
            assert ended.status == 0, ended.stderr
        wait_until(lambda: len(table_snapshots(tmp_path)) == 3, "snapshots", check=engine.must_run)
        wait_for_snapshots(engine, tmp_path)
        wait_until(lambda: not has_requests(tmp_path), "removal of the requests", check=engine.must_run)
        assert engine.stop().status == 0
    assert {name: each.state for name, each in table_snapshots(tmp_path).items()} == dict.fromkeys(
        "abc", "done"
    )
    assert read(tmp_path, "b") == selected(database, "b", "id >= 40")
    assert read(tmp_path, "c") == selected(database, "c")
    # The second request for `a` came while the first was waiting, being read, or over.
    assert set(read(tmp_path, "a")) == set(selected(database, "a"))
    assert set(read(tmp_path, "a").values()) in ({1}, {2})
    kinds = Changes(tmp_path).read(DATABASE, "c")["_change_type"].to_pylist()
    assert kinds == ["insert", "truncate", *["snapshot"] * 8]


def drain_without_some(server: Server, out: Path) -> None:
    """As `drain`, but that tables are set aside, which is an error of a run that ends."""
    ended = run_command(*command_line(server, out, "--stop-at-end", **STREAM))
    assert (ended.status, ended.sentence.count("set aside: `binlog-engine status")) == (1, 1), ended.stderr


def test_the_next_run_takes_requests(database: Server, tmp_path: Path) -> None:
    # So few rows that none is looked up to end a chunk with.
    database.execute(
        f"CREATE TABLE {DATABASE}.d LIKE {DATABASE}.c", f"INSERT INTO {DATABASE}.d VALUES (1, 1)"
    )
    database.execute(
        f"CREATE TABLE {DATABASE}.e (id INT, v INT)", f"INSERT INTO {DATABASE}.e VALUES (1, 1), (2, 2)"
    )
    begin(database, tmp_path)
    for tables, *arguments in (
        (f"{DATABASE}.*", "--exclude-tables", f"{DATABASE}.[acde]"),
        (f"{DATABASE}.c", "--where", "id < 3 OR id = 1000"),
        (f"{DATABASE}.a", "--where", "id >"),
        (f"{DATABASE}.d", "--where", "v = ?"),
        (f"{DATABASE}.e", "--where", "id = 2"),
        ("nothing.*",),
    ):
        ended = request(tmp_path, tables, *arguments)
        assert "the next run takes the request" in ended.stdout
    drain_without_some(database, tmp_path)
    states = table_snapshots(tmp_path)
    wanted = {"a": "failed", "b": "done", "c": "done", "d": "failed", "e": "failed"}
    assert {name: each.state for name, each in states.items()} == wanted
    assert "syntax" in (states["a"].reason or "")
    assert "question marks" in (states["d"].reason or "")
    assert "no primary key" in (states["e"].reason or "")
    assert read(tmp_path, "b") == selected(database, "b")
    assert read(tmp_path, "c") == selected(database, "c", "id < 3 OR id = 1000")
    # A condition reads some rows, and says nothing of the others.
    kinds = Changes(tmp_path).read(DATABASE, "c")["_change_type"].to_pylist()
    assert kinds == ["insert", *["snapshot"] * 4]
    assert not has_requests(tmp_path)
    state = snapshot_state(tmp_path)
    assert state is not None and state.requests == ()
    # Requests are carried out once.
    drain(database, tmp_path, **STREAM)
    assert read(tmp_path, "b") == selected(database, "b")


def test_small_tables_are_read_together(database: Server, tmp_path: Path) -> None:
    """One that cannot be read with the others does not keep them from being read."""
    alike = [f"alike_{number}" for number in range(16)]
    unlike = [f"unlike_{number}" for number in range(3)]
    rows = ", ".join(f"({n}, {-n})" for n in range(9))
    for table in (*alike, *unlike):
        more = "" if table == "unlike_1" else ", w INT"
        database.execute(
            f"CREATE TABLE {DATABASE}.{table} (id INT PRIMARY KEY, v INT{more})",
            f"INSERT INTO {DATABASE}.{table} (id, v) VALUES {rows}",
        )
    begin(database, tmp_path)
    request(tmp_path, f"{DATABASE}.alike_*")
    asked = "SHOW GLOBAL STATUS LIKE 'Com_show_binary_log_status'"
    before = int(database.query(asked)[0][1])
    drain(database, tmp_path, **STREAM)
    # Each chunk that is read alone asks for the end of the binlog, and so does a run, a few times.
    assert int(database.query(asked)[0][1]) - before < len(alike)
    request(tmp_path, f"{DATABASE}.unlike_*", "--where", "w IS NULL")
    drain_without_some(database, tmp_path)
    states = table_snapshots(tmp_path)
    assert {name: each.state for name, each in states.items()} == {
        table: "failed" if table == "unlike_1" else "done" for table in (*alike, *unlike)
    }
    assert "Unknown column 'w'" in (states["unlike_1"].reason or "")
    for table in (*alike, *unlike):
        assert read(tmp_path, table) == (Counter() if table == "unlike_1" else selected(database, table))


def test_estimates_are_those_of_now(database: Server, tmp_path: Path) -> None:
    """MySQL keeps for a day what it has once answered."""
    asked = f"SELECT TABLE_ROWS FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{DATABASE}'"
    assert max(rows for (rows,) in database.query(asked)) < 1500
    database.execute(f"INSERT INTO {DATABASE}.a SELECT id + 1000, v FROM {DATABASE}.a")
    assert max(rows for (rows,) in database.query(asked)) < 1500
    begin(database, tmp_path)
    request(tmp_path, f"{DATABASE}.a")
    drain(database, tmp_path, **STREAM)
    assert (table_snapshots(tmp_path)["a"].expected_rows or 0) > 1500


def test_a_large_table_without_statistics(database: Server, tmp_path: Path) -> None:
    """It is begun as a small one, together with others."""
    database.execute(
        f"CREATE TABLE {DATABASE}.d (id INT PRIMARY KEY, v INT, w LONGTEXT) STATS_AUTO_RECALC=0",
        *(f"INSERT INTO {DATABASE}.d VALUES ({number}, 0, REPEAT('w', 1000000))" for number in range(40)),
        f"UPDATE mysql.innodb_table_stats SET n_rows = 0 WHERE database_name = '{DATABASE}'",
        f"FLUSH TABLES {DATABASE}.a, {DATABASE}.b, {DATABASE}.c, {DATABASE}.d",
    )
    begin(database, tmp_path)
    request(tmp_path, f"{DATABASE}.*")
    drain(database, tmp_path, **STREAM)
    states = table_snapshots(tmp_path)
    assert states["d"].expected_rows == 0
    for table in "abcd":
        assert states[table].state == "done"
        assert read(tmp_path, table) == selected(database, table)


def test_chunks_of_one_row_come_to_an_end(database: Server, tmp_path: Path) -> None:
    """As those of rows of many megabytes."""
    drain(
        database, tmp_path, start="snapshot", snapshot_chunk_rows=1, **(STREAM | {"tables": f"{DATABASE}.c"})
    )
    assert read(tmp_path, "c") == selected(database, "c")


def test_canceled(database: Server, tmp_path: Path) -> None:
    begin(database, tmp_path)
    slow = {"snapshot_chunk_rows": 10, "snapshot_workers": 1, "snapshot_rate": 50}
    with follow(database, tmp_path, **STREAM, **slow) as engine:
        request(tmp_path, f"{DATABASE}.a")
        wait_until(lambda: read(tmp_path, "a"), "rows", check=engine.must_run)
        request(tmp_path, f"{DATABASE}.*", "--cancel")
        wait_for_snapshots(engine, tmp_path)
        (state,) = table_snapshots(tmp_path).values()
        assert (state.state, state.rows) == ("cancelled", read(tmp_path, "a").total())
        assert 0 < state.rows < 1000
        # The stream goes on, and so do later requests.
        database.execute(f"INSERT INTO {DATABASE}.b VALUES (77, 77)")
        engine.catch_up(database)
        request(tmp_path, f"{DATABASE}.c")
        wait_until(lambda: "c" in table_snapshots(tmp_path), "snapshot", check=engine.must_run)
        wait_for_snapshots(engine, tmp_path)
        assert engine.stop().status == 0
    assert table_snapshots(tmp_path)["c"].state == "done"
    assert read(tmp_path, "a").total() == state.rows


def test_canceled_while_another_session_has_locked_the_table(database: Server, tmp_path: Path) -> None:
    drain(database, tmp_path, start="snapshot", **STREAM)
    before = read(tmp_path, "a")
    with follow(database, tmp_path, **STREAM) as engine:
        with database.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"LOCK TABLES {DATABASE}.a WRITE")
            request(tmp_path, f"{DATABASE}.a")
            states = "information_schema.PROCESSLIST WHERE STATE LIKE 'Waiting for table %'"
            waits = f"SELECT COUNT(*) FROM {states}"
            wait_until(lambda: database.query(waits)[0][0], "reader that waits", check=engine.must_run)
            request(tmp_path, f"{DATABASE}.a", "--cancel")
            wait_for_snapshots(engine, tmp_path)
        wait_until(lambda: not database.query(waits)[0][0], "end of the lock", check=engine.must_run)
        # What the reader does then is over when a later snapshot is.
        request(tmp_path, f"{DATABASE}.c")
        wait_until(
            lambda: table_snapshots(tmp_path)["c"].state == "done" and not has_requests(tmp_path),
            "later snapshot",
            check=engine.must_run,
        )
        wait_for_snapshots(engine, tmp_path)
        assert engine.stop().status == 0
    assert table_snapshots(tmp_path)["a"].state == "cancelled"
    assert read(tmp_path, "a") == before
    assert "truncate" not in Changes(tmp_path).read(DATABASE, "a")["_change_type"].to_pylist()


def test_a_table_that_is_gone_is_set_aside(database: Server, tmp_path: Path) -> None:
    begin(database, tmp_path)
    slow = {"snapshot_chunk_rows": 10, "snapshot_workers": 1, "snapshot_rate": 400}
    with follow(database, tmp_path, **STREAM, **slow) as engine:
        request(tmp_path, f"{DATABASE}.*")
        wait_until(lambda: read(tmp_path, "a"), "rows", check=engine.must_run)
        database.execute(f"DROP TABLE {DATABASE}.b")
        wait_for_snapshots(engine, tmp_path)
        assert engine.stop().status == 0
    states = table_snapshots(tmp_path)
    assert {name: each.state for name, each in states.items()} in (
        {"a": "done", "b": "failed", "c": "done"},
        {"a": "done", "b": "done", "c": "done"},
    )
    if states["b"].state == "failed":
        assert f"{DATABASE}.b" in (states["b"].reason or "")
    for table in "ac":
        assert read(tmp_path, table) == selected(database, table)


def test_tables_that_the_user_may_not_read_are_set_aside(database: Server, tmp_path: Path) -> None:
    database.create_replication_user("partly", "secret", privileges="REPLICATION SLAVE, REPLICATION CLIENT")
    database.execute(
        f"GRANT SELECT ON {DATABASE}.a TO partly",
        f"GRANT SELECT (id) ON {DATABASE}.b TO partly",
        f"GRANT INSERT ON {DATABASE}.c TO partly",
        f"GRANT LOCK TABLES ON {DATABASE}.* TO partly",
    )
    login = {"user": "partly", "start": "snapshot", **STREAM}
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in login.items()]
    server = f"--host={database.host}", f"--port={database.port}"
    ended = run_command("run", "--out", str(tmp_path), "--stop-at-end", *server, *flags, password="secret")
    assert (ended.status, ended.sentence.partition(":")[0]) == (1, "2 tables were set aside"), ended.stderr
    states = table_snapshots(tmp_path)
    assert {name: each.state for name, each in states.items()} == {"a": "done", "b": "failed", "c": "failed"}
    for table in "bc":
        reason = states[table].reason or ""
        assert "denied" in reason and "\n" not in reason, reason
        assert f"set aside: {DATABASE}.{table}" in run_command("status", str(tmp_path)).stdout
    assert read(tmp_path, "a") == selected(database, "a")


def test_a_damaged_request_ends_the_run(database: Server, tmp_path: Path) -> None:
    begin(database, tmp_path)
    request(tmp_path, f"{DATABASE}.b")
    (path,) = (tmp_path / REQUESTS_FOLDER).iterdir()
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in STREAM.items()]
    login = f"--host={database.host}", f"--port={database.port}", f"--user={database.user}"
    ended = run_command("run", "--out", str(tmp_path), "--stop-at-end", *login, *flags)
    assert ended.status == 1
    assert_one_sentence(ended)
    assert (
        f"the request {path} is damaged" in ended.sentence and "remove it and make it again" in ended.sentence
    )
    path.write_bytes(whole)
    drain(database, tmp_path, **STREAM)
    assert read(tmp_path, "b") == selected(database, "b")


def test_killed_before_the_first_commit(database: Server, tmp_path: Path) -> None:
    settings = {"start": "snapshot", **STREAM, "commit_interval": 3600}
    with follow(database, tmp_path, **settings) as engine:
        wait_until(lambda: has_requests(tmp_path), "request", check=engine.must_run)
        engine.process("snapshot")
        assert CommitLog(tmp_path).latest_version() < 0
    database.execute(f"UPDATE {DATABASE}.a SET v = 1 WHERE id < 10")
    drain(database, tmp_path, start="snapshot", **STREAM)
    for table in ROWS:
        assert read(tmp_path, table) == selected(database, table)


def test_what_is_not_there_cannot_be_asked(tmp_path: Path) -> None:
    for arguments, says in (
        ((str(tmp_path / "none"), "--tables=d.t"), "yet: begin it with `run --start snapshot`"),
        ((str(tmp_path / "none"),), "--tables is needed"),
        ((str(tmp_path / "none"), "--tables=orders"), "names no database"),
    ):
        ended = run_command("snapshot", *arguments)
        assert ended.status == 1
        assert_one_sentence(ended)
        assert says in ended.sentence
    assert not (tmp_path / "none").exists()


def test_an_output_begins_with_the_tables_of_the_run_that_begins_it(database: Server, tmp_path: Path) -> None:
    refused = command_line(database, tmp_path, user="nobody", start="snapshot", tables=f"{DATABASE}.a")
    assert "refuses the login" in run_command(*refused).sentence
    assert not has_requests(tmp_path)
    # As a run with other tables leaves it that was killed before its first commit.
    request_snapshot(tmp_path, (f"{DATABASE}.b",))
    drain(database, tmp_path, start="snapshot", tables=f"{DATABASE}.b,{DATABASE}.c")
    assert read(tmp_path, "a") == Counter()
    assert read(tmp_path, "b") == selected(database, "b")
    assert read(tmp_path, "c") == selected(database, "c")
