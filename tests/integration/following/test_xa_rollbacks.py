"""XA transactions that are rolled back after XA PREPARE, on real servers: their rows are undone."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.archive.plan import Request, plan, rows_inside
from engine.config.decode_options import DecodeOptions
from engine.config.table_filter import TableFilter
from engine.output.commit_log import CommitLog
from engine.output.reader import Changes
from engine.output.schema_history import rewritten_tables
from engine.sink.remembered_rows import MOST_BYTES
from tests.servers import Server
from tests.support import xa_transactions
from tests.support.engine_run import command_line, drain, end_of_binlog, follow, run_command, wait_until
from tests.support.snapshot_load import Load, boundaries
from tests.support.snapshot_runs import wait_for_snapshots
from tests.support.xa_transactions import end_prepared, prepared_transactions, roll_back_prepared

pytestmark = pytest.mark.server

DATABASE = "undone"
OF_DATABASE = {"tables": f"{DATABASE}.*"}
FORGETFUL = ("mysql-8.0", "mysql-5.7", "mariadb-10.11", "mariadb-11.8")
"""Those that log XA PREPARE before they prepare the transaction."""
SERVERS = ("mysql-9.7", *FORGETFUL)
"""Those that log XA PREPARE."""
KINDS = (
    "id INT PRIMARY KEY, t TINYINT UNSIGNED, d DECIMAL(20, 4), f DOUBLE, b BIT(9), y YEAR, w DATE, "
    "m DATETIME(6), s TIMESTAMP(3) NULL, o TIME(2), c CHAR(5), v VARCHAR(300) CHARACTER SET latin1, x BLOB, "
    "e ENUM('a', 'b'), z SET('p', 'q'), j JSON"
)
ROW = (
    "200, -12.5, 0.1, b'101', 2026, '2026-11-26', '2026-11-26 01:02:03.000004', '2026-11-26 01:02:03.123', "
    "'-01:02:03.45', 'é', REPEAT('ö', 300), x'00ff', 'b', 'p,q', '{\"k\": [1, 2.5]}'"
)
LARGE = 100_000


@pytest.fixture(params=SERVERS)
def database(request: pytest.FixtureRequest, gtid_server: Callable[[str], Server]) -> Iterator[Server]:
    """A server with an empty database, and no prepared transaction."""
    server = gtid_server(request.param)
    server.execute(f"DROP DATABASE IF EXISTS {DATABASE}", f"CREATE DATABASE {DATABASE}")
    yield server
    roll_back_prepared(server)


def prepare(server: Server, name: str, *changes: str) -> None:
    xa_transactions.prepare(server, DATABASE, name, *changes)


def start_of(server: Server) -> str:
    return "{}:{}".format(*end_of_binlog(server))


def replayed(out: Path, table: str, columns: tuple[str, ...]) -> Counter[Any]:
    *_, last = boundaries(out, DATABASE, table, columns)
    return last.rows


def assert_as_on_server(server: Server, out: Path, table: str, columns: tuple[str, ...]) -> None:
    selected = server.query(f"SELECT {', '.join(columns)} FROM {DATABASE}.{table}")
    assert replayed(out, table, columns) == Counter(selected)


def assert_dense(out: Path) -> None:
    numbers = [*Changes(out).events()["_seq"].to_pylist()]
    for database, table in Changes(out).tables():
        numbers += Changes(out).read(database, table)["_seq"].to_pylist()
    assert sorted(numbers) == list(range(1, len(numbers) + 1))
    assert run_command("verify", str(out)).status == 0


def test_values_of_all_kinds_come_back(database: Server, tmp_path: Path) -> None:
    """The rows that undo have the values of those that they undo, in reverse order, and say by what."""
    start = start_of(database)
    database.execute(
        f"CREATE TABLE {DATABASE}.t ({KINDS})",
        f"INSERT INTO {DATABASE}.t VALUES (1, {ROW}), (2, {ROW}), (3, NULL{', NULL' * 14})",
    )
    changes = (
        f"INSERT INTO t VALUES (4, {ROW})",
        "UPDATE t SET t = 1, v = NULL, j = '[]' WHERE id = 1",
        "UPDATE t SET id = 7 WHERE id = 3",
        "DELETE FROM t WHERE id = 2",
    )
    prepare(database, "'one','branch',7", *changes)
    end_prepared(database, "ROLLBACK", "'one','branch',7")
    database.execute(f"INSERT INTO {DATABASE}.t (id) VALUES (9)")
    drain(database, tmp_path, start=start, **OF_DATABASE)
    rows = Changes(tmp_path).read(DATABASE, "t").to_pylist()
    kinds = [row["_change_type"] for row in rows]
    update = ["update_preimage", "update_postimage"]
    assert kinds == [
        *["insert"] * 4,
        *(*update, *update, "delete"),
        *("insert", *update, *update, "delete"),
        "insert",
    ]
    own = [{name: value for name, value in row.items() if name[0] != "_"} for row in rows]
    assert own[9:15] == own[3:9][::-1]
    (rollback,) = [
        entry
        for entry in Changes(tmp_path).events().to_pylist()
        if entry["statement"] == "XA ROLLBACK X'6f6e65',X'6272616e6368',7"
    ]
    for name in ("_file", "_pos", "_gtid", "_commit_timestamp"):
        assert {row[name] for row in rows[9:15]} == {rollback[name]}
    assert rows[8]["_seq"] < rollback["_seq"] < rows[9]["_seq"]
    assert CommitLog(tmp_path).summary_at(CommitLog(tmp_path).latest_version()).counters["xa_rollbacks"] == 1
    assert_dense(tmp_path)


def test_names_that_are_used_again(database: Server, tmp_path: Path) -> None:
    """Also where a transaction was prepared before the output began: it has no rows to undo."""
    database.execute(
        f"CREATE TABLE {DATABASE}.t (id INT PRIMARY KEY)", f"INSERT INTO {DATABASE}.t VALUES (1)"
    )
    prepare(database, "'old'", "INSERT INTO t VALUES (100)")
    start = start_of(database)
    for number in range(10, 16):
        prepare(database, "'new'", f"INSERT INTO t VALUES ({number})")
        end_prepared(database, ("COMMIT", "ROLLBACK")[number % 2], "'new'")
    end_prepared(database, "ROLLBACK", "'old'")
    drain(database, tmp_path, start=start, **OF_DATABASE)
    assert replayed(tmp_path, "t", ("id",)) == Counter({(10,): 1, (12,): 1, (14,): 1})
    assert_dense(tmp_path)


def test_the_run_ends_between(database: Server, tmp_path: Path) -> None:
    """What is prepared is known to the next run, and the definitions of tables to a run from the middle."""
    start = start_of(database)
    database.execute(
        f"CREATE TABLE {DATABASE}.t (v INT, text VARCHAR(20))",
        f"INSERT INTO {DATABASE}.t VALUES (1, 'a'), (1, 'a'), (2, 'b')",
    )
    drain(database, tmp_path, start=start, **OF_DATABASE)
    prepare(database, "'a'", "DELETE FROM t WHERE v = 1 LIMIT 1", "INSERT INTO t VALUES (5, 'new')")
    prepare(database, "'b'", "INSERT INTO t VALUES (6, 'kept')")
    drain(database, tmp_path, **OF_DATABASE)
    last = CommitLog(tmp_path).latest()
    assert last is not None
    assert [transaction.xid for transaction in last.prepared] == ["X'61',X'',1", "X'62',X'',1"]
    end_prepared(database, "ROLLBACK", "'a'")
    end_prepared(database, "COMMIT", "'b'")
    drain(database, tmp_path, **OF_DATABASE)
    assert_as_on_server(database, tmp_path, "t", ("v", "text"))
    assert_dense(tmp_path)


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("flavor", FORGETFUL)
def test_what_the_server_has_lost_in_a_crash(
    own_server: Callable[..., Server], flavor: str, is_late: bool, tmp_path: Path
) -> None:
    """Some may lose what was prepared, and no event says so: the rows are undone at the server's start.

    The engine has come there before the crash, or it comes long after it.
    """
    server = own_server(flavor, {"innodb_flush_log_at_trx_commit": "1"})
    server.execute(f"DROP DATABASE IF EXISTS {DATABASE}", f"CREATE DATABASE {DATABASE}")
    start = start_of(server)
    server.execute(
        f"CREATE TABLE {DATABASE}.t (id INT PRIMARY KEY, v LONGTEXT)",
        f"INSERT INTO {DATABASE}.t VALUES {', '.join(f'({number}, {number})' for number in range(1, 21))}",
    )
    drain(server, tmp_path, start=start, **OF_DATABASE)
    names = ("lost", "lost too", "used again", "kept", "committed", "rolled back", "both")
    for number, name in enumerate(names, 1):
        text = f"REPEAT('{name}', {MOST_BYTES if name == 'lost too' else 1})"
        changes = (
            f"UPDATE t SET v = {text} WHERE id = {number}",
            f"INSERT INTO t VALUES ({100 + number}, 'x')",
        )
        prepare(server, f"'{name}'", *changes)
    # MySQL does not see to it that the last one is on disk, but that all before a commit are.
    server.execute(f"INSERT INTO {DATABASE}.t VALUES (200, 'committed')")
    prepare(server, "'last'", "UPDATE t SET v = 'last' WHERE id = 18")
    if not is_late:
        drain(server, tmp_path, **OF_DATABASE)
    server.kill()
    server.start()
    # What the server has lost it has rolled back without a word.
    server.execute("SET sql_log_bin = 0")
    with server.cursor() as cursor:
        left = {each.gtrid for each in prepared_transactions(cursor)}
    assert left >= set(names)
    for name in {"lost", "lost too", "used again", "last"} & left:
        end_prepared(server, "ROLLBACK", f"'{name}'")
    server.execute("SET sql_log_bin = 1", f"UPDATE {DATABASE}.t SET v = CONCAT(v, '!') WHERE id IN (1, 2)")
    end_prepared(server, "COMMIT", "'committed'")
    end_prepared(server, "ROLLBACK", "'rolled back'")
    prepare(server, "'used again'", "UPDATE t SET v = 'again' WHERE id IN (3, 20)")
    end_prepared(server, "COMMIT", "'both'")
    prepare(server, "'both'", "DELETE FROM t WHERE id = 19")
    drain(server, tmp_path, **OF_DATABASE)
    last = CommitLog(tmp_path).latest()
    assert last is not None
    assert [bytes.fromhex(each.xid[2:].partition("'")[0]) for each in last.prepared] == [
        b"kept",
        b"used again",
        b"both",
    ]
    for name, how in (("kept", "COMMIT"), ("used again", "COMMIT"), ("both", "ROLLBACK")):
        end_prepared(server, how, f"'{name}'")
    drain(server, tmp_path, **OF_DATABASE)
    assert_as_on_server(server, tmp_path, "t", ("id", "v"))
    assert_dense(tmp_path)
    counters = CommitLog(tmp_path).summary_at(CommitLog(tmp_path).latest_version()).counters
    assert (counters["xa_transactions_lost"], counters["xa_rollbacks"]) == (4, 2)


def test_a_user_to_whom_the_server_does_not_list_what_is_left_is_warned(
    own_server: Callable[..., Server], tmp_path: Path
) -> None:
    server = own_server("mysql-8.0", {})
    start = start_of(server)
    server.execute(f"CREATE DATABASE {DATABASE}", f"CREATE TABLE {DATABASE}.t (id INT PRIMARY KEY)")
    server.create_replication_user("follower", "secret")
    settings = {"user": "follower", "start": start, **OF_DATABASE}
    prepare(server, "'one'", "INSERT INTO t VALUES (1)")
    warned = []
    for _ in range(2):
        command = command_line(server, tmp_path, "--stop-at-end", **settings)
        ended = run_command(*command, password="secret")
        assert ended.status == 0, ended.stderr
        warned.append("grant XA_RECOVER_ADMIN" in ended.stderr)
        server.kill()
        server.start()
        settings.pop("start", None)
    assert warned == [False, True]


def test_binlog_files(database: Server, tmp_path: Path) -> None:
    """`decode` does the same without a server."""
    database.flush_binlog()
    start = start_of(database)
    database.execute(f"CREATE TABLE {DATABASE}.t (id INT PRIMARY KEY, v INT)")
    prepare(database, "'a'", "INSERT INTO t VALUES (1, 1), (2, 2)", "DELETE FROM t WHERE id = 1")
    end_prepared(database, "ROLLBACK", "'a'")
    database.execute(f"INSERT INTO {DATABASE}.t VALUES (3, 3)")
    file = database.data_directory / start.partition(":")[0]
    database.flush_binlog()
    drain(database, tmp_path / "run", start=start, **OF_DATABASE)
    tables = f"--tables={DATABASE}.*"
    assert run_command("decode", str(file), "--out", str(tmp_path / "decode"), tables).status == 0
    read = [Changes(tmp_path / name).read(DATABASE, "t").drop(["_seq"]) for name in ("run", "decode")]
    assert read[0] == read[1]
    assert read[0].num_rows == 7
    assert_as_on_server(database, tmp_path / "decode", "t", ("id", "v"))
    # An archive's first pass knows of the rollback before its rows are decoded.
    found = plan(Request(str(file), DecodeOptions(TableFilter((f"{DATABASE}.*",)))))
    archived = [
        row
        for part in found.survey.parts
        for each in rows_inside(part, found.reading, found.bounds)
        for row in each.rows.select([0, 1]).to_pylist()
        if each.table == (DATABASE, "t")
    ]
    assert archived == [{"id": 3, "v": 3}]


def test_one_that_is_larger_than_a_batch(database: Server, tmp_path: Path) -> None:
    database.execute(f"CREATE TABLE {DATABASE}.t (id INT PRIMARY KEY, text VARCHAR(200))")
    values = [(number, "x" * (number % 200)) for number in range(LARGE)]
    insert = f"INSERT INTO {DATABASE}.t VALUES (%s, %s)"
    database.execute_many(insert, values[: LARGE // 2])
    start = start_of(database)
    with database.connect(database=DATABASE) as connection, connection.cursor() as cursor:
        cursor.execute("XA START 'large'")
        cursor.execute("UPDATE t SET text = CONCAT(text, '!')")
        cursor.executemany(insert, values[LARGE // 2 :])
        cursor.execute("XA END 'large'")
        cursor.execute("XA PREPARE 'large'")
        cursor.execute("XA ROLLBACK 'large'")
    database.execute(f"UPDATE {DATABASE}.t SET text = 'last' WHERE id = 1")
    drain(database, tmp_path, start=start, **OF_DATABASE)
    changed = replayed(tmp_path, "t", ("id", "text"))
    selected = Counter(database.query(f"SELECT id, text FROM {DATABASE}.t"))
    assert changed == selected
    assert_dense(tmp_path)


def test_a_snapshot_is_requested_between(database: Server, tmp_path: Path) -> None:
    """It waits for the end, and has the rows as they are without the transaction."""
    start = start_of(database)
    for table, key in (("keyed", "PRIMARY KEY"), ("keyless", "")):
        database.execute(
            f"CREATE TABLE {DATABASE}.{table} (id INT {key}, v INT)",
            f"INSERT INTO {DATABASE}.{table} VALUES (1, 10), (2, 20)",
        )
    changes = [f"{change} WHERE id = 1" for change in ("DELETE FROM keyed", "DELETE FROM keyless")]
    prepare(database, "'a'", *changes)
    with follow(database, tmp_path, start=start, **OF_DATABASE) as engine:
        engine.catch_up(database)
        assert run_command("snapshot", str(tmp_path), "--tables", f"{DATABASE}.*").status == 0
        said = "the snapshot waits for the end of the XA transaction"
        wait_until(lambda: said in engine.stderr, "warning", check=engine.must_run)
        end_prepared(database, "ROLLBACK", "'a'")
        wait_for_snapshots(engine, tmp_path)
        assert engine.stop().status == 0
    for table in ("keyed", "keyless"):
        assert_as_on_server(database, tmp_path, table, ("id", "v"))


def test_a_row_image_that_is_not_complete(database: Server, tmp_path: Path) -> None:
    """Values that no image has cannot come back: such tables are changed by statement, until a snapshot."""
    start = start_of(database)
    database.execute(
        *(f"CREATE TABLE {DATABASE}.{name} (id INT PRIMARY KEY, v INT DEFAULT 7)" for name in ("t", "u")),
        *(f"INSERT INTO {DATABASE}.{name} VALUES (1, 10), (2, 20)" for name in ("t", "u")),
    )
    with follow(database, tmp_path, "--snapshot-when-changed", start=start, **OF_DATABASE) as engine:
        engine.catch_up(database)
        changes = (
            "INSERT INTO t (id) VALUES (3)",
            "INSERT INTO u (id) VALUES (3)",
            "DELETE FROM t WHERE id = 1",
        )
        prepare(database, "'a'", "SET SESSION binlog_row_image = MINIMAL", *changes)
        end_prepared(database, "ROLLBACK", "'a'")
        wait_for_snapshots(engine, tmp_path)
        assert engine.stop().status == 0
    marks = [
        (change.commit, change.change.rewritten)
        for change in CommitLog(tmp_path).schema_changes(0, CommitLog(tmp_path).latest_version())
        if change.change.rewritten
    ]
    assert [[str(name) for name in names] for _, names in marks] == [[f"{DATABASE}.t"]]
    assert rewritten_tables(tmp_path, marks[0][0])
    for table in ("t", "u"):
        assert_as_on_server(database, tmp_path, table, ("id", "v"))


def test_generated_columns_may_be_absent(database: Server, tmp_path: Path) -> None:
    """MariaDB 11.8.9 leaves them out of images of updates and deletes, and they follow from the others."""
    start = start_of(database)
    database.execute(
        f"CREATE TABLE {DATABASE}.t (id INT PRIMARY KEY, v INT, w INT AS (v + 1), x INT AS (v) STORED)",
        f"INSERT INTO {DATABASE}.t (id, v) VALUES (1, 10), (2, 20)",
    )
    prepare(database, "'a'", "DELETE FROM t WHERE id = 1", "UPDATE t SET v = 21 WHERE id = 2")
    end_prepared(database, "ROLLBACK", "'a'")
    drain(database, tmp_path, start=start, **OF_DATABASE)
    assert not rewritten_tables(tmp_path, CommitLog(tmp_path).latest_version())
    assert_as_on_server(database, tmp_path, "t", ("id", "v"))
    assert_dense(tmp_path)


@pytest.mark.slow
def test_processes_are_killed(database: Server, tmp_path: Path) -> None:
    start = start_of(database)
    database.execute(
        f"CREATE TABLE {DATABASE}.keyed (id INT PRIMARY KEY, v INT, text VARCHAR(100))",
        f"CREATE TABLE {DATABASE}.keyless (v INT, text VARCHAR(100), KEY (v))",
    )
    choose = random.Random(database.flavor)
    with Load(database, DATABASE, 300, seed=1, xa=True) as load:
        for _ in range(4):
            with follow(database, tmp_path, start=start, commit_interval=0.05, **OF_DATABASE) as engine:
                engine.wait_for_commits(choose.randrange(1, 12))
                engine.kill(choose.choice(("sink", "network", "supervisor")))
                engine.wait_until_gone()
        load.stop()
        drain(database, tmp_path, **OF_DATABASE)
    assert load.transactions > 20
    log = CommitLog(tmp_path)
    assert log.summary_at(log.latest_version()).counters["xa_rollbacks"] > 0
    assert_as_on_server(database, tmp_path, "keyed", ("id", "v", "text"))
    assert_as_on_server(database, tmp_path, "keyless", ("v", "text"))
    assert_dense(tmp_path)
