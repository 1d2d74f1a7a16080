"""A lasting connection: after any failure of the server the engine reconnects, or says why not.

What it comes back with is compared with what the server has: each change row must fit what came before it.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pymysql.cursors import DictCursor

from engine.net.client import dump_requests
from engine.net.client.connection import Connection
from engine.output.reader import Changes
from tests.servers import GTIDS, Server
from tests.support.committed import assert_sound
from tests.support.engine_run import (
    EngineRun,
    command_line,
    drain,
    end_of_binlog,
    follow,
    run_command,
    wait_until,
)
from tests.support.load import Load, create_table, replayed, selected
from tests.support.proxy import Proxy

pytestmark = [pytest.mark.server, pytest.mark.slow, pytest.mark.fewer_servers]

SAFE = {"innodb_flush_log_at_trx_commit": "1", "sync_binlog": "1"}
"""What a server needs to have after a crash what its binlog has."""
KINDS = {
    "mysql-9.7": ("mysql-9.7", GTIDS),
    "mysql-9.7 without GTIDs": ("mysql-9.7", {"gtid_mode": "OFF"}),
    "mysql-8.0": ("mysql-8.0", GTIDS),
    "mysql-5.7": ("mysql-5.7", {}),
    "mysql-5.6": ("mysql-5.6", {}),
    "mariadb-11.8": ("mariadb-11.8", {}),
}
DUMPS = "SELECT id FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%%'"


@pytest.fixture(scope="module", params=KINDS)
def source(request: pytest.FixtureRequest, own_server: Callable[..., Server]) -> Server:
    """A server of the module's own, since these tests stop it and reset its binlogs."""
    flavor, options = KINDS[request.param]
    return own_server(flavor, SAFE | options)


@pytest.fixture
def start(source: Server) -> str:
    """Where the binlog ends before the tests' table is made anew."""
    file, position = end_of_binlog(source)
    create_table(source, "lasting")
    return f"{file}:{position}"


def following(server: Server, out: Path, **settings: object) -> EngineRun:
    """An engine that notices soon and comes back soon."""
    return follow(server, out, **{"heartbeat_seconds": 0.5, "retry_seconds": 60, **settings})


def wait_for_trouble(engine: EngineRun, times: int = 1) -> None:
    """Wait until the engine has said that often that it will try again."""
    wait_until(lambda: engine.stderr.count("trying again") >= times, "trouble", check=lambda: None)


def assert_all_there(server: Server, out: Path) -> None:
    assert_sound(out)
    assert replayed(out, "lasting") == selected(server, "lasting")


def restart(server: Server) -> None:
    server.restart()


def crash(server: Server) -> None:
    server.kill()
    server.start()


def kill_connection(server: Server) -> None:
    server.query(f"KILL {dump_thread(server)}")


def kill_query(server: Server) -> None:
    server.query(f"KILL QUERY {dump_thread(server)}")


def dump_thread(server: Server) -> int:
    ((thread,),) = wait_until(lambda: server.query(DUMPS), "dump thread")
    return thread


@pytest.mark.parametrize("trouble", [restart, crash, kill_connection, kill_query])
def test_it_comes_back(source: Server, start: str, tmp_path: Path, trouble: Callable[[Server], None]) -> None:
    with following(source, tmp_path, start=start) as engine:
        with Load(source, "lasting"):
            engine.wait_for_commits(2)
            trouble(source)
            wait_for_trouble(engine)
        with Load(source, "lasting"):
            engine.wait_for_commits(2)
        engine.catch_up(source)
        assert engine.stop().status == 0
    assert_all_there(source, tmp_path)


def test_rotations_in_quick_succession(source: Server, start: str, tmp_path: Path) -> None:
    with following(source, tmp_path, start=start) as engine, Load(source, "lasting") as load:
        for _ in range(10):
            source.query("FLUSH BINARY LOGS")
            engine.wait_for_commits(1)
        load.stop()
        engine.catch_up(source)
        ended = engine.stop()
    assert (ended.status, "trying again" in ended.stderr) == (0, False)
    assert_all_there(source, tmp_path)


def reset(server: Server) -> None:
    server.query("RESET BINARY LOGS AND GTIDS" if server.flavor == "mysql-9.7" else "RESET MASTER")


@pytest.mark.parametrize("load_goes_on", [False, True])
def test_binlogs_that_are_reset_under_a_dump_are_noticed_and_refused(
    source: Server, start: str, tmp_path: Path, load_goes_on: bool
) -> None:
    if load_goes_on:
        # Then the next reset gives a file of the same name, and the same GTIDs again before long.
        reset(source)
        create_table(source, "lasting")
        start = "earliest"
    with (
        following(source, tmp_path, start=start, retry_seconds=20) as engine,
        Load(source, "lasting") as load,
    ):
        engine.wait_for_commits(2)
        if not load_goes_on:
            load.stop()
            engine.catch_up(source)
        # The engine knows a file again by the second in which it was begun.
        time.sleep(1.0)
        transactions = load.transactions
        reset(source)
        if load_goes_on:
            load.wait_for(transactions + 20)
        ended = engine.wait()
    again = run_command(*command_line(source, tmp_path))
    for refused in (ended, again):
        assert refused.status == 1
        assert "binlogs" in refused.sentence
        assert "were reset" in refused.sentence
        assert "empty" in refused.sentence


def test_a_server_that_hangs_up_on_a_slow_sink(own_server: Callable[..., Server], tmp_path: Path) -> None:
    """While nothing is taken the server's writes wait, and it gives up after `net_write_timeout`."""
    # With column names in the binlog the engine leaves the server's timeout as it is.
    options = {"net_write_timeout": "2", "binlog_row_image": "FULL", "binlog_row_metadata": "FULL"}
    server = own_server("mysql-9.7", SAFE | GTIDS | options)
    file, position = end_of_binlog(server)
    create_table(server, "lasting")
    with following(server, tmp_path, start=f"{file}:{position}") as engine:
        engine.catch_up(server)
        sink = engine.process("sink")
        os.kill(sink, signal.SIGSTOP)
        # More than the window and all buffers of both sides hold.
        server.execute("CREATE TABLE lasting.wide (id INT PRIMARY KEY, content LONGBLOB)")
        for number in range(24):
            server.query("INSERT INTO lasting.wide VALUES (%s, REPEAT('x', 8 << 20))", number)
        wait_until(lambda: not server.query(DUMPS), "end of the dump thread")
        os.kill(sink, signal.SIGCONT)
        wait_for_trouble(engine)
        engine.catch_up(server)
        assert engine.stop().status == 0
    assert_sound(tmp_path)
    assert sorted(Changes(tmp_path).read("lasting", "wide")["id"].to_pylist()) == list(range(24))


def test_what_came_while_the_process_was_stopped_is_no_silence(mysql97: Server, tmp_path: Path) -> None:
    """It was longer than a server may be silent, in a wait that only many bytes end, and few have come."""
    start = "{}:{}".format(*end_of_binlog(mysql97))
    create_table(mysql97, "lasting")
    mysql97.execute("CREATE TABLE lasting.small (id INT AUTO_INCREMENT PRIMARY KEY)")
    over = threading.Event()

    def insert() -> None:
        with mysql97.connect() as connection, connection.cursor() as cursor:
            while not over.wait(0.004):
                cursor.execute("INSERT INTO lasting.small VALUES ()")

    load = threading.Thread(target=insert)
    with following(mysql97, tmp_path, start=start) as engine:
        load.start()
        try:
            for _ in range(4):
                engine.wait_for_commits(2)
                network = engine.process("network")
                os.kill(network, signal.SIGSTOP)
                time.sleep(2.5)
                os.kill(network, signal.SIGCONT)
        finally:
            over.set()
            load.join()
        engine.catch_up(mysql97)
        ended = engine.stop()
    assert ended.status == 0
    assert "trying again" not in ended.stderr


@pytest.fixture(scope="module")
def servers(own_server: Callable[..., Server]) -> tuple[Server, Server]:
    """Two that know nothing of GTIDs."""
    one, other = (own_server("mysql-9.7", {"gtid_mode": "OFF"}) for _ in range(2))
    return one, other


class TestAnotherServer:
    """Two servers take turns at one address, which is a proxy's."""

    @pytest.fixture
    def proxy(self, servers: tuple[Server, Server]) -> Iterator[Proxy]:
        with Proxy((servers[0].host, servers[0].port)) as proxy:
            yield proxy

    def test_under_the_same_position_is_refused(
        self, servers: tuple[Server, Server], proxy: Proxy, tmp_path: Path
    ) -> None:
        one, other = servers
        create_table(one, "lasting")
        with following(one, tmp_path, port=proxy.port) as engine:
            engine.catch_up(one)
            proxy.target = (other.host, other.port)
            proxy.cut()
            ended = engine.wait()
        assert ended.status == 1
        assert "another server" in ended.sentence
        uuids = [server.query("SELECT @@server_uuid")[0][0] for server in servers]
        assert all(uuid in ended.sentence for uuid in uuids)

    def test_beside_the_stream_is_not_asked(
        self, servers: tuple[Server, Server], proxy: Proxy, tmp_path: Path
    ) -> None:
        """As when the address of a name changes, or a load balancer has connections go to several servers."""
        one, other = servers
        settings: dict[str, object] = {"port": proxy.port, "start": "{}:{}".format(*end_of_binlog(one))}
        with following(one, tmp_path, **settings) as engine:
            one.execute("CREATE DATABASE beside")
            engine.catch_up(one)
            proxy.target = (other.host, other.port)
            # The connection for questions, which was opened while the address was the server's.
            for (number,) in one.query(
                "SELECT id FROM information_schema.processlist WHERE command = 'Sleep'"
            ):
                one.execute(f"KILL {number}")
            one.execute("SET sql_log_bin = 0", "CREATE TABLE beside.rows (a INT)", "SET sql_log_bin = 1")
            one.execute("INSERT INTO beside.rows VALUES (1)")
            ended = engine.wait()
        assert "another server answers at" in ended.stderr
        assert "another server" in ended.sentence
        drain(one, tmp_path)
        assert Changes(tmp_path).read("beside", "rows")["a"].to_pylist() == [1]

    def test_a_position_that_was_purged_is_refused(
        self, servers: tuple[Server, Server], tmp_path: Path
    ) -> None:
        server = servers[0]
        create_table(server, "lasting")
        drain(server, tmp_path)
        server.flush_binlog()
        server.flush_binlog()
        server.query("PURGE BINARY LOGS TO %s", server.binlogs()[-1].name)
        ended = run_command(*command_line(server, tmp_path))
        assert ended.status == 1
        assert "purged" in ended.sentence
        assert "Traceback" not in ended.stderr


def test_a_server_that_stays_away(mysql97: Server, tmp_path: Path) -> None:
    """The engine stops after the last try, and at once when asked to between two tries."""
    file, position = end_of_binlog(mysql97)
    mysql97.execute("CREATE DATABASE IF NOT EXISTS away", "DROP DATABASE away")
    with Proxy((mysql97.host, mysql97.port)) as proxy:
        settings = {"port": proxy.port, "start": f"{file}:{position}"}
        with (
            following(mysql97, tmp_path / "one", retry_seconds=1, **settings) as one,
            following(mysql97, tmp_path / "other", retry_seconds=600, **settings) as other,
        ):
            for engine in (one, other):
                engine.catch_up(mysql97)
            proxy.shut()
            ended = one.wait()
            wait_for_trouble(other)
            stopped = other.stop()
    assert (ended.status, stopped.status) == (1, 0)
    assert "trying again" in ended.stderr
    assert f"{mysql97.host}:{proxy.port}" in ended.sentence
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("flavor", ["mysql-9.7", "mariadb-11.8"])
def test_two_engines_with_one_server_id(
    flavor: str, shared_server: Callable[[str], Server], tmp_path: Path
) -> None:
    """The second is refused, and the first continues undisturbed."""
    server = shared_server(flavor)
    file, position = end_of_binlog(server)
    with following(server, tmp_path / "first", server_id=4242, start=f"{file}:{position}") as first:
        server.execute("CREATE DATABASE IF NOT EXISTS one_id", "DROP DATABASE one_id")
        first.wait_for_commit(lambda commit: commit.last_seq > 0)
        second = run_command(*command_line(server, tmp_path / "second", server_id=4242, start="latest"))
        assert second.status == 1
        assert "server id 4242 is in use by another replica" in second.sentence
        assert "--server-id" in second.sentence
        server.execute("CREATE DATABASE IF NOT EXISTS one_id", "DROP DATABASE one_id")
        first.catch_up(server)
        assert "trying again" not in first.stop().stderr


@pytest.mark.parametrize("flavor", ["mysql-9.7", "mysql-8.0", "mysql-5.6", "mariadb-11.8"])
def test_the_server_shows_its_replica(
    flavor: str, shared_server: Callable[[str], Server], tmp_path: Path
) -> None:
    server = shared_server(flavor)
    with following(server, tmp_path, server_id=4243, start="latest"):

        def shown() -> dict[str, object] | None:
            with server.connect(cursorclass=DictCursor) as connection, connection.cursor() as cursor:
                cursor.execute("SHOW REPLICAS" if flavor == "mysql-9.7" else "SHOW SLAVE HOSTS")
                rows = [{name.lower(): cell for name, cell in row.items()} for row in cursor.fetchall()]
                return next((row for row in rows if row["server_id"] == 4243), None)

        replica = wait_until(shown, "replica")

        def dumps() -> bool:
            rows = server.query(
                "SELECT command FROM information_schema.processlist WHERE host LIKE %s",
                f"%:{replica['port']}",
            )
            return [command.startswith("Binlog Dump") for (command,) in rows] == [True]

        # The engine asks for the dump after it has registered.
        wait_until(dumps, "dump")
    if flavor.startswith("mysql"):
        assert replica["host"] == socket.gethostname()[:60]
        assert uuid.UUID(str(replica.get("replica_uuid") or replica["slave_uuid"])).version == 5
    else:
        # It has no place for the UUID.
        assert re.fullmatch(re.escape(socket.gethostname()[:51]) + "/[0-9a-f]{8}", str(replica["host"]))


def test_a_server_that_still_lists_the_last_run(mariadb118: Server, tmp_path: Path) -> None:
    """As after a loss of the network, in which its connection ended on one side only."""
    server = mariadb118
    file, position = end_of_binlog(server)
    settings: dict[str, object] = {"server_id": 4244, "start": f"{file}:{position}"}
    server.execute("CREATE DATABASE IF NOT EXISTS listed_still", "DROP DATABASE listed_still")
    with following(server, tmp_path, **settings) as engine:
        engine.catch_up(server)
        (host,) = (row[1] for row in server.query("SHOW SLAVE HOSTS") if row[0] == 4244)
        engine.stop()
    server.execute("CREATE DATABASE IF NOT EXISTS listed_still", "DROP DATABASE listed_still")
    with Connection.open(server.host, server.port, server.user) as lost:
        dump_requests.register(lost, 4244, host, 4711)
        drain(server, tmp_path, **settings)
