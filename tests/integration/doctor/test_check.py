"""`binlog-engine check` on real servers: settings and privileges that are wrong, and their remedies."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from engine.binlog.position import SourcePosition
from engine.commands.check import examine_server
from engine.config.secret import Secret
from engine.config.server_address import Login, ServerAddress
from engine.config.table_filter import TableFilter
from engine.config.tls import NO_TLS
from engine.doctor.finding import Finding
from tests.servers import Server
from tests.support.engine_run import drain, end_of_binlog, follow, run_command
from tests.support.snapshot_load import boundaries
from tests.support.snapshot_runs import request, wait_for_snapshots
from tests.support.xa_transactions import end_prepared, prepare, roll_back_prepared

pytestmark = pytest.mark.server

DATABASE = "doctor"
NAME, PASSWORD = "patient", "kept to itself"
LOST_XID = "X'3078ff27',X'c3b6',7"
"""An XID whose bytes are neither text nor what they may look like."""

WRONG_SETTINGS = {
    "binlog_format": ("'STATEMENT'", "required", ""),
    "binlog_row_image": ("'MINIMAL'", "advice", ""),
    "binlog_checksum": ("'NONE'", "advice", ""),
    "sync_binlog": ("0", "advice", ""),
    "max_allowed_packet": ("1048576", "advice", ""),
    "server_id": ("0", "required", "mysql"),
    "binlog_row_metadata": ("'MINIMAL'", "advice", "mysql-9.7 mysql-8.0 mariadb"),
    "expire_logs_days": ("1", "advice", "mysql-5"),
    "binlog_expire_logs_seconds": ("3600", "advice", "mysql-9.7 mysql-8.0 mariadb"),
}
"""Variable → a wrong value, the level of the finding, and the servers that have it (empty: all)."""
SHOWN_AS = {
    "expire_logs_days": "retention of binlogs",
    "binlog_expire_logs_seconds": "retention of binlogs",
}


def address(server: Server, user: str = "root", password: str = "") -> ServerAddress:
    login = Login(user, (Secret(password),), NO_TLS, "none", None)
    return ServerAddress(server.host, server.port, login, None)


def findings(
    server: Server, user: str = "root", password: str = "", tables: tuple[str, ...] = (f"{DATABASE}.*",)
) -> dict[str, Finding]:
    found = examine_server(address(server, user, password), TableFilter(tables), None)
    return {finding.what: finding for finding in found}


@contextmanager
def variables_kept(server: Server, *names: str) -> Iterator[None]:
    """The global variables of these names get their values back."""
    before = {name: server.query(f"SELECT @@GLOBAL.{name}")[0][0] for name in names}
    try:
        yield
    finally:
        for name, value in before.items():
            server.query(f"SET GLOBAL {name} = %s", value)


def executed(server: Server, remedy: str) -> None:
    """Execute the statements of a remedy; what follows in parentheses or after a comma is for people."""
    for statement in remedy.split("; "):
        server.execute(re.split(r" \(|, or ", statement)[0])


@pytest.fixture
def database(server: Server) -> Server:
    """A server with tables of all kinds."""
    server.execute(
        f"DROP DATABASE IF EXISTS {DATABASE}",
        f"CREATE DATABASE {DATABASE}",
        f"CREATE TABLE {DATABASE}.parent (id INT PRIMARY KEY)",
        f"CREATE TABLE {DATABASE}.child (id INT PRIMARY KEY, p INT, "
        f"FOREIGN KEY (p) REFERENCES {DATABASE}.parent (id) ON DELETE CASCADE)",
        f"CREATE TABLE {DATABASE}.keyless (id INT)",
        f"CREATE TABLE {DATABASE}.older (id INT PRIMARY KEY) ENGINE=MyISAM",
    )
    return server


def test_each_wrong_setting_is_found_and_its_remedy_helps(server: Server) -> None:
    wrong = {
        name: (value, level)
        for name, (value, level, servers) in WRONG_SETTINGS.items()
        if not servers or any(part in server.flavor for part in servers.split())
    }
    with variables_kept(server, *wrong):
        for name, (value, _) in wrong.items():
            server.execute(f"SET GLOBAL {name} = {value}")
        found = findings(server)
        for name, (value, level) in wrong.items():
            finding = found[SHOWN_AS.get(name, name)]
            assert finding.level == level, finding
            assert value.strip("'") == finding.actual or name in SHOWN_AS
            executed(server, finding.remedy)
        found = findings(server)
        assert {found[SHOWN_AS.get(name, name)].level for name in wrong} == {"ok"}


def test_settings_that_depend_on_others(mysql97: Server) -> None:
    names = "binlog_row_image", "binlog_row_value_options", "binlog_row_metadata"
    with variables_kept(mysql97, *names, "binlog_transaction_compression"):
        mysql97.execute("SET GLOBAL binlog_row_value_options = 'PARTIAL_JSON'")
        mysql97.execute("SET GLOBAL binlog_transaction_compression = ON")
        found = findings(mysql97)
        assert found["binlog_row_value_options"].level == "ok"
        assert found["binlog_transaction_compression"].level == "ok"
        mysql97.execute("SET GLOBAL binlog_row_image = 'MINIMAL'", "SET GLOBAL binlog_row_metadata = 'FULL'")
        found = findings(mysql97)
        assert found["binlog_row_value_options"].level == "advice"
        assert found["binlog_transaction_compression"].level == "advice"


def test_gtid_mode(mysql97: Server) -> None:
    assert findings(mysql97)["gtid_mode"].level == "ok"
    try:
        for mode in ("ON_PERMISSIVE", "OFF_PERMISSIVE", "OFF"):
            mysql97.execute(f"SET GLOBAL gtid_mode = {mode}")
        mysql97.execute("SET GLOBAL enforce_gtid_consistency = OFF")
        found = findings(mysql97)["gtid_mode"]
        assert (found.actual, found.level) == ("OFF", "advice")
        # As the remedy says, one after the other.
        assert "OFF_PERMISSIVE, ON_PERMISSIVE and ON" in found.remedy
        mysql97.execute("SET GLOBAL enforce_gtid_consistency = ON")
        for mode in ("OFF_PERMISSIVE", "ON_PERMISSIVE", "ON"):
            mysql97.execute(f"SET GLOBAL gtid_mode = {mode}")
        assert findings(mysql97)["gtid_mode"].level == "ok"
    finally:
        mysql97.execute("SET GLOBAL enforce_gtid_consistency = ON")
        mysql97.execute("SET GLOBAL gtid_mode = ON")


def test_a_server_without_a_binlog(own_server: Callable[..., Server]) -> None:
    found = findings(own_server("mariadb-11.8", {"skip_log_bin": None}))
    assert found["log_bin"].level == "required"
    assert "retention of binlogs" not in found


def test_each_missing_privilege_is_found_and_its_remedy_helps(database: Server) -> None:
    database.create_replication_user(NAME, PASSWORD, privileges="USAGE")
    levels = {"REPLICATION SLAVE": "required", "REPLICATION CLIENT": "advice", "SELECT": "required"}
    for privilege, level in levels.items():
        finding = findings(database, NAME, PASSWORD)[f"privilege {privilege}"]
        assert finding.level == level, finding
        executed(database, finding.remedy)
        assert findings(database, NAME, PASSWORD)[f"privilege {privilege}"].actual == "granted"
    # Which tables are locked is known once they are visible; each server locks one of these.
    finding = findings(database, NAME, PASSWORD)["privilege LOCK TABLES"]
    assert (finding.level, finding.actual) == ("advice", f"missing on {DATABASE}")
    executed(database, finding.remedy)
    assert findings(database, NAME, PASSWORD)["privilege LOCK TABLES"].actual == "granted"
    unlocked = findings(database, NAME, PASSWORD, (f"{DATABASE}.parent",))["privilege LOCK TABLES"].actual
    assert unlocked == ("not needed" if database.has_gtids else "granted")


def test_prepared_transactions_must_be_listed_where_there_are_any(
    own_server: Callable[..., Server],
) -> None:
    server = own_server("mysql-9.7", {})
    server.create_replication_user(NAME, PASSWORD, privileges="USAGE")
    assert "privilege XA_RECOVER_ADMIN" not in findings(server, NAME, PASSWORD)
    with server.cursor() as cursor:
        for statement in ("XA START 'x'", "XA END 'x'", "XA PREPARE 'x'", "XA ROLLBACK 'x'"):
            cursor.execute(statement)
    finding = findings(server, NAME, PASSWORD)["privilege XA_RECOVER_ADMIN"]
    assert (finding.level, finding.actual) == ("advice", "missing")
    executed(server, finding.remedy)
    assert findings(server, NAME, PASSWORD)["privilege XA_RECOVER_ADMIN"].actual == "granted"


def test_mariadb_locks_a_table_without_a_key_beside_xa_transactions(
    own_server: Callable[..., Server],
) -> None:
    server = own_server("mariadb-11.8", {})
    server.create_replication_user(NAME, PASSWORD, privileges="SELECT")
    server.execute(f"CREATE DATABASE {DATABASE}", f"CREATE TABLE {DATABASE}.keyless (id INT)")
    assert findings(server, NAME, PASSWORD)["privilege LOCK TABLES"].actual == "not needed"
    prepare(server, DATABASE, "'x'", "INSERT INTO keyless VALUES (1)")
    finding = findings(server, NAME, PASSWORD)["privilege LOCK TABLES"]
    assert finding.actual == f"missing on {DATABASE}"
    executed(server, finding.remedy)
    assert findings(server, NAME, PASSWORD)["privilege LOCK TABLES"].actual == "granted"


def test_a_role_counts(mysql97: Server) -> None:
    mysql97.create_replication_user(NAME, PASSWORD, privileges="USAGE")
    mysql97.execute(
        "CREATE ROLE IF NOT EXISTS readers",
        "GRANT REPLICATION SLAVE ON *.* TO readers",
        f"GRANT readers TO {NAME}",
        f"SET DEFAULT ROLE readers TO {NAME}",
    )
    assert findings(mysql97, NAME, PASSWORD)["privilege REPLICATION SLAVE"].actual == "granted"
    mysql97.execute("DROP ROLE readers")


def test_tables(database: Server) -> None:
    found = findings(database)
    assert found["tables without a primary key"].names == (f"{DATABASE}.keyless",)
    cascading = found["foreign keys with actions"].names
    if database.flavor == "mysql-9.7":
        assert cascading == ()
    else:
        (name,) = cascading
        assert re.fullmatch(rf"{DATABASE}\.child \(\w+: ON DELETE CASCADE, ON UPDATE [\w ]+\)", name)
    if "mariadb" in database.flavor:
        numbers = ", ".join(f"{n} BIGINT UNSIGNED GENERATED ALWAYS AS ROW {n}" for n in ("start", "end"))
        database.execute(
            f"CREATE TABLE {DATABASE}.by_time (id INT PRIMARY KEY) WITH SYSTEM VERSIONING",
            f"CREATE TABLE {DATABASE}.by_transaction (id INT PRIMARY KEY, {numbers}, "
            "PERIOD FOR SYSTEM_TIME (start, end)) WITH SYSTEM VERSIONING ENGINE=InnoDB",
        )
        file, position = end_of_binlog(database)
        database.execute(f"INSERT INTO {DATABASE}.by_transaction (id) VALUES (1)")
        logged = database.query(f"SHOW BINLOG EVENTS IN '{file}' FROM {position}")
        assert any("INSERT INTO" in event[5] for event in logged)
        assert findings(database)["tables with versions by transaction"].names == (
            f"{DATABASE}.by_transaction",
        )
    masked = "tables with masking policies"
    assert (masked in found) == (database.flavor == "mysql-9.7")
    if database.flavor == "mysql-9.7":
        assert found[masked].level == "ok"
        database.execute(f"ALTER TABLE {DATABASE}.keyless ADD name VARCHAR(9) MASKING POLICY short")
        assert findings(database)[masked].names == (f"{DATABASE}.keyless",)


def test_patterns_that_match_no_table(database: Server, tmp_path: Path) -> None:
    database.create_replication_user(NAME, PASSWORD, privileges="REPLICATION SLAVE, REPLICATION CLIENT")
    right, misspelt = f"{DATABASE}.keyless", f"{DATABASE.title()}.keyless"
    what = "patterns without a table"
    assert findings(database, tables=(right, misspelt))[what].names == (f"--tables {misspelt}",)
    assert what not in findings(database, tables=(right, "mysql.*"))

    def first_run(user: str, password: str, out: str) -> str:
        where = "--host", database.host, "--port", str(database.port), "--user", user
        how = "--out", str(tmp_path / out), "--start=latest", "--stop-at-end", "--workers=1"
        ended = run_command(
            "run", *where, *how, f"--tables={right},{misspelt}", "--exclude-tables=*.x", password=password
        )
        assert ended.status == 0, ended.stderr
        return ended.stderr

    warnings = first_run("root", "", "seen")
    assert re.findall(r"(\S+ \S+) matches no table", warnings) == [
        f"--tables {misspelt}",
        "--exclude-tables *.x",
    ]
    assert "matches no table" not in first_run("root", "", "seen")
    # Without a privilege on any table, it is not known which there are.
    assert "matches no table" not in first_run(NAME, PASSWORD, "unseen")


def test_a_user_with_the_documented_privileges_sees_keys(database: Server) -> None:
    database.create_replication_user(NAME, PASSWORD, privileges="REPLICATION SLAVE, REPLICATION CLIENT")
    database.execute(f"GRANT SELECT ON {DATABASE}.* TO {NAME}")
    found, seen_by_root = findings(database, NAME, PASSWORD), findings(database)
    for what in ("tables without a primary key", "foreign keys with actions"):
        assert found[what] == seen_by_root[what]


def test_a_privilege_on_a_named_table_is_enough(database: Server) -> None:
    database.create_replication_user(NAME, PASSWORD, privileges="USAGE")
    database.execute(f"GRANT SELECT ON {DATABASE}.parent TO {NAME}")
    found = findings(database, NAME, PASSWORD, (f"{DATABASE}.parent",))
    assert found["privilege SELECT"].actual == "granted"
    found = findings(database, NAME, PASSWORD)
    assert found["privilege SELECT"].actual == f"missing on {DATABASE}"


def test_names_are_quoted_otherwise(database: Server) -> None:
    database.create_replication_user(NAME, PASSWORD, privileges="USAGE")
    database.execute(f"GRANT SELECT ON {DATABASE}.* TO {NAME}")
    with variables_kept(database, "sql_mode", "sql_quote_show_create"):
        for setting in ("sql_mode = 'ANSI'", "sql_quote_show_create = 0"):
            database.execute(f"SET GLOBAL {setting}")
            found = findings(database, NAME, PASSWORD)
            assert found["privilege SELECT"].actual == "granted"
            assert len(found["foreign keys with actions"].names) == (database.flavor != "mysql-9.7")


def test_the_place_of_an_output(mysql97: Server) -> None:
    def headroom(file: str, position: int, uuid: str) -> Finding:
        output = SourcePosition(file, position, None, uuid, "mysql")
        found = examine_server(address(mysql97), TableFilter(), output)
        return {finding.what: finding for finding in found}["position of the output in the server's binlogs"]

    file, position = end_of_binlog(mysql97)
    ((uuid,),) = mysql97.query("SELECT @@server_uuid")
    assert headroom(file, position - 100, uuid).actual == f"{file}:{position - 100}, 100 B before the end"
    assert headroom("binlog.000000", 4, uuid).level == "required"
    assert "of another server" in headroom(file, position, "other").actual


@pytest.fixture(params=["mysql-9.7", "mariadb-10.11", "mariadb-11.8"])
def prepared(request: pytest.FixtureRequest, shared_server: Callable[[str], Server]) -> Iterator[Server]:
    """A server that logs XA PREPARE, with a table, and two prepared transactions that change it."""
    server = shared_server(request.param)
    server.execute(
        f"DROP DATABASE IF EXISTS {DATABASE}",
        f"CREATE DATABASE {DATABASE}",
        f"CREATE TABLE {DATABASE}.t (id INT PRIMARY KEY)",
        f"INSERT INTO {DATABASE}.t VALUES (1)",
    )
    for number, xid in enumerate(("'kept'", LOST_XID), 2):
        prepare(server, DATABASE, xid, f"INSERT INTO t VALUES ({number})")
    yield server
    roll_back_prepared(server)


def test_a_prepared_transaction_that_the_server_has_lost(prepared: Server, tmp_path: Path) -> None:
    """As MariaDB may in a crash: its binlog has XA PREPARE and no XA ROLLBACK. A snapshot mends the table."""
    stream = {"tables": f"{DATABASE}.*"}
    where = ("check", "--host", prepared.host, "--port", str(prepared.port), "--user=root", "--json")

    def finding() -> dict[str, object]:
        ended = run_command(*where, "--out", str(tmp_path))
        (findings, _) = json.loads(ended.stdout).values()
        (found,) = (each for each in findings if each["what"].startswith("XA transactions"))
        assert isinstance(found, dict)
        return found

    drain(prepared, tmp_path, **stream)
    assert finding()["actual"] == "2, which the server has prepared"
    prepared.execute("SET sql_log_bin = 0")
    end_prepared(prepared, "ROLLBACK", LOST_XID)
    prepared.execute("SET sql_log_bin = 1")
    found = finding()
    assert (found["level"], found["names"]) == ("advice", [f"{DATABASE}.t"])
    assert found["actual"] == f"{LOST_XID}: not prepared on the server"

    end_prepared(prepared, "COMMIT", "'kept'")
    with follow(prepared, tmp_path, **stream) as engine:
        assert request(tmp_path, f"{DATABASE}.t").status == 0
        wait_for_snapshots(engine, tmp_path)
        assert engine.stop().status == 0
    *_, last = boundaries(tmp_path, DATABASE, "t", ("id",))
    assert last.rows == Counter(prepared.query(f"SELECT id FROM {DATABASE}.t")) == Counter([(1,), (2,)])


def test_a_connection_without_tls_and_a_wrong_clock(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    found = findings(server)
    assert (found["TLS"].actual, found["TLS"].level) == ("not encrypted", "advice")
    assert found["clock of the server, against this machine"].level == "ok"
    clock = time.time
    monkeypatch.setattr(time, "time", lambda: clock() - 60)
    wrong = findings(server)["clock of the server, against this machine"]
    assert wrong.level == "advice"
    assert 59 < float(wrong.actual.split()[0]) < 61


def test_the_command(mysql97: Server, tmp_path: Path) -> None:
    mysql97.create_replication_user(NAME, PASSWORD, privileges="USAGE")
    where = ("check", "--host", mysql97.host, "--port", str(mysql97.port))
    good = run_command(*where, "--user=root", "--out", str(tmp_path / "out"), "--json")
    assert good.status == 0, good.stdout
    parts = json.loads(good.stdout)
    assert list(parts) == [f"{mysql97.host}:{mysql97.port}", "output"]
    keys = {"what", "actual", "level", "expected", "why", "remedy", "names"}
    assert all(set(finding) == keys for part in parts.values() for finding in part)
    assert not (tmp_path / "out").exists()

    refused = run_command(*where, f"--user={NAME}", password=PASSWORD)
    assert refused.status == 1
    assert re.search(r"MUST CHANGE +privilege REPLICATION SLAVE +missing", refused.stdout)
    assert PASSWORD not in refused.stdout + refused.stderr
    stranger = run_command(*where, f"--user={NAME}", password="wrong")
    assert stranger.status == 1
    assert re.search(r"MUST CHANGE +login +failed", stranger.stdout)
