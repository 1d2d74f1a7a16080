"""Metrics and probes of an engine that follows a real server: each is moved by a real cause.

The tests share a server and an engine, and leave the engine ready.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from engine.output.snapshot_requests import request_snapshot
from tests.servers import Server
from tests.support.bit_flips import PacketFlip
from tests.support.engine_run import PATIENCE_SECONDS, EngineRun, command_line, end_of_binlog, wait_until
from tests.support.proxy import Proxy

pytestmark = pytest.mark.server

PASSWORD = "hush, hush 42"
PROBE_SECONDS = 30.0
"""Within this time a probe has to say that a process is stopped."""


DAMAGED = b"damaged on its way"
HELD = b"column_of_an_answer_that_takes_long"


class Way:
    """What becomes of some bytes between server and engine: a row is damaged, an answer is held."""

    def __init__(self) -> None:
        self.is_held = threading.Event()
        self.goes_on = threading.Event()
        self._damage = PacketFlip(lambda payload: DAMAGED in payload, at=-6)

    def __call__(self) -> Callable[[bytes], bytes]:
        """For one connection."""
        damaged = self._damage()

        def passed(data: bytes) -> bytes:
            if HELD in data:
                self.is_held.set()
                self.goes_on.wait(PATIENCE_SECONDS)
            return damaged(data)

        return passed


class Watched:
    """An engine with `--http`, and the log as JSON."""

    def __init__(self, server: Server, out: Path, port: int | None = None) -> None:
        """`port`: of a proxy before the server."""
        arguments = command_line(
            server,
            out,
            user="watcher",
            port=port or server.port,
            tls="disabled",
            http=0,
            log_format="json",
            heartbeat_seconds=0.5,
            commit_interval=0.1,
            on_corrupt="skip",
        )
        self.out = out
        self._server = server
        self.run = EngineRun(arguments, out, PASSWORD)
        self._port = 0

    def log(self) -> list[dict[str, object]]:
        """The lines so far; the engine may be writing another one."""
        return [json.loads(line) for line in self.run.stderr.splitlines(keepends=True) if line.endswith("\n")]

    def events(self, name: str) -> list[dict[str, object]]:
        return [line for line in self.log() if line["event"] == name]

    def get(self, path: str, seconds: float = 10.0) -> tuple[int, str]:
        """Status and content of an answer."""
        if not self._port:
            told = wait_until(lambda: self.events("http"), "address", check=self.run.must_run)
            self._port = int(str(told[0]["url"]).rstrip("/").rpartition(":")[2])
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=seconds)
        with contextlib.closing(connection):
            connection.request("GET", path, headers={"Accept": "application/openmetrics-text; version=1.0.0"})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def metrics(self) -> dict[str, float]:
        """`name`, or `name value-of-label`, without the prefix → value."""
        families = text_string_to_metric_families(self.get("/metrics")[1])  # type: ignore[no-untyped-call]
        return {
            " ".join([sample.name.removeprefix("binlog_engine_"), *sample.labels.values()]): sample.value
            for family in families
            for sample in family.samples
        }

    def wait_for(
        self, fits: Callable[[dict[str, float]], bool], what: str, seconds: float = PATIENCE_SECONDS
    ) -> dict[str, float]:
        """The metrics, once they fit."""

        def fitting() -> dict[str, float] | None:
            seen = self.metrics()
            return seen if fits(seen) else None

        return wait_until(fitting, what, seconds, check=self.run.must_run)

    def wait_until_well(self) -> dict[str, float]:
        """Wait until it is ready, and knows that it has everything that is in the server's binlog now."""

        def is_well() -> bool:
            # Asked each time: MariaDB writes a checkpoint into a new file a moment after it has begun it.
            file, position = end_of_binlog(self._server)
            status = json.loads(self.get("/status.json")[1])
            figures = status["figures"]
            return (
                status["ready"]
                and figures["position"] == {"file": file, "position": position}
                and (figures["lag_seconds"], figures["server"]["behind_bytes"]) == (0, 0)
                and figures["output"]["commit"] == self.run.log.latest_version()
            )

        wait_until(is_well, "word that it has everything", check=self.run.must_run)
        return self.metrics()


@contextlib.contextmanager
def stopped(*pids: int) -> Iterator[None]:
    """The processes do not run inside the block."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def prepare(server: Server) -> None:
    is_mariadb = server.flavor.startswith("mariadb")
    monitor = "BINLOG MONITOR" if is_mariadb else "REPLICATION CLIENT"
    server.execute(
        "CREATE DATABASE watched",
        "CREATE TABLE watched.t (id INT PRIMARY KEY AUTO_INCREMENT, note LONGTEXT)",
        f"CREATE USER watcher@'%' IDENTIFIED BY '{PASSWORD}'",
        f"GRANT REPLICATION SLAVE, {monitor} ON *.* TO watcher@'%'",
        "GRANT SELECT ON watched.* TO watcher@'%'",
    )


def insert(server: Server, rows: int, size: int = 10) -> None:
    server.execute(*[f"INSERT INTO watched.t (note) VALUES (REPEAT('x', {size}))"] * rows)


@pytest.fixture(scope="module")
def server(own_server: Callable[..., Server]) -> Server:
    server = own_server("mysql-9.7", {})
    prepare(server)
    insert(server, 1)
    return server


@pytest.fixture(scope="module")
def way() -> Way:
    return Way()


@pytest.fixture(scope="module")
def shared_engine(server: Server, way: Way, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    with Proxy((server.host, server.port), damage=way) as proxy:
        engine = Watched(server, tmp_path_factory.mktemp("watched") / "out", proxy.port)
        with engine.run:
            yield engine


@pytest.fixture
def engine(server: Server, shared_engine: Watched) -> Watched:
    """Well, with everything that the server has."""
    shared_engine.wait_until_well()
    return shared_engine


def test_rows_are_counted_and_an_idle_stream_has_no_lag(server: Server, engine: Watched) -> None:
    before = engine.metrics()
    insert(server, 25)
    after = engine.wait_until_well()
    assert after["table_rows_total watched.t"] - before["table_rows_total watched.t"] == 25
    assert after["rows_total"] - before["rows_total"] == 25
    assert after["transactions_total"] - before["transactions_total"] == 25
    assert after["table_bytes_total watched.t"] > before["table_bytes_total watched.t"]
    assert after["commit_seconds_count"] > before["commit_seconds_count"]
    assert after["last_commit"] > before["last_commit"]
    # The network process may report the rows only now; then several heartbeats come.
    more = 25 * 100
    sent = engine.wait_for(
        lambda seen: seen["received_bytes_total"] > before["received_bytes_total"] + more, "rows"
    )["received_bytes_total"]
    idle = engine.wait_for(lambda seen: seen["received_bytes_total"] > sent + 100, "heartbeats")
    assert (idle["lag_seconds"], idle["behind_bytes"], idle["last_commit"]) == (0, 0, after["last_commit"])
    assert idle["process_resident_bytes sink"] > 1 << 20
    free = idle["disk_free_bytes"]
    on_disk = os.statvfs(engine.out)
    # Others use the disk, too.
    assert abs(free - on_disk.f_bavail * on_disk.f_frsize) < on_disk.f_blocks * on_disk.f_frsize / 20


@pytest.mark.parametrize("role", ["network", "dec-0", "sink"])
def test_a_stopped_process_is_noticed(role: str, server: Server, engine: Watched) -> None:
    before = engine.metrics()
    name = role.replace("dec", "decoder")
    with stopped(engine.run.process(role)):
        # Enough for all slots, so that the network process has to wait for a stopped sink.
        insert(server, 30, size=1_000_000)
        wait_until(lambda: engine.get("/readyz")[0] == 503, "word of it", PROBE_SECONDS)
        late = engine.wait_for(
            lambda seen: seen["lag_seconds"] > 2 and seen["behind_bytes"] > 1_000_000, "lag", PROBE_SECONDS
        )
        assert late["ready"] == 0
        assert late[f"process_silent_seconds {name}"] > 2
        if role == "dec-0":
            wait_until(lambda: engine.get("/livez")[0] == 503, "word of it", PROBE_SECONDS)
            status, problem = engine.get("/livez")
            assert status == 503 and problem.startswith(f"the {name} process"), problem
    after = engine.wait_until_well()
    rows = "table_rows_total watched.t"
    assert after[rows] == before[rows] + 30
    assert after["retention_headroom_bytes"] > before["retention_headroom_bytes"] + 30_000_000
    if role == "sink":
        assert after["back_pressure_seconds_total"] > before["back_pressure_seconds_total"] + 1


def is_less(metric: str, than: float, seen: dict[str, float]) -> bool:
    return seen[metric] < than


def test_a_process_that_waits_for_an_answer_of_the_server_answers(
    server: Server, engine: Watched, way: Way
) -> None:
    unlogged = f"CREATE TABLE watched.unlogged ({HELD.decode()} INT)"
    server.execute("SET sql_log_bin = 0", unlogged, "SET sql_log_bin = 1")
    server.execute("INSERT INTO watched.unlogged VALUES (1)")
    assert way.is_held.wait(PATIENCE_SECONDS)
    silent = "process_silent_seconds network"
    for _ in range(2):
        before = engine.wait_for(lambda seen: seen[silent] > 0.5, "pause")[silent]
        engine.wait_for(partial(is_less, silent, before), "report", PROBE_SECONDS)
    assert "table_rows_total watched.unlogged" not in engine.metrics()
    assert engine.get("/livez")[0] == 200
    way.goes_on.set()
    assert engine.wait_until_well()["table_rows_total watched.unlogged"] == 1


def test_a_stopped_supervisor_does_not_answer(engine: Watched) -> None:
    with stopped(engine.run.pid), pytest.raises(TimeoutError):
        engine.get("/livez", seconds=0.5)
    assert engine.get("/livez") == (200, "ok\n")


def test_purged_binlogs_shrink_the_headroom(server: Server, engine: Watched) -> None:
    server.execute("FLUSH BINARY LOGS")
    insert(server, 1)
    engine.wait_until_well()
    before = engine.wait_for(lambda seen: seen["retention_headroom_bytes"] > 1000, "headroom")
    assert before["retention_headroom_seconds"] > 0
    last = server.query("SHOW BINARY LOGS")[-1][0]
    server.execute(f"PURGE BINARY LOGS TO '{last}'")
    after = engine.wait_for(lambda seen: seen["retention_headroom_bytes"] < 1000, "smaller headroom")
    assert after["retention_headroom_seconds"] < before["retention_headroom_seconds"]
    assert after["behind_bytes"] == 0


def test_a_table_is_unsure_until_its_definition_is_known(server: Server, engine: Watched) -> None:
    before = engine.metrics()["unsure_tables"]
    server.execute("CREATE TABLE watched.altered (id INT)")
    server.execute("SET sql_log_bin = 0", "ALTER TABLE watched.altered ADD c INT", "SET sql_log_bin = 1")
    server.execute("ALTER TABLE watched.altered DROP c")
    engine.wait_for(lambda seen: seen["unsure_tables"] == before + 1, "table that is not certain")
    server.execute("INSERT INTO watched.altered VALUES (1)")
    engine.wait_for(lambda seen: seen["unsure_tables"] == before, "definition")


def test_a_damaged_event_that_is_skipped_is_counted(server: Server, engine: Watched) -> None:
    before = engine.metrics()
    skipped = "skipped_corrupt_events_total"
    server.execute(f"INSERT INTO watched.t (note) VALUES ('{DAMAGED.decode()}')")
    engine.wait_for(lambda seen: seen[skipped] == before[skipped] + 1, "skipped event")
    rows = "table_rows_total watched.t"
    assert engine.wait_until_well()[rows] == before[rows]
    # The snapshot in another test reads the rows that the stream has.
    server.execute(f"DELETE FROM watched.t WHERE note = '{DAMAGED.decode()}'")


def test_a_snapshot_is_counted(server: Server, engine: Watched) -> None:
    before = engine.metrics()
    (count,) = server.query("SELECT COUNT(*) FROM watched.t")[0]
    request_snapshot(engine.out, ("watched.t",))
    after = engine.wait_for(lambda seen: seen["snapshot_tables done"] == 1, "snapshot")
    rows = "table_rows_total watched.t"
    # One more row says that a snapshot begins.
    assert after[rows] - before[rows] == int(count) + 1
    assert after["snapshot_tables running"] == after["snapshot_rows"] == 0


def test_a_lost_connection_is_counted_and_logged(server: Server, engine: Watched) -> None:
    before = engine.metrics()
    dumps = server.query("SELECT ID FROM information_schema.PROCESSLIST WHERE COMMAND LIKE 'Binlog Dump%'")
    server.execute(*[f"KILL {number}" for (number,) in dumps])
    engine.wait_for(lambda seen: seen["reconnects_total"] > before["reconnects_total"], "reconnect")
    insert(server, 1)
    after = engine.wait_until_well()
    assert after["rows_total"] > before["rows_total"]
    assert after["warnings_total warning"] > before["warnings_total warning"]
    (*_, retry) = engine.events("retry")
    assert retry["level"] == "warning" and float(str(retry["pause_seconds"])) <= 0.5
    status = json.loads(engine.get("/status.json")[1])
    assert status["figures"]["notices"][-1]["message"] == retry["message"]
    attempts = [line["attempt"] for line in engine.events("run_started")]
    assert attempts == list(range(1, len(attempts) + 1)) and len(attempts) == 1 + after["reconnects_total"]


def test_no_answer_and_no_line_has_the_password(engine: Watched) -> None:
    for path in ("/", "/metrics", "/status.json", "/livez", "/readyz"):
        assert PASSWORD not in engine.get(path)[1]
    assert PASSWORD not in engine.run.stderr
    lines = engine.log()
    assert len({line["run"] for line in lines}) == 1
    assert all({"time", "level", "event", "message"} <= set(line) for line in lines)


def test_mariadb(own_server: Callable[..., Server], tmp_path: Path) -> None:
    """The same from start to end, with a user that may not ask for the end of the binlog at first."""
    server = own_server("mariadb-11.8", {})
    prepare(server)
    server.execute("REVOKE BINLOG MONITOR ON *.* FROM watcher@'%'")
    insert(server, 3)
    # The server removes binlogs when there are many bytes of them, with a replica or without.
    most = 100_000
    server.execute(
        f"SET GLOBAL max_binlog_total_size = {most}",
        "SET GLOBAL max_binlog_size = 20000",
        "SET GLOBAL slave_connections_needed_for_purge = 0",
    )
    engine = Watched(server, tmp_path / "out")
    with engine.run:
        seen = engine.wait_for(
            lambda seen: seen.get("lag_seconds") == 0.0 and seen["warnings_total warning"] > 0, "warning"
        )
        assert "behind_bytes" not in seen
        (warning,) = engine.events("binlog_end_unknown")
        assert "privilege" in str(warning["message"])
        server.execute("GRANT BINLOG MONITOR ON *.* TO watcher@'%'")
        seen = engine.wait_until_well()
        assert seen["table_rows_total watched.t"] == 3
        headroom = seen["retention_headroom_bytes"]
        assert 100 < headroom < most
        # An odd number: after each two rows another file begins.
        insert(server, 21, size=most // 10)
        # Less than was written, once the server has been asked again.
        engine.wait_for(lambda seen: headroom + most / 4 < seen["retention_headroom_bytes"], "load")
        engine.wait_until_well()
        # It removes binlogs when it begins another one, but none that the engine has not received.
        insert(server, 2, size=most // 10)
        engine.wait_for(lambda seen: seen["retention_headroom_bytes"] < 1.5 * most, "removed binlogs")
        after = engine.wait_until_well()
        assert after["table_rows_total watched.t"] == 26
        ended = engine.run.stop()
    assert ended.status == 0
    *_, last = map(json.loads, ended.stderr.splitlines())
    assert (last["event"], last["rows"], last["stopped"]) == ("ended", after["rows_total"], True)
