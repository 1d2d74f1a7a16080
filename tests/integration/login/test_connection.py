"""Connections: to every real server with every way to log in, and to scripted ones that misbehave."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from engine.config.tls import Tls, TlsMode
from engine.errors import ConnectionFailed, EngineError
from engine.net.client.connection import Connection
from engine.net.client.refusals import Refusal
from engine.net.protocol import auth, public_keys
from engine.net.protocol.capabilities import Capability, ServerStatus
from engine.net.protocol.handshake import Greeting, build_auth_switch, build_greeting, parse_response
from engine.net.protocol.packets import Ok, PacketJoiner, ServerError, build_err, build_ok, frame
from engine.net.protocol.wire import ProtocolError
from tests.servers import Server

PASSWORD = "s3cret 'ü\\"
CAPABILITIES = Capability.PROTOCOL_41 | Capability.SECURE_CONNECTION | Capability.PLUGIN_AUTH
GREETING = Greeting("5.0.96", 7, bytes(range(1, 21)), CAPABILITIES)
OK = build_ok(Ok(status=ServerStatus.AUTOCOMMIT), CAPABILITIES)


def log_in(server: Server, user: str, password: str = PASSWORD, **options: Any) -> Connection:
    return Connection.open(server.host, server.port, user, password, **options)


@pytest.fixture
def full_authentications(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often a password went through RSA."""
    count: list[int] = []
    encrypt = public_keys.encrypt_password

    def counted(*arguments: Any) -> bytes:
        count.append(1)
        return encrypt(*arguments)

    monkeypatch.setattr(public_keys, "encrypt_password", counted)
    return count


@pytest.mark.server
def test_every_server_logs_in_and_answers(server: Server) -> None:
    server.create_replication_user("wire", PASSWORD)
    with log_in(server, "wire", attributes={"engine": "test"}) as connection:
        rows = connection.query("SELECT 1 AS one, NULL AS nothing, 'ä😀' AS text")
        assert rows == [("1", None, "ä😀")]
        assert rows.columns == ("one", "nothing", "text")
        assert connection.query("SELECT version()")[0][0] == connection.greeting.server_version
        assert int(connection.query("SELECT connection_id()")[0][0] or 0) == connection.greeting.connection_id
        assert ("mariadb" in server.flavor) == (connection.greeting.flavor == "mariadb")
        assert PASSWORD not in repr(connection)
        assert PASSWORD not in repr(vars(connection))


@pytest.mark.server
def test_settings_of_the_server_that_sessions_do_not_take_over(server: Server) -> None:
    """Queries see what others have changed since the first one, in the catalog, too, and may read much."""
    columns = "SELECT COUNT(*) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'settings'"
    server.execute("CREATE DATABASE settings", "CREATE TABLE settings.t (id INT PRIMARY KEY)")
    server.execute("SET GLOBAL autocommit = 0, completion_type = 2, max_join_size = 1")
    try:
        with Connection.open(server.host, server.port, server.user) as connection:
            assert connection.query(columns) == [("1",)]
            assert connection.query("SELECT * FROM settings.t") == []
            server.execute("INSERT INTO settings.t VALUES (1), (2)", "CREATE TABLE settings.u (a INT, b INT)")
            assert connection.query(columns) == [("3",)]
            connection.execute("START TRANSACTION")
            assert connection.query("SELECT * FROM settings.t") == [("1",), ("2",)]
            connection.execute("COMMIT")
            assert connection.query("SELECT 1") == [("1",)]
    finally:
        server.execute(
            "SET GLOBAL autocommit = 1, completion_type = DEFAULT, max_join_size = DEFAULT",
            "DROP DATABASE settings",
        )


@pytest.mark.server
def test_a_limit_of_the_server_for_results_does_not_count(server: Server) -> None:
    server.execute("SET GLOBAL sql_select_limit = 1")
    try:
        with Connection.open(server.host, server.port, server.user) as connection:
            assert len(connection.query("SELECT TABLE_NAME FROM information_schema.TABLES")) > 1
            assert len(connection.query("SHOW VARIABLES LIKE 'log_bin%'")) > 1
    finally:
        server.execute("SET GLOBAL sql_select_limit = DEFAULT")


@pytest.mark.server
def test_results_larger_than_a_packet(server: Server) -> None:
    with Connection.open(server.host, server.port, server.user) as connection:
        size = (1 << 24) + 17
        rows = connection.query(f"SELECT REPEAT('x', {size}), 'after'")
        assert rows == [("x" * size, "after")]
        assert connection.query("SELECT 2") == [("2",)]


@pytest.mark.server
def test_a_refused_statement_leaves_the_connection_usable(server: Server) -> None:
    with Connection.open(server.host, server.port, server.user) as connection:
        with pytest.raises(ServerError, match="1064") as caught:
            connection.execute("SELEC 1")
        assert caught.value.sqlstate == "42000"
        assert connection.query("SELECT 3") == [("3",)]


@pytest.mark.server
@pytest.mark.parametrize("mode", ["", "NO_BACKSLASH_ESCAPES"])
def test_quoted_text_comes_back_in_every_sql_mode(server: Server, mode: str) -> None:
    text = "it's a \\ \"test\" \\' with ü"
    with Connection.open(server.host, server.port, server.user) as connection:
        connection.execute(f"SET SESSION sql_mode = '{mode}'")
        assert connection.query(f"SELECT {connection.quote(text)}") == [(text,)]


@pytest.mark.server
def test_unix_socket(server: Server) -> None:
    server.create_replication_user("local", PASSWORD)
    with log_in(server, "local", unix_socket=server.socket) as connection:
        assert connection.query("SELECT 1") == [("1",)]


@pytest.mark.server
def test_caching_sha2_in_full_then_from_the_cache(mysql97: Server, full_authentications: list[int]) -> None:
    mysql97.create_replication_user("cached", PASSWORD, "caching_sha2_password")
    log_in(mysql97, "cached").close()
    assert len(full_authentications) == 1
    log_in(mysql97, "cached").close()
    assert len(full_authentications) == 1


@pytest.mark.server
def test_sha256_password(mysql97: Server, full_authentications: list[int]) -> None:
    mysql97.create_replication_user("sha256", PASSWORD, "sha256_password")
    log_in(mysql97, "sha256").close()
    assert len(full_authentications) == 1


@pytest.mark.server
@pytest.mark.parametrize("flavor", ["mysql-9.7", "mariadb-11.8"])
def test_tls(shared_server: Callable[[str], Server], flavor: str, full_authentications: list[int]) -> None:
    server = shared_server(flavor)
    server.create_replication_user("encrypted", PASSWORD)
    with log_in(server, "encrypted", tls=Tls(TlsMode.REQUIRED)) as connection:
        assert connection.query("SHOW STATUS LIKE 'Ssl_cipher'")[0][1]
    assert not full_authentications
    with pytest.raises(EngineError, match="signed by none of this machine's authorities"):
        log_in(server, "encrypted", tls=Tls(TlsMode.VERIFY_CA))


@pytest.mark.server
def test_tls_where_there_is_none(mysql56: Server) -> None:
    with pytest.raises(EngineError, match="offers no TLS"):
        Connection.open(mysql56.host, mysql56.port, mysql56.user, tls=Tls(TlsMode.REQUIRED))


@pytest.mark.server
@pytest.mark.parametrize(("user", "password"), [("denied", "wrong"), ("denied", ""), ("nobody", PASSWORD)])
def test_denied_logins_are_explained_without_the_password(server: Server, user: str, password: str) -> None:
    server.create_replication_user("denied", PASSWORD)
    with pytest.raises(Refusal, match=f"user '{user}'.*check user and password") as caught:
        log_in(server, user, password)
    assert caught.value.code == 1045
    assert PASSWORD not in str(caught.value)


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ({"host": "127.0.0.1", "port": 1}, "nothing listens on 127.0.0.1:1"),
        ({"host": "no.such.host.invalid"}, "the host name no.such.host.invalid cannot be resolved"),
        ({"host": "x" * 80 + ".invalid"}, "the host name xxx"),
        ({"host": "", "unix_socket": "/no/such.sock"}, "nothing listens on /no/such.sock"),
    ],
)
def test_no_server_there(where: dict[str, Any], says: str) -> None:
    with pytest.raises(ConnectionFailed, match=says):
        Connection.open(**where)


@contextlib.contextmanager
def scripted(*answers: bytes, hangs: bool = False) -> Iterator[tuple[int, list[bytes]]]:
    """A server that sends the first of `answers`, and each other one once it has received something.

    Then it ends its side of the connection, or hangs until the client goes.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def run() -> None:
            client, _ = listener.accept()
            with client, contextlib.suppress(OSError):
                client.sendall(answers[0])
                for answer in answers[1:]:
                    received.append(client.recv(1 << 16))
                    client.sendall(answer)
                if not hangs:
                    client.shutdown(socket.SHUT_WR)
                while client.recv(1 << 16):
                    pass

        received: list[bytes] = []
        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield listener.getsockname()[1], received
        finally:
            thread.join(10)
            assert not thread.is_alive()


def packet(payload: bytes, sequence: int) -> bytes:
    return frame(payload, sequence)[0]


def test_what_follows_the_last_answer_is_handed_over() -> None:
    dump = packet(b"\0first", 1) + packet(b"\0second", 2)[:5]
    with scripted(packet(build_greeting(GREETING), 0), packet(OK, 2), packet(OK, 1) + dump) as (
        port,
        received,
    ):
        connection = Connection.open("127.0.0.1", port, "u")
        connection.execute("DO 1")
        taken, pending = connection.take_over()
        with closing(taken):
            assert pending == dump
            with pytest.raises(ConnectionFailed, match="closed"):
                connection.execute("DO 1")
    joiner = PacketJoiner()
    joiner.sequence = 1
    joiner.feed(received[0])
    assert parse_response(joiner.next() or b"").user == "u"


@pytest.mark.parametrize(
    ("answers", "error", "says"),
    [
        ([b""], ConnectionFailed, "closed the connection|lost"),
        ([b"HTTP/1.1 400 Bad Request\r\n\r\n" * 99], ProtocolError, "does not answer like a MySQL server"),
        ([packet(b"SSH-2.0-OpenSSH_9.2", 0)], ProtocolError, "protocol version 83"),
        ([packet(build_err(ServerError(1040, None, "Too many connections")), 0)], Refusal, "max_connections"),
        ([packet(build_greeting(GREETING), 0), packet(b"\xfe", 2)], EngineError, "before 4"),
        ([packet(build_greeting(GREETING), 0), packet(b"\x01extra", 2)], EngineError, "closed"),
        ([packet(build_greeting(GREETING), 0), packet(OK, 5)], ProtocolError, "packet 5 arrived instead"),
        (
            [packet(build_greeting(GREETING), 0)]
            + [packet(build_auth_switch("mysql_native_password", b"n"), 2 * turn) for turn in range(1, 40)],
            ProtocolError,
            "did not finish",
        ),
    ],
)  # fmt: skip
def test_servers_that_misbehave(
    answers: list[bytes],
    error: type[EngineError],
    says: str,
) -> None:
    with scripted(*answers) as (port, _), pytest.raises(error, match=says):
        Connection.open("127.0.0.1", port, "u", PASSWORD, connect_timeout=5)


def test_a_password_may_have_bytes_that_are_not_text() -> None:
    answers = packet(build_greeting(GREETING), 0), packet(OK, 2)
    with scripted(*answers) as (port, received):
        Connection.open("127.0.0.1", port, "u", b"\xff".decode("utf-8", "surrogateescape")).close()
    joiner = PacketJoiner()
    joiner.sequence = 1
    joiner.feed(received[0])
    assert parse_response(joiner.next() or b"").auth_response == auth.native_scramble(b"\xff", GREETING.nonce)


def test_a_silent_server_times_out() -> None:
    with scripted(b"", hangs=True) as (port, _), pytest.raises(ConnectionFailed, match="stopped answering"):
        Connection.open("127.0.0.1", port, connect_timeout=0.1)


def test_bytes_before_tls_are_refused() -> None:
    greeting = Greeting("5.0.96", 7, GREETING.nonce, CAPABILITIES | Capability.SSL)
    injected = packet(build_greeting(greeting), 0) + packet(OK, 2)
    with scripted(injected) as (port, _), pytest.raises(ProtocolError, match="between the greeting and TLS"):
        Connection.open("127.0.0.1", port, tls=Tls(TlsMode.REQUIRED))


def test_an_answer_that_is_not_a_result_ends_the_connection() -> None:
    answers = packet(build_greeting(GREETING), 0), packet(OK, 2), packet(b"\xfb/etc/passwd", 1)
    with scripted(*answers) as (port, _):
        connection = Connection.open("127.0.0.1", port)
        with pytest.raises(ProtocolError, match="local file"):
            connection.query("SELECT 1")
        with pytest.raises(ConnectionFailed, match="is closed"):
            connection.query("SELECT 1")
