"""What the engine asks of a real server before a dump, and how the server's refusals are reported."""

from __future__ import annotations

import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from engine.binlog.table_definition import ColumnDefinition
from engine.errors import EngineError
from engine.net.client import dump_requests, server_queries, source_facts
from engine.net.client.connection import Connection
from engine.net.client.explained import context_of
from engine.net.client.refusals import Refusal, explain
from engine.net.client.side_connection import SideConnection
from engine.net.client.table_columns import describe_table, describe_tables
from engine.net.protocol import packets
from engine.net.protocol.commands import Replica
from tests.servers import NO_ROW_METADATA, Server, get_server
from tests.support.definitions import definition_of

pytestmark = pytest.mark.server

PASSWORD = "asks a lot"


@pytest.fixture
def connection(server: Server) -> Iterator[Connection]:
    server.create_replication_user("asker", PASSWORD)
    with Connection.open(server.host, server.port, "asker", PASSWORD) as connection:
        yield connection


def open_as(server: Server, privileges: str) -> Connection:
    server.create_replication_user("limited", PASSWORD, privileges=privileges)
    return Connection.open(server.host, server.port, "limited", PASSWORD)


def first_answer(connection: Connection) -> bytes:
    """The first payload of a dump that was asked for."""
    sock, pending = connection.take_over()
    joiner = packets.PacketJoiner()
    joiner.sequence = 1
    joiner.feed(pending)
    with closing(sock):
        while (payload := joiner.next()) is None:
            received = sock.recv(1 << 16)
            assert received
            joiner.feed(received)
    return payload


def test_facts(server: Server, connection: Connection) -> None:
    facts = source_facts.read_facts(connection)
    mariadb = server.flavor.startswith("mariadb")
    assert facts.flavor == ("mariadb" if mariadb else "mysql")
    assert facts.version == server.query("SELECT version()")[0][0]
    assert facts.version.startswith(".".join(map(str, facts.version_tuple)))
    assert (facts.server_id, facts.log_bin, facts.binlog_format) == (1, True, "ROW")
    assert (facts.binlog_checksum, facts.binlog_row_image) == ("CRC32", "FULL")
    uuid = "CONCAT(@@server_uid, '-', @@server_id)" if mariadb else "@@server_uuid"
    assert facts.server_uuid == server.query(f"SELECT {uuid}")[0][0]
    assert (facts.binlog_row_metadata is None) == (server.flavor in NO_ROW_METADATA)
    assert source_facts.check(facts, "db1:3306") == ()


def test_gtid_sets(server: Server, connection: Connection) -> None:
    if not server.has_gtids:
        assert source_facts.read_facts(connection).gtid_set == ""
        return
    before = source_facts.read_facts(connection).gtid_set
    server.execute("CREATE DATABASE IF NOT EXISTS gtid_sets", "DROP DATABASE gtid_sets")
    position = server_queries.current_position(connection)
    assert source_facts.read_facts(connection).gtid_set == position.gtid_set != before
    assert position.gtid_set is not None and "\n" not in position.gtid_set


def test_positions(server: Server, connection: Connection) -> None:
    logs = server_queries.binary_logs(connection)
    assert logs == [(path.name, path.stat().st_size) for path in server.binlogs()]
    position = server_queries.current_position(connection)
    assert (position.file, position.position) == logs[-1]
    at = server_queries.gtid_set_at(connection, position.file, position.position)
    assert at == (position.gtid_set if server.flavor.startswith("mariadb") else None)
    assert server_queries.gtid_set_at(connection, "no'such.000001", 4) is None


def test_a_prepared_dump_begins_and_is_registered(server: Server, connection: Connection) -> None:
    facts = source_facts.read_facts(connection)
    replica_uuid = str(uuid.uuid4())
    dump_requests.prepare_dump(connection, facts, heartbeat_seconds=0.5, replica_uuid=replica_uuid)
    assert connection.query("SELECT @master_heartbeat_period, @source_binlog_checksum") == [
        ("500000000", "CRC32")
    ]
    dump_requests.register(connection, 4711, "engine", 1234)
    mine = Replica(4711, "engine", 1234, replica_uuid)
    if server.flavor.startswith("mysql"):
        assert mine in server_queries.replicas(connection)
        assert server_queries.server_id_holder(connection, 4711, replica_uuid) is None
        assert server_queries.server_id_holder(connection, 4711, "another") == mine
        assert server_queries.server_id_holder(connection, 4712, "another") is None
    dump_requests.start_dump(
        connection, server_queries.binary_logs(connection)[0][0], 4, 4711, non_block=True
    )
    payload = first_answer(connection)
    assert payload[0] == packets.OK_MARKER
    assert payload[5] == 4, "a dump begins with an artificial ROTATE_EVENT"


def test_a_question_after_the_server_has_closed_the_idle_connection(server: Server) -> None:
    side = SideConnection(lambda: Connection.open(server.host, server.port, server.user))
    with closing(side):
        side.ask(lambda connection: connection.execute("SET SESSION wait_timeout = 1"))
        time.sleep(2.5)
        assert side.ask(server_queries.binary_logs)


def test_replicas_seen_from_another_session_of_mariadb(mariadb118: Server) -> None:
    with Connection.open(mariadb118.host, mariadb118.port, mariadb118.user) as connection:
        dump_requests.register(connection, 4713, "engine", 7)
        assert Replica(4713, "engine", 7, None) in server_queries.replicas(connection)
        holder = server_queries.server_id_holder(connection, 4713, "any")
        assert holder is not None and holder.host == "engine"


@pytest.mark.parametrize("privileges", ["SELECT", "REPLICATION CLIENT", "USAGE"])
def test_a_missing_privilege_is_named(server: Server, privileges: str) -> None:
    with open_as(server, privileges) as connection:
        facts = source_facts.read_facts(connection)
        context = context_of(connection)
        with pytest.raises(Refusal, match=r"GRANT REPLICATION SLAVE, .* TO 'limited'@'%' there"):
            dump_requests.prepare_dump(connection, facts, heartbeat_seconds=1, replica_uuid=str(uuid.uuid4()))
            dump_requests.register(connection, 4714)
            dump_requests.start_dump(connection, "", 4, 4714, non_block=True)
            raise explain(packets.parse_err(first_answer(connection)), context)


def test_positions_need_a_privilege(server: Server) -> None:
    with open_as(server, "REPLICATION SLAVE") as connection:
        for ask in (server_queries.binary_logs, server_queries.current_position):
            with pytest.raises(Refusal, match="GRANT REPLICATION SLAVE, REPLICATION CLIENT ON"):
                ask(connection)
        assert server_queries.replicas(connection) is not None


@pytest.mark.parametrize(
    ("file", "position", "says"),
    [
        ("binlog.009999", 4, "does not have binlog.009999 at position 4 any more"),
        ("{last}", 900_000_000, "its file is shorter"),
    ],
)
def test_positions_that_do_not_exist(
    server: Server, connection: Connection, file: str, position: int, says: str
) -> None:
    facts = source_facts.read_facts(connection)
    dump_requests.prepare_dump(connection, facts, heartbeat_seconds=1, replica_uuid=str(uuid.uuid4()))
    file = file.format(last=server_queries.current_position(connection).file)
    context = context_of(connection, file, position, 4715)
    dump_requests.start_dump(connection, file, position, 4715, non_block=True)
    refusal = explain(packets.parse_err(first_answer(connection)), context)
    assert (refusal.code, refusal.retryable) == (1236, False)
    assert says in str(refusal)


def test_a_place_between_events(server: Server, connection: Connection) -> None:
    server.execute("CREATE DATABASE IF NOT EXISTS between_events")
    facts = source_facts.read_facts(connection)
    dump_requests.prepare_dump(connection, facts, heartbeat_seconds=1, replica_uuid=str(uuid.uuid4()))
    position = server_queries.current_position(connection)
    dump_requests.start_dump(connection, position.file, position.position - 1, 4716, non_block=True)
    sock, pending = connection.take_over()
    with closing(sock):
        stream = pending
        while chunk := sock.recv(1 << 16):
            stream += chunk
            if b"HY000" in stream:
                break
    error = packets.parse_err(stream[stream.rindex(b"\xff\xd4\x04") :])
    assert "SHOW BINLOG EVENTS" in str(explain(error, context_of(connection, position.file, 5)))


def test_servers_that_cannot_be_followed() -> None:
    with get_server("mysql-9.7", {"log_bin": None, "skip_log_bin": None}) as server:
        server.create_replication_user("asker", PASSWORD)
        with Connection.open(server.host, server.port, "asker", PASSWORD) as connection:
            with pytest.raises(EngineError, match="writes no binlog"):
                source_facts.check(source_facts.read_facts(connection), "db1:3306")
            with pytest.raises(EngineError, match="writes no binlog"):
                server_queries.current_position(connection)
            with pytest.raises(EngineError, match="writes no binlog"):
                server_queries.binary_logs(connection)


def test_a_binlog_without_positions_is_refused(mariadb118: Server) -> None:
    """MariaDB 12.3 and later can keep it in InnoDB."""
    with Connection.open(mariadb118.host, mariadb118.port, mariadb118.user) as connection:
        facts = source_facts.read_facts(connection)
    source_facts.check(facts, "db1:3306")
    with pytest.raises(EngineError, match="binlog_storage_engine"):
        source_facts.check(replace(facts, binlog_storage_engine="innodb"), "db1:3306")


def test_statement_format_is_a_warning(mysql56: Server) -> None:
    with Connection.open(mysql56.host, mysql56.port, mysql56.user) as connection:
        connection.execute("SET GLOBAL binlog_format = 'MIXED'")
        try:
            (warning,) = source_facts.check(source_facts.read_facts(connection), "db1:3306")
        finally:
            connection.execute("SET GLOBAL binlog_format = 'ROW'")
    assert "binlog_format=MIXED" in warning


MEMBERS = ("a", "b'c", "back\\slash", "new\nline", "é,)", "", '"')


@pytest.mark.parametrize("mode", ["", "NO_BACKSLASH_ESCAPES"])
def test_members_are_what_select_gives(server: Server, connection: Connection, mode: str) -> None:
    with Connection.open(server.host, server.port, server.user) as owner:
        owner.execute(f"SET SESSION sql_mode = '{mode}'")
        owner.execute("CREATE DATABASE IF NOT EXISTS described")
        owner.execute("DROP TABLE IF EXISTS described.members")
        listed = ",".join(owner.quote(member) for member in MEMBERS)
        owner.execute(f"CREATE TABLE described.members (e ENUM({listed}), s SET('x','y'''))")
        owner.execute("INSERT INTO described.members (e) VALUES (1),(2),(3),(4),(5),(6),(7)")
        selected = tuple(row[0] for row in owner.query("SELECT e FROM described.members ORDER BY e + 0"))
    enum, set_ = definition_of(connection, "described", "members").columns
    assert enum.members == selected == MEMBERS
    assert set_.members == ("x", "y'")


def test_columns(server: Server, connection: Connection) -> None:
    virtual = (
        "" if server.flavor == "mysql-5.6" else ", twice INT AS (amount * 2), kept INT AS (amount + 1) STORED"
    )
    server.execute(
        "CREATE DATABASE IF NOT EXISTS described",
        "DROP TABLE IF EXISTS described.`it's`",
        "CREATE TABLE described.`it's` (amount INT UNSIGNED NOT NULL, name VARCHAR(10) CHARACTER SET latin1, "
        f"`bin` VARBINARY(3), id BIGINT, d DOUBLE UNSIGNED, PRIMARY KEY (id, amount){virtual})",
    )
    columns = {column.name: column for column in definition_of(connection, "described", "it's").columns}
    assert list(columns)[:5] == ["amount", "name", "bin", "id", "d"]
    assert columns["name"] == ColumnDefinition(
        name="name",
        column_type="varchar(10)",
        charset="latin1",
        collation="latin1_swedish_ci",
        nullable=True,
        primary_key=None,
        visible=True,
        generated=None,
    )
    assert {name: column.unsigned for name, column in columns.items() if column.unsigned} == {
        "amount": True,
        "d": True,
    }
    assert (columns["id"].primary_key, columns["amount"].primary_key, columns["d"].primary_key) == (
        1,
        2,
        None,
    )
    assert (columns["amount"].nullable, columns["d"].nullable) == (False, True)
    assert (columns["bin"].charset, columns["bin"].data_type) == (None, "varbinary")
    if virtual:
        assert (columns["twice"].generated, columns["kept"].generated) == ("virtual", "stored")
    assert describe_table(connection, "described", "no such table") is None
    for names in (["no such table", "it's", "IT'S"], ["IT'S", "it's"]):
        assert describe_tables(connection, "described", names) == {
            "it's": describe_table(connection, "described", "it's")
        }


HIDDEN = {
    "mysql-9.7": (
        "CREATE TABLE {t} (a INT INVISIBLE, v INT AS (a + 1), INDEX ((a + 1)), INDEX ((a + 2)), b INT)",
        "SET sql_generate_invisible_primary_key = ON",
        "CREATE TABLE {t}_keyless (a INT, b INT)",
        "SET sql_generate_invisible_primary_key = OFF",
    ),
    "mariadb-10.11": (
        "CREATE TABLE {t} (a INT INVISIBLE, v INT AS (a + 1), t TEXT UNIQUE, b INT) WITH SYSTEM VERSIONING",
        "CREATE TABLE {t}_declared (a INT, s TIMESTAMP(6) AS ROW START, e TIMESTAMP(6) AS ROW END, b INT, "
        "PERIOD FOR SYSTEM_TIME (s, e)) WITH SYSTEM VERSIONING",
        "CREATE TABLE {t}_memory (a INT, b INT, UNIQUE (a) USING HASH) ENGINE = MEMORY",
        "CREATE TABLE {t}_key (a INT, b INT, PRIMARY KEY (a) USING HASH, UNIQUE (b) USING HASH)",
    ),
}  # fmt: skip
HIDDEN["mariadb-11.8"] = HIDDEN["mariadb-10.11"]


@pytest.mark.parametrize("flavor", HIDDEN)
def test_the_columns_are_those_of_the_binlog(shared_server: Callable[[str], Server], flavor: str) -> None:
    server = shared_server(flavor)
    server.execute("DROP DATABASE IF EXISTS hidden", "CREATE DATABASE hidden")
    server.execute(*(statement.format(t="hidden.t") for statement in HIDDEN[flavor]))
    server.create_replication_user("asker", PASSWORD)
    with Connection.open(server.host, server.port, "asker", PASSWORD) as connection:
        for (table,) in server.query("SHOW TABLES FROM hidden"):
            server.flush_binlog()
            server.execute(f"INSERT INTO hidden.{table} (a, b) VALUES (1, 2)")
            logged = columns_logged(server)
            described = definition_of(connection, "hidden", table).columns
            assert len(described) == logged, (table, [column.name for column in described])
        tables = [table for (table,) in server.query("SHOW TABLES FROM hidden")]
        assert describe_tables(connection, "hidden", tables) == {
            table: describe_table(connection, "hidden", table) for table in tables
        }


def columns_logged(server: Server) -> int:
    """How many columns the rows of the last binlog file have, by the server's own tool."""
    command = [*server.tool("mysqlbinlog"), "-v", "--base64-output=decode-rows", str(server.flush_binlog())]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return sum(line.startswith("###   @") for line in text.splitlines())
