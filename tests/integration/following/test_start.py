"""Where a run starts, on real servers: at a time, at a GTID set, and what comes of a start that cannot be."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from engine.binlog.gtid_set import MysqlGtidSet
from engine.binlog.position import SourcePosition
from engine.errors import EngineError
from engine.net.client import server_queries, source_facts
from engine.net.client.connection import Connection
from engine.net.client.dump_requests import FIRST_POSITION
from engine.net.client.position_search import position_at
from engine.net.client.server_events import file_begun
from engine.net.client.start_position import executed_before, start_position
from engine.output.reader import Changes
from engine.output.snapshot_requests import request_snapshot
from tests.servers import GTIDS, Server
from tests.support.committed import assert_sound
from tests.support.engine_run import command_line, drain, end_of_binlog, run_command, wait_until
from tests.support.writer_output import latest_commit

pytestmark = [pytest.mark.server, pytest.mark.slow, pytest.mark.fewer_servers]

KINDS = {"mysql-9.7": GTIDS, "mysql-8.0": GTIDS, "mysql-5.7": GTIDS, "mysql-5.6": {}, "mariadb-11.8": {}}
LARGE_ROW = 3 << 20
"""Three of them make a transaction that is larger than a batch."""


def test_transactions_without_gtids_before_the_mode_was_on(
    own_server: Callable[..., Server], tmp_path: Path
) -> None:
    """A server that has gtid_mode ON passes over them when it is asked by GTID."""
    server = own_server("mysql-9.7", {"gtid_mode": "OFF", "enforce_gtid_consistency": "ON"})
    server.execute("CREATE DATABASE anonymous", "CREATE TABLE anonymous.rows (id INT PRIMARY KEY)")
    start = "{}:{}".format(*end_of_binlog(server))
    server.execute("INSERT INTO anonymous.rows VALUES (1)", "FLUSH BINARY LOGS")
    server.execute("INSERT INTO anonymous.rows VALUES (2)")
    drain(server, tmp_path, start=start)
    server.execute("INSERT INTO anonymous.rows VALUES (3)")
    for mode in ("OFF_PERMISSIVE", "ON_PERMISSIVE", "ON"):
        server.execute(f"SET GLOBAL gtid_mode = {mode}")
    server.execute("INSERT INTO anonymous.rows VALUES (4)")
    ended = run_command(*command_line(server, tmp_path, "--stop-at-end"))
    assert ended.status == 1
    assert "transactions without GTIDs" in ended.sentence
    assert "ON_PERMISSIVE" in ended.sentence
    server.execute("SET GLOBAL gtid_mode = ON_PERMISSIVE")
    drain(server, tmp_path)
    server.execute("SET GLOBAL gtid_mode = ON", "INSERT INTO anonymous.rows VALUES (5)")
    drain(server, tmp_path)
    assert Changes(tmp_path).read("anonymous", "rows")["id"].to_pylist() == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("flavor", ["mysql-9.7", "mysql-8.0", "mysql-5.7", "mariadb-11.8"])
def test_a_server_that_has_lost_the_end_of_its_binlog(
    flavor: str, own_server: Callable[..., Server], tmp_path: Path
) -> None:
    """After a power failure it gives the same GTIDs out again, for other transactions."""
    server = own_server(flavor, KINDS[flavor])
    server.execute("CREATE DATABASE cut_off", "CREATE TABLE cut_off.rows (id INT PRIMARY KEY)")
    file, end = end_of_binlog(server)
    server.execute("INSERT INTO cut_off.rows VALUES (1)")
    drain(server, tmp_path)
    server.kill()
    os.truncate(server.data_directory / file, end)
    server.start()
    server.execute(*(f"INSERT INTO cut_off.rows VALUES ({row})" for row in (2, 3)))
    ended = run_command(*command_line(server, tmp_path, "--stop-at-end"))
    assert ended.status == 1
    assert f"does not have {file} at position" in ended.sentence
    assert "crash" in ended.sentence
    assert Changes(tmp_path).read("cut_off", "rows")["id"].to_pylist() == [1]


def purge_to_last(server: Server) -> None:
    """Remove all binlog files but the last; the dump of a run that has ended may keep one for a moment."""
    last = server.binlogs()[-1]

    def purged() -> bool:
        server.query("PURGE BINARY LOGS TO %s", last.name)
        return server.binlogs() == [last]

    wait_until(purged, "removal of binlog files")


def test_a_domain_of_gtids_that_is_deleted(own_server: Callable[..., Server], tmp_path: Path) -> None:
    """The server then has nothing of it, but is no other server, and a snapshot need not wait for it."""
    server = own_server("mariadb-11.8", {})
    server.execute("CREATE DATABASE domains", "CREATE TABLE domains.rows (id INT PRIMARY KEY)")
    server.execute("SET gtid_domain_id = 7", "INSERT INTO domains.rows VALUES (1)", "SET gtid_domain_id = 0")
    server.flush_binlog()
    drain(server, tmp_path)
    purge_to_last(server)
    server.execute("FLUSH BINARY LOGS DELETE_DOMAIN_ID = (7)", "INSERT INTO domains.rows VALUES (2)")
    request_snapshot(tmp_path, ("domains.rows",))
    drain(server, tmp_path)
    changes = Changes(tmp_path).read("domains", "rows")
    rows = zip(changes["_change_type"].to_pylist(), changes["id"].to_pylist(), strict=True)
    # A row that the stream brings while the table is read is left out of what was read.
    others = [row for row in rows if row[0] != "truncate" and row != ("snapshot", 2)]
    assert sorted(others) == [("insert", 1), ("insert", 2), ("snapshot", 1)]


@dataclass(frozen=True)
class Step:
    """A row, and where and when it was written."""

    id: int
    second: int
    file: str
    position: int
    earliest: int
    """Where the transaction before it ends in this file, or the file begins."""
    gtid_set: str | None
    """What was executed before."""


@dataclass(frozen=True)
class History:
    """A server with rows in several binlogs, each in a second of its own."""

    server: Server
    steps: list[Step]

    def connect(self) -> Connection:
        return Connection.open(self.server.host, self.server.port, self.server.user)

    def facts(self) -> source_facts.SourceFacts:
        with self.connect() as connection:
            return source_facts.read_facts(connection)


@pytest.fixture(scope="module", params=KINDS)
def history(request: pytest.FixtureRequest, own_server: Callable[..., Server]) -> History:
    server = own_server(request.param, KINDS[request.param])
    server.execute("CREATE DATABASE timed", "CREATE TABLE timed.rows (id INT PRIMARY KEY, content LONGBLOB)")
    steps = []
    _, position = end_of_binlog(server)
    for number in range(6):
        if number % 2:
            server.query("FLUSH BINARY LOGS")
        # A second of its own for each, and one without a transaction before the last.
        time.sleep(1.1 if number < 5 else 2.1)
        earliest = FIRST_POSITION if number % 2 else position
        file, position = end_of_binlog(server)
        steps.append(Step(number, _clock(server), file, position, earliest, _executed(server)))
        size, rows = (LARGE_ROW, 3) if number == 4 else (10, 1)
        for row in range(rows):
            if row == 0:
                server.query("BEGIN")
            server.query("INSERT INTO timed.rows VALUES (%s, REPEAT('x', %s))", number + 100 * row, size)
        server.query("COMMIT")
        _, position = end_of_binlog(server)
    return History(server, steps)


def _clock(server: Server) -> int:
    return int(server.query("SELECT UNIX_TIMESTAMP()")[0][0])


def _executed(server: Server) -> str | None:
    if not server.has_gtids:
        return None
    variable = "gtid_executed" if server.flavor.startswith("mysql") else "gtid_binlog_pos"
    return "".join(server.query(f"SELECT @@GLOBAL.{variable}")[0][0].split())


def _utc(second: int) -> datetime:
    return datetime.fromtimestamp(second, UTC)


def test_each_second_leads_to_its_transaction(history: History) -> None:
    facts = history.facts()
    for step in history.steps:
        found = position_at(history.connect, facts, _utc(step.second))
        assert (found.file, found.gtid_set) == (step.file, step.gtid_set)
        assert step.earliest <= found.position <= step.position


def test_what_was_executed_before_a_position_and_before_a_file(history: History) -> None:
    facts = history.facts()
    for step in history.steps:
        for position in {step.earliest, step.position}:
            assert executed_before(facts, step.file, position, history.connect) == step.gtid_set


def test_a_time_between_leads_to_what_came_next(history: History) -> None:
    """To the next transaction, or to what the server wrote at the end of a file before it."""
    *_, before, last = history.steps
    found = position_at(history.connect, history.facts(), _utc(last.second - 1))
    assert (before.file, before.position) < (found.file, found.position) <= (last.file, last.position)
    assert found.gtid_set == last.gtid_set


def test_a_time_to_come_leads_to_the_end(history: History) -> None:
    found = position_at(history.connect, history.facts(), _utc(history.steps[-1].second + 3600))
    assert (found.file, found.position) == end_of_binlog(history.server)
    assert found.gtid_set == _executed(history.server)


def test_a_time_before_the_first_file_leads_to_its_beginning(history: History) -> None:
    first = history.server.binlogs()[0].name
    found = position_at(history.connect, history.facts(), _utc(1_000_000_000))
    assert (found.file, found.position) == (first, 4)


def test_a_run_from_a_time_on(history: History, tmp_path: Path) -> None:
    step = history.steps[2]
    drain(history.server, tmp_path, start=_utc(step.second).isoformat())
    ids = Changes(tmp_path).read("timed", "rows")["id"].to_pylist()
    assert ids == [2, 3, 4, 104, 204, 5]
    # It goes on from there, by GTID where there are any, and without anything twice.
    drain(history.server, tmp_path)
    assert Changes(tmp_path).read("timed", "rows")["id"].to_pylist() == ids
    assert_sound(tmp_path)


REFUSED, ACCEPTED = "were reset", None
FILES = {
    "the same": ({}, ACCEPTED),
    "begun at another time": ({"file_created": 1_000_000_000}, REFUSED),
    "not there yet": ({"file": "binlog.1000000"}, REFUSED),
    "purged": ({"file": "binlog.000000"}, ACCEPTED),
    "of another server": ({"file_created": 1_000_000_000, "server_uuid": "another"}, ACCEPTED),
}


@pytest.mark.parametrize(("change", "says"), FILES.values(), ids=FILES)
def test_the_file_that_an_output_ends_in(history: History, change: dict[str, Any], says: str | None) -> None:
    """All GTIDs are there, as they may be after a reset; without any, no other file will do."""
    facts = history.facts()
    if not facts.gtid_set and change:
        says = "were reset|another server"
    file, position = end_of_binlog(history.server)
    last = SourcePosition(
        file=file,
        position=position,
        gtid_set=facts.gtid_set or None,
        server_uuid=facts.server_uuid or "",
        flavor=facts.flavor,
        file_created=file_begun(history.connect, facts, file),
    )
    with history.connect() as connection:
        if says is None:
            place = start_position(connection, "", replace(last, **change), facts, history.connect)
            assert place.by_gtid == bool(facts.gtid_set)
        else:
            with pytest.raises(EngineError, match=says):
                start_position(connection, "", replace(last, **change), facts, history.connect)


def test_an_output_that_ends_beyond_4_gib(own_server: Callable[..., Server]) -> None:
    """Of a file that one large transaction has made so large: no dump can start there by position."""
    history = History(own_server("mysql-9.7", GTIDS), [])
    history.server.execute("CREATE DATABASE large")
    facts = history.facts()
    file, _ = end_of_binlog(history.server)
    begun = file_begun(history.connect, facts, file)
    last = SourcePosition(file, 1 << 32, facts.gtid_set, facts.server_uuid or "", facts.flavor, begun)
    with history.connect() as connection:
        assert start_position(connection, "", last, facts, history.connect).by_gtid


@pytest.mark.parametrize(
    ("start", "says"),
    [
        ("2026-11-20T08:00:00", "lacks a time zone"),
        ("2026-11-20 at eight", "give earliest, latest"),
        ("2026-13-20T08:00:00Z", "give earliest, latest"),
        ("tomorrow", "give earliest, latest"),
    ],
)
def test_starts_that_make_no_sense(mysql97: Server, start: str, says: str) -> None:
    def connect() -> Connection:
        return Connection.open(mysql97.host, mysql97.port, mysql97.user)

    with connect() as connection, pytest.raises(EngineError, match=says):
        start_position(connection, start, None, source_facts.read_facts(connection), connect)


def test_a_time_whose_binlogs_are_gone_is_refused(own_server: Callable[..., Server]) -> None:
    server = own_server("mysql-9.7", GTIDS)
    server.query("FLUSH BINARY LOGS")
    purge_to_last(server)
    alone = History(server, [])
    with pytest.raises(EngineError, match="older ones were purged: take what is there with --start earliest"):
        position_at(alone.connect, alone.facts(), _utc(1_000_000_000))


@pytest.fixture(scope="module")
def server(own_server: Callable[..., Server]) -> Server:
    return own_server("mysql-9.7", GTIDS)


class TestGtidSets:
    """Starting after a set, with transactions of several tags, and continuing."""

    def test_only_what_is_not_in_the_set_comes_and_comes_once(self, server: Server, tmp_path: Path) -> None:
        server.execute("CREATE DATABASE tagged", "CREATE TABLE tagged.rows (id INT PRIMARY KEY, tag TEXT)")
        for number in range(30):
            tag = ("", ":red", ":blue")[number % 3]
            server.execute(
                f"SET gtid_next = 'AUTOMATIC{tag}'", f"INSERT INTO tagged.rows VALUES ({number}, '{tag}')"
            )
            if number == 14:
                executed = _executed(server)
            if number == 20:
                server.query("FLUSH BINARY LOGS")
        server.query("SET gtid_next = AUTOMATIC")
        assert executed is not None and ":red:" in executed
        drain(server, tmp_path, start=f"gtid:{executed}")
        drain(server, tmp_path)
        server.query("INSERT INTO tagged.rows VALUES (30, '')")
        drain(server, tmp_path)
        rows = Changes(tmp_path).read("tagged", "rows").to_pylist()
        assert [row["id"] for row in rows] == list(range(15, 31))
        assert {row["_gtid"].split(":")[1] for row in rows if row["tag"]} == {"red", "blue"}
        assert_sound(tmp_path)
        latest = Changes(tmp_path).log.latest()
        assert latest is not None
        reached, executed = latest.position.gtid_set, _executed(server)
        assert reached is not None and executed is not None
        assert MysqlGtidSet.parse(reached) == MysqlGtidSet.parse(executed)

    def test_gtids_that_are_in_no_binlog(self, server: Server, tmp_path: Path) -> None:
        """As of a restored backup; a server that is asked for them says that it has purged them."""
        server.execute("CREATE DATABASE restored", "CREATE TABLE restored.rows (id INT PRIMARY KEY)")
        start = "{}:{}".format(*end_of_binlog(server))
        server.query("INSERT INTO restored.rows VALUES (1)")
        drain(server, tmp_path, start=start)
        server.query("SET GLOBAL gtid_purged = '+3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5'")
        server.query("INSERT INTO restored.rows VALUES (2)")
        drain(server, tmp_path)
        assert Changes(tmp_path).read("restored", "rows")["id"].to_pylist() == [1, 2]
        position = latest_commit(tmp_path).position
        assert position is not None and position.gtid_set is not None
        assert MysqlGtidSet.parse(position.gtid_set) == MysqlGtidSet.parse(_executed(server) or "")

    def test_a_set_of_many_servers(self, server: Server, tmp_path: Path) -> None:
        """SHOW VARIABLES has the first 1024 characters of it."""
        server.execute("CREATE DATABASE crowded", "CREATE TABLE crowded.rows (id INT PRIMARY KEY)")
        others = ",".join(f"{UUID(int=number)}:1-1000" for number in range(1, 41))
        server.query(f"SET GLOBAL gtid_purged = '+{others}'")
        drain(server, tmp_path, start="latest")
        server.query("INSERT INTO crowded.rows VALUES (1)")
        drain(server, tmp_path)
        assert Changes(tmp_path).read("crowded", "rows")["id"].to_pylist() == [1]
        position = latest_commit(tmp_path).position
        assert position is not None and position.gtid_set is not None
        assert MysqlGtidSet.parse(position.gtid_set) == MysqlGtidSet.parse(_executed(server) or "")

    def test_transactions_of_several_sources_that_are_not_finished(
        self, server: Server, tmp_path: Path
    ) -> None:
        """As a replica applies them; the server lists who owns them without anything between sources."""
        server.execute("CREATE DATABASE owned", "CREATE TABLE owned.rows (id INT PRIMARY KEY)")
        start = "{}:{}".format(*end_of_binlog(server))
        server.query("INSERT INTO owned.rows VALUES (1)")
        drain(server, tmp_path, start=start)
        gtids = [f"{UUID(int=number)}:{gtid}" for number, gtid in ((1, "7"), (2, "red:8"), (2, "red:9"))]
        with ExitStack() as sessions:
            for gtid in gtids:
                cursor = sessions.enter_context(server.connect()).cursor()
                cursor.execute(f"SET gtid_next = '{gtid}'")
                cursor.execute("BEGIN")
            with Connection.open(server.host, server.port, server.user, server.password) as connection:
                known = server_queries.executed_or_owned(connection)
            drain(server, tmp_path)
        assert known.covers(MysqlGtidSet.parse(",".join(gtids)))

    def test_a_set_that_the_server_never_had_is_refused(self, server: Server, tmp_path: Path) -> None:
        ((uuid,),) = server.query("SELECT @@server_uuid")
        executed = _executed(server)
        ended = run_command(*command_line(server, tmp_path, start=f"gtid:{executed},{uuid}:1-999999"))
        assert ended.status == 1
        assert "does not have transactions" in ended.sentence


def test_gtid_sets_of_mariadb(mariadb118: Server, tmp_path: Path) -> None:
    mariadb118.execute(
        "DROP DATABASE IF EXISTS by_gtid",
        "CREATE DATABASE by_gtid",
        "CREATE TABLE by_gtid.rows (id INT PRIMARY KEY)",
        "INSERT INTO by_gtid.rows VALUES (1)",
        "SET gtid_domain_id = 7",
        "INSERT INTO by_gtid.rows VALUES (2)",
    )
    executed = _executed(mariadb118)
    mariadb118.execute(
        "INSERT INTO by_gtid.rows VALUES (3)",
        "SET gtid_domain_id = 0",
        "INSERT INTO by_gtid.rows VALUES (4)",
    )
    drain(mariadb118, tmp_path, start=f"gtid:{executed}")
    drain(mariadb118, tmp_path)
    assert Changes(tmp_path).read("by_gtid", "rows")["id"].to_pylist() == [3, 4]


def test_a_set_needs_gtids(mysql56: Server, tmp_path: Path) -> None:
    uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
    ended = run_command(*command_line(mysql56, tmp_path, start=f"gtid:{uuid}:1-5"))
    assert ended.status == 1
    assert "needs GTIDs" in ended.sentence
