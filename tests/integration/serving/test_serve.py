"""The archive server with real clients: the servers' own tools, another reader, the engine's client."""

from __future__ import annotations

import re
import select
import socket
import subprocess
import time
import uuid
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.row_event import WriteRowsEvent

from engine.binlog import event_types as t
from engine.binlog.event_types import EventHeader
from engine.binlog.events.mariadb import GtidList
from engine.errors import EngineError
from engine.net.archive_server.server import ReplicationSource
from engine.net.client import dump_requests, server_queries, source_facts
from engine.net.client.connection import Connection
from engine.net.client.refusals import Refusal
from engine.net.client.server_events import read_server_events
from engine.net.protocol import packets
from engine.net.protocol.commands import Command
from engine.net.protocol.packets import PacketJoiner
from tests.servers import Server
from tests.support.binlog_builder import write_binlog

USER, PASSWORD = "archivist", "pass 'wörd"


@pytest.fixture
def small(tmp_path: Path) -> tuple[list[Path], list[bytes]]:
    """Two files without GTIDs, and all their events."""
    paths = [tmp_path / "binlog.000001", tmp_path / "binlog.000002"]
    events = [event for path in paths for event in write_binlog(path, [(t.INTVAR_EVENT, b"x" * 9)] * 3)]
    return paths, events


@pytest.fixture(scope="module")
def archived(
    shared_server: Callable[[str], Server], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], list[Path]]:
    """A server's binlogs, copied away: many small events, one of several packets, in two files."""
    made: dict[str, list[Path]] = {}

    def of_flavor(flavor: str) -> list[Path]:
        if flavor not in made:
            server = shared_server(flavor)
            folder = tmp_path_factory.mktemp(flavor)
            server.flush_binlog()
            begin = len(server.binlogs()) - 1
            server.execute(
                "DROP DATABASE IF EXISTS archived",
                "CREATE DATABASE archived",
                "CREATE TABLE archived.t (id INT PRIMARY KEY, b LONGBLOB)",
                "INSERT INTO archived.t VALUES (1, 'a'), (2, REPEAT('b', 2000000))",
            )
            if flavor != "mysql-5.6":
                server.execute("INSERT INTO archived.t VALUES (3, REPEAT('c', 36000000))")
            server.flush_binlog()
            server.execute_many(
                "INSERT INTO archived.t VALUES (%s, %s)", [(n, f"{n}") for n in range(10, 60)]
            )
            server.flush_binlog()
            copies = []
            for path in server.binlogs()[begin:-1]:
                copies.append(folder / path.name)
                copies[-1].write_bytes(path.read_bytes())
            made[flavor] = copies
        return made[flavor]

    return of_flavor


def fetch(
    tool: list[str], server_port: int, first: str, into: Path, *options: str
) -> subprocess.CompletedProcess[str]:
    """Run a binlog tool against a source; what it says."""
    command = [
        *tool,
        "--no-defaults",
        "--read-from-remote-server",
        "--raw",
        "--to-last-log",
        "--host=127.0.0.1",
        "--protocol=tcp",
        f"--port={server_port}",
        f"--user={USER}",
        f"--result-file={into}/",
        *options,
        first,
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.mark.server
@pytest.mark.parametrize(
    ("tool_of", "written_by"),
    [  # Each tool takes only versions that it knows.
        ("mysql-9.7", "mysql-9.7"),
        ("mysql-9.7", "mysql-5.6"),
        ("mariadb-11.8", "mariadb-11.8"),
        ("mariadb-11.8", "mariadb-10.11"),
        ("mariadb-11.8", "mysql-5.6"),
        ("mariadb-10.11", "mariadb-10.11"),
    ],
)
def test_the_servers_tools_fetch_files_byte_for_byte(
    shared_server: Callable[[str], Server],
    archived: Callable[[str], list[Path]],
    tmp_path: Path,
    tool_of: str,
    written_by: str,
) -> None:
    files = archived(written_by)
    tool = shared_server(tool_of).tool("mysqlbinlog")
    options = [f"--password={PASSWORD}"]
    with ReplicationSource(files, user=USER, password=PASSWORD) as archive:
        said = fetch(tool, archive.port, files[0].name, tmp_path, *options)
    assert said.returncode == 0, said.stderr
    assert len(files) == 2
    for path in files:
        assert (tmp_path / path.name).read_bytes() == path.read_bytes()


@pytest.mark.server
@pytest.mark.parametrize("flavor", ["mariadb-10.11", "mariadb-11.8"])
def test_mariadbs_tool_begins_after_a_gtid(
    shared_server: Callable[[str], Server], archived: Callable[[str], list[Path]], flavor: str
) -> None:
    """It has asked for no heartbeats, and does not know them."""
    files = archived(flavor)
    tool = [*shared_server(flavor).tool("mysqlbinlog"), "--no-defaults", "--read-from-remote-server"]
    tool += ["--host=127.0.0.1", "--protocol=tcp", f"--user={USER}", "--to-last-log"]

    def gtids(port: int, *options: str) -> list[str]:
        command = [*tool, f"--port={port}", *options, files[0].name]
        said = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert said.returncode == 0, said.stderr
        return re.findall(r"\tGTID (\d+-\d+-\d+)", said.stdout)

    with ReplicationSource(files) as source:
        before = source.archive.gtid_state(source.archive.binlogs[0])
        assert isinstance(before, GtidList)
        every = gtids(source.port)
        had = {gtid.partition("-")[0]: gtid for gtid in [*before.gtids, *every[:3]]}
        assert gtids(source.port, f"--start-position={','.join(had.values())}") == every[3:] != []


@pytest.mark.server
@pytest.mark.parametrize("tool_of", ["mysql-9.7", "mariadb-11.8"])
def test_the_servers_tools_are_refused_with_a_wrong_password(
    shared_server: Callable[[str], Server],
    small: tuple[list[Path], list[bytes]],
    tmp_path: Path,
    tool_of: str,
) -> None:
    tool = shared_server(tool_of).tool("mysqlbinlog")
    fetched = tmp_path / "fetched"
    fetched.mkdir()
    with ReplicationSource(small[0], user=USER, password=PASSWORD) as archive:
        said = fetch(tool, archive.port, "binlog.000001", fetched, "--password=wrong")
    assert said.returncode != 0
    assert "Access denied" in said.stderr
    assert not list(fetched.iterdir())


@pytest.mark.server
def test_another_reader_reads_rows(mysql97: Server, tmp_path: Path) -> None:
    mysql97.execute("SET GLOBAL binlog_row_metadata = 'FULL'")
    try:
        mysql97._connection.close()
        mysql97.flush_binlog()
        mysql97.execute(
            "DROP DATABASE IF EXISTS other_reader",
            "CREATE DATABASE other_reader",
            "CREATE TABLE other_reader.t (id INT, name VARCHAR(20))",
            "INSERT INTO other_reader.t VALUES (1, 'one'), (2, 'zwei')",
        )
        path = mysql97.flush_binlog()
    finally:
        mysql97.execute("SET GLOBAL binlog_row_metadata = 'MINIMAL'")
    copy = tmp_path / path.name
    copy.write_bytes(path.read_bytes())
    with ReplicationSource([copy], user=USER, password="ASCII only") as archive:
        stream = BinLogStreamReader(
            {"host": "127.0.0.1", "port": archive.port, "user": USER, "passwd": "ASCII only"},
            server_id=4720,
            log_file=copy.name,
            log_pos=4,
            only_events=[WriteRowsEvent],
            only_schemas=["other_reader"],
        )
        try:
            rows = [row["values"] for event in stream for row in event.rows]
        finally:
            stream.close()
    assert rows == [{"id": 1, "name": "one"}, {"id": 2, "name": "zwei"}]


def dump_to_the_end(port: int, file: str = "", position: int = 4, **login: Any) -> tuple[list[bytes], bytes]:
    """The events that our own client gets, without packets, and the payload that ended them."""
    with Connection.open("127.0.0.1", port, **login) as connection:
        facts = source_facts.read_facts(connection)
        dump_requests.prepare_dump(connection, facts, heartbeat_seconds=1, replica_uuid=str(uuid.uuid4()))
        dump_requests.register(connection, 4721, "test")
        dump_requests.start_dump(connection, file, position, 4721, non_block=True)
        sock, pending = connection.take_over()
    joiner = PacketJoiner()
    joiner.sequence = 1
    joiner.feed(pending)
    events: list[bytes] = []
    with closing(sock):
        while True:
            while (payload := joiner.next()) is not None:
                if payload[0] != packets.OK_MARKER:
                    return events, payload
                events.append(payload[1:])
            received = sock.recv(1 << 16)
            assert received
            joiner.feed(received)


def test_our_own_client_gets_every_event(small: tuple[list[Path], list[bytes]]) -> None:
    paths, events = small
    with ReplicationSource(paths, user=USER, password=PASSWORD) as archive:
        received, end = dump_to_the_end(archive.port, user=USER, password=PASSWORD)
    assert [event for event in received if not EventHeader.parse(event).flags & t.FLAG_ARTIFICIAL] == events
    assert end[0] == packets.EOF_MARKER


def test_our_own_client_learns_about_the_archive(small: tuple[list[Path], list[bytes]]) -> None:
    paths, _ = small
    with ReplicationSource(paths) as archive, Connection.open("127.0.0.1", archive.port) as connection:
        facts = source_facts.read_facts(connection)
        assert (facts.flavor, facts.version_tuple) == ("mysql", (8, 0, 36))
        assert (facts.server_id, facts.binlog_checksum, facts.gtid_set) == (5, "CRC32", "")
        assert source_facts.check(facts, "archive") == ()
        assert server_queries.binary_logs(connection) == [(path.name, path.stat().st_size) for path in paths]
        here = server_queries.current_position(connection)
        assert (here.file, here.position) == (paths[1].name, paths[1].stat().st_size)
        dump_requests.register(connection, 4722, "engine", 7)
        assert [replica.server_id for replica in server_queries.replicas(connection)] == [4722]
        connection.send_command(bytes([Command.PING]))
        connection.read_ok()


@pytest.mark.server
@pytest.mark.parametrize("flavor", ["mysql-9.7", "mariadb-11.8"])
def test_gtids_of_the_archive_are_those_of_the_server(
    shared_server: Callable[[str], Server], flavor: str, tmp_path: Path
) -> None:
    server = shared_server(flavor)
    server.execute("DROP DATABASE IF EXISTS archived_gtids", "CREATE DATABASE archived_gtids")
    with Connection.open(server.host, server.port, server.user) as connection:
        server.flush_binlog()
        server.execute("CREATE TABLE archived_gtids.t (a INT)", "INSERT INTO archived_gtids.t VALUES (1)")
        there = server_queries.current_position(connection)
    copy = tmp_path / there.file
    copy.write_bytes(server.flush_binlog().read_bytes()[: there.position])
    with ReplicationSource([copy]) as archive, Connection.open("127.0.0.1", archive.port) as connection:
        here = server_queries.current_position(connection)
        assert (here.file, here.position) == (there.file, there.position)
        assert source_facts.read_facts(connection).gtid_set == here.gtid_set
        # What MySQL executed before it had binlogs is in none of them.
        assert own_gtids(here.gtid_set, server) == own_gtids(there.gtid_set, server) != []
        if flavor.startswith("mariadb"):
            assert server_queries.gtid_set_at(connection, there.file, there.position) == there.gtid_set
        else:
            # What a run asks that goes on there.
            assert str(server_queries.executed_or_owned(connection)) == here.gtid_set


def own_gtids(gtid_set: str | None, server: Server) -> list[str]:
    """The parts of a GTID set that the server itself made."""
    assert gtid_set is not None
    own = "0-1-" if server.flavor.startswith("mariadb") else server.query("SELECT @@server_uuid")[0][0]
    return [part for part in gtid_set.split(",") if part.startswith(own)]


@pytest.mark.parametrize(("user", "password"), [(USER, "wrong"), (USER, ""), ("other", PASSWORD)])
@pytest.mark.parametrize("version", ["5.6.24", "8.0.36", "10.11.18-MariaDB"])
def test_who_may_not_log_in(tmp_path: Path, version: str, user: str, password: str) -> None:
    write_binlog(tmp_path / "binlog.1", [], version)
    with ReplicationSource([tmp_path / "binlog.1"], user=USER, password=PASSWORD) as archive:
        with pytest.raises(Refusal, match="check user and password"):
            Connection.open("127.0.0.1", archive.port, user, password)
        Connection.open("127.0.0.1", archive.port, USER, PASSWORD).close()


def test_a_user_without_a_password(small: tuple[list[Path], list[bytes]]) -> None:
    with ReplicationSource(small[0], user=USER) as archive:
        Connection.open("127.0.0.1", archive.port, USER).close()
        with pytest.raises(Refusal, match="check user and password"):
            Connection.open("127.0.0.1", archive.port, USER, "something")


def test_a_file_that_was_cut_off_is_served_up_to_there(small: tuple[list[Path], list[bytes]]) -> None:
    paths, events = small
    whole = paths[1].read_bytes()
    paths[1].write_bytes(whole[:-1])
    with ReplicationSource(paths) as archive:
        received, end = dump_to_the_end(archive.port)
    assert received[-1] == events[-2]
    assert "truncated" in packets.parse_err(end).message


def test_a_refused_dump_is_explained(small: tuple[list[Path], list[bytes]]) -> None:
    with ReplicationSource(small[0]) as archive:
        _, end = dump_to_the_end(archive.port, "binlog.000009")
    assert "Could not find first log file name" in packets.parse_err(end).message


def test_an_idle_client_gets_heartbeats(small: tuple[list[Path], list[bytes]]) -> None:
    paths, _ = small
    with ReplicationSource(paths) as archive, Connection.open("127.0.0.1", archive.port) as connection:
        facts = source_facts.read_facts(connection)
        dump_requests.prepare_dump(connection, facts, heartbeat_seconds=0.05, replica_uuid=str(uuid.uuid4()))
        dump_requests.start_dump(connection, paths[1].name, 4, 4723)
        sock, pending = connection.take_over()
        heartbeats: list[int] = []
        joiner, deadline = PacketJoiner(), time.monotonic() + 10
        joiner.sequence = 1
        joiner.feed(pending)
        with closing(sock):
            while len(heartbeats) < 3:
                assert time.monotonic() < deadline
                while (payload := joiner.next()) is not None:
                    header = EventHeader.parse(payload[1:])
                    if header.type_code == t.HEARTBEAT_LOG_EVENT:
                        heartbeats.append(header.next_position)
                assert select.select([sock], [], [], 5)[0]
                joiner.feed(sock.recv(1 << 16))
    assert set(heartbeats) == {paths[1].stat().st_size}


@pytest.mark.parametrize("flavor", ["mysql-5.6", "mysql-9.7"])
def test_the_end_of_an_archive_that_ends_with_a_rotation(
    shared_server: Callable[[str], Server], flavor: str, tmp_path: Path
) -> None:
    """A dump is then in the file that follows, where it can start again, and nothing says otherwise."""
    server = shared_server(flavor)
    copy = tmp_path / server.flush_binlog().name
    copy.write_bytes((server.data_directory / copy.name).read_bytes())
    following = server.binlogs()[-1].name
    with ReplicationSource([copy]) as archive, Connection.open("127.0.0.1", archive.port) as connection:
        end = server_queries.end_of_binlog(connection)
        assert (end.file, end.position) == (following, 4)
        facts = source_facts.read_facts(connection)
        assert list(read_server_events(connection, facts, following, 4, 4724)) == []


def test_the_end_closes_all_connections(small: tuple[list[Path], list[bytes]]) -> None:
    with ReplicationSource(small[0]) as archive:
        idle = Connection.open("127.0.0.1", archive.port)
        waiting = Connection.open("127.0.0.1", archive.port)
        dump_requests.start_dump(waiting, "", 4, 4724)
        silent = socket.create_connection(("127.0.0.1", archive.port))
        assert silent.recv(1)
    with silent:
        while silent.recv(1 << 16):
            pass
    with pytest.raises(EngineError, match=r"closed the connection|lost"):
        idle.query("SELECT 1")


@pytest.mark.parametrize(
    "garbage", [b"GET / HTTP/1.1\r\n\r\n", b"\x05\0\0\x01abcde", b"\xff\xff\xff\x01", bytes(99)]
)
def test_garbage_ends_one_client_and_no_more(small: tuple[list[Path], list[bytes]], garbage: bytes) -> None:
    with ReplicationSource(small[0]) as archive:
        with socket.create_connection(("127.0.0.1", archive.port)) as client:
            client.sendall(garbage)
            client.shutdown(socket.SHUT_WR)
            while client.recv(1 << 16):
                pass
        Connection.open("127.0.0.1", archive.port).close()


def test_unknown_commands_are_refused_and_the_session_goes_on(small: tuple[list[Path], list[bytes]]) -> None:
    with ReplicationSource(small[0]) as archive, Connection.open("127.0.0.1", archive.port) as connection:
        for command in (b"\x16SELECT 1", b"\x63", b"", b"\x15short"):
            connection.send_command(command)
            with pytest.raises(packets.ServerError):
                connection.read_ok()
        assert connection.query("SELECT 1") == [("1",)]


def test_a_port_that_is_taken(small: tuple[list[Path], list[bytes]]) -> None:
    with ReplicationSource(small[0]) as archive, pytest.raises(EngineError, match="choose another port"):
        ReplicationSource(small[0], port=archive.port).__enter__()
