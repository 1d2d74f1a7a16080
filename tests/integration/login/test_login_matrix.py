"""Every real server with every authentication and every TLS mode that it has, and all that is refused."""

from __future__ import annotations

import contextlib
import getpass
import selectors
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from engine.config.tls import Tls, TlsMode
from engine.errors import EngineError
from engine.net.client.connection import Connection
from engine.net.client.refusals import Refusal
from engine.net.protocol.auth import SHA256_REQUEST_PUBLIC_KEY
from engine.net.protocol.capabilities import Capability
from engine.net.protocol.handshake import build_greeting, parse_greeting
from engine.net.protocol.packets import HEADER_SIZE, frame
from tests.servers import FLAVORS, Server
from tests.support.engine_run import wait_until
from tests.support.secured import METHODS, NO_RSA, PASSWORD, Secured, user_of

pytestmark = pytest.mark.server

STRICT = (TlsMode.REQUIRED, TlsMode.VERIFY_CA, TlsMode.VERIFY_IDENTITY)


@pytest.fixture(params=FLAVORS)
def secured(request: pytest.FixtureRequest, secured_of: Callable[[str], Secured]) -> Secured:
    """Each flavor in turn."""
    return secured_of(request.param)


@pytest.mark.parametrize("mode", TlsMode)
@pytest.mark.parametrize(("flavor", "method"), [(f, method) for f in FLAVORS for method in METHODS[f]])
def test_every_method_in_every_mode(
    secured_of: Callable[[str], Secured], flavor: str, method: str, mode: TlsMode
) -> None:
    secured = secured_of(flavor)
    encrypted = mode is not TlsMode.DISABLED
    if (flavor, method) in NO_RSA and not encrypted:
        with pytest.raises(EngineError, match=r"not an RSA key|refuses the login"):
            secured.log_in(user_of(method), mode)
        return
    # The first login fills the server's cache of passwords, the second may be checked against it.
    for _ in range(2):
        with secured.log_in(user_of(method), mode) as connection:
            assert connection.encrypted == encrypted
            assert bool(connection.query("SHOW STATUS LIKE 'Ssl_cipher'")[0][1]) == encrypted
            assert connection.query("SELECT CURRENT_USER()") == [(f"{user_of(method)}@%",)]
    with pytest.raises(Refusal, match="check user and password"):
        secured.log_in(user_of(method), mode, PASSWORD + "?")


@pytest.mark.parametrize("compression", ["zlib", "zstd"])
@pytest.mark.parametrize("mode", [TlsMode.DISABLED, TlsMode.VERIFY_IDENTITY])
def test_compression_with_and_without_tls(secured: Secured, mode: TlsMode, compression: str) -> None:
    if compression == "zstd" and secured.server.flavor != "mysql-9.7":
        with pytest.raises(EngineError, match="offers no zstd compression: use --compression zlib or none"):
            secured.log_in_as_root(mode, compression=compression)
        return
    with secured.log_in_as_root(mode, compression=compression) as connection:
        size = (1 << 23) + 17
        assert connection.query(f"SELECT REPEAT('ab', {size}), 'after'") == [("ab" * size, "after")]
        assert connection.query("SHOW STATUS LIKE 'Compression'") == [("Compression", "ON")]


@pytest.mark.parametrize("mode", TlsMode)
def test_unix_sockets(secured: Secured, mode: TlsMode) -> None:
    method = METHODS[secured.server.flavor][-1]
    if mode is TlsMode.VERIFY_IDENTITY:
        with pytest.raises(EngineError, match="is a unix socket, which no certificate can name"):
            secured.log_in(user_of(method), mode, unix_socket=secured.server.socket)
        return
    if (secured.server.flavor, method) in NO_RSA and mode not in STRICT:
        with pytest.raises(EngineError, match=r"not an RSA key|refuses the login"):
            secured.log_in(user_of(method), mode, unix_socket=secured.server.socket)
        return
    with secured.log_in(user_of(method), mode, unix_socket=secured.server.socket) as connection:
        assert connection.encrypted == (mode in STRICT)
        assert connection.query("SELECT CURRENT_USER()") == [(f"{user_of(method)}@%",)]


def test_a_wrong_authority_is_refused(secured: Secured) -> None:
    with pytest.raises(EngineError, match=f"signed by none of {secured.stranger.ca}"):
        secured.log_in_as_root(secured.tls(TlsMode.VERIFY_CA, ca=secured.stranger.ca))


def test_a_wrong_host_name_is_refused(secured: Secured) -> None:
    secured.log_in_as_root(TlsMode.VERIFY_CA, host="localhost").close()
    with pytest.raises(EngineError, match=r"names another host \(.*'localhost'"):
        secured.log_in_as_root(TlsMode.VERIFY_IDENTITY, host="localhost")


def test_an_expired_certificate_is_refused(secured: Secured) -> None:
    # No server takes one that has expired already, so it has to do so in use.
    brief = secured.authority.issue("brief", ["127.0.0.1"], lifetime=timedelta(seconds=4))

    def refusal() -> str:
        try:
            secured.log_in_as_root(TlsMode.VERIFY_CA).close()
        except EngineError as error:
            return str(error)
        return ""

    with secured.certificate(brief):
        assert "has expired" in wait_until(refusal, "expired certificate")
        secured.log_in_as_root(TlsMode.REQUIRED).close()
    secured.log_in_as_root(TlsMode.VERIFY_IDENTITY).close()


def test_certificates_of_clients(secured: Secured) -> None:
    method = METHODS[secured.server.flavor][0]
    own, strange = secured.authority.issue("own"), secured.stranger.issue("strange")
    shown = secured.tls(TlsMode.VERIFY_IDENTITY, certificate=own.certificate, key=own.key)
    with secured.requiring(user_of(method), "X509"):
        secured.log_in(user_of(method), shown).close()
        with pytest.raises(Refusal, match="requires TLS or a certificate"):
            secured.log_in(user_of(method), TlsMode.REQUIRED)
    with pytest.raises(EngineError, match=r"refuses? our certificate"):
        secured.log_in(user_of(method), replace(shown, certificate=strange.certificate, key=strange.key))


def test_an_older_tls_than_asked_for_is_refused(secured: Secured) -> None:
    newest = secured.newest_tls
    for version in ("1.1", "1.2", "1.3"):
        asked = secured.tls(TlsMode.REQUIRED, minimum_version=version)
        if version <= newest:
            with secured.log_in_as_root(asked) as connection:
                assert connection.query("SHOW STATUS LIKE 'Ssl_version'") == [
                    ("Ssl_version", f"TLSv{newest}")
                ]
        else:
            with pytest.raises(EngineError, match=f"(no TLS of|not support) version {version} or later"):
                secured.log_in_as_root(asked)


def test_a_server_that_wants_tls(secured_of: Callable[[str], Secured]) -> None:
    secured = secured_of("mysql-9.7")
    with secured.server.connect(unix_socket=secured.server.socket) as connection:
        cursor = connection.cursor()
        cursor.execute("SET GLOBAL require_secure_transport = ON")
        try:
            with pytest.raises(Refusal, match="accepts only encrypted connections"):
                secured.log_in("sha256_password", TlsMode.DISABLED)
            secured.log_in("sha256_password", TlsMode.PREFERRED).close()
        finally:
            cursor.execute("SET GLOBAL require_secure_transport = OFF")


@pytest.mark.parametrize("flavor", ["mysql-5.6", "mariadb-10.11"])
def test_servers_without_tls(shared_server: Callable[[str], Server], flavor: str) -> None:
    server = shared_server(flavor)
    server.create_replication_user("in_clear", PASSWORD)
    for mode in STRICT:
        with pytest.raises(EngineError, match=f"offers no TLS, which --tls {mode} asks for"):
            Connection.open(server.host, server.port, "in_clear", PASSWORD, tls=Tls(mode))
    with Connection.open(server.host, server.port, "in_clear", PASSWORD, tls=Tls()) as connection:
        assert not connection.encrypted


@contextlib.contextmanager
def intercepted(server: Server) -> Iterator[tuple[int, bytearray]]:
    """Somebody in between takes the offer of TLS away; gives the port, and all that the client says."""
    heard = bytearray()

    def pass_on(client: socket.socket, upstream: socket.socket) -> None:
        greeting = parse_greeting(upstream.recv(1 << 16)[HEADER_SIZE:])
        without = replace(greeting, capabilities=greeting.capabilities & ~Capability.SSL)
        client.sendall(frame(build_greeting(without), 0)[0])
        with selectors.DefaultSelector() as selector:
            selector.register(client, selectors.EVENT_READ, upstream)
            selector.register(upstream, selectors.EVENT_READ, client)
            while True:
                for key, _ in selector.select():
                    assert isinstance(key.fileobj, socket.socket)
                    data = key.fileobj.recv(1 << 16)
                    if not data:
                        return
                    if key.fileobj is client:
                        heard.extend(data)
                    key.data.sendall(data)

    with socket.create_server(("127.0.0.1", 0)) as listener:

        def run() -> None:
            client, _ = listener.accept()
            upstream = socket.create_connection((server.host, server.port))
            with contextlib.suppress(OSError), client, upstream:
                pass_on(client, upstream)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield listener.getsockname()[1], heard
        finally:
            thread.join(10)
            assert not thread.is_alive()


@pytest.mark.parametrize("mode", STRICT)
def test_a_downgrade_is_refused_before_anything_is_sent(secured: Secured, mode: TlsMode) -> None:
    with intercepted(secured.server) as (port, heard), pytest.raises(EngineError, match="offers no TLS"):
        secured.log_in("root", mode, port=port)
    assert not heard


@pytest.mark.parametrize(("flavor", "method"), [(f, method) for f in FLAVORS for method in METHODS[f]])
def test_a_downgrade_under_preferred_does_not_show_the_password(
    secured_of: Callable[[str], Secured], flavor: str, method: str
) -> None:
    secured = secured_of(flavor)
    with intercepted(secured.server) as (port, heard):
        try:
            secured.log_in(user_of(method), TlsMode.PREFERRED, port=port).close()
        except EngineError:
            assert (flavor, method) in NO_RSA
    assert user_of(method).encode() in heard, "the name of the user travels in clear"
    assert PASSWORD.encode() not in heard


def test_the_servers_public_key_from_a_file(secured_of: Callable[[str], Secured]) -> None:
    secured = secured_of("mysql-9.7")
    key = (secured.server.data_directory / "public_key.pem").read_bytes()
    request = frame(SHA256_REQUEST_PUBLIC_KEY, 3)[0]
    for public_key in (key, None):
        with intercepted(secured.server) as (port, heard):
            secured.log_in("sha256_password", TlsMode.DISABLED, port=port, public_key=public_key).close()
        assert (request in heard) == (public_key is None)


def test_two_factors(secured_of: Callable[[str], Secured]) -> None:
    """The second is who we are on this machine, which the server sees for itself."""
    secured = secured_of("mysql-9.7")
    server = secured.server
    server.execute("INSTALL PLUGIN auth_socket SONAME 'auth_socket.so'")
    identified = "WITH caching_sha2_password BY %s AND IDENTIFIED WITH auth_socket AS %s"
    server.query(f"CREATE USER factors IDENTIFIED {identified}", PASSWORD, getpass.getuser())
    with secured.log_in("factors", TlsMode.PREFERRED, unix_socket=server.socket) as connection:
        assert connection.query("SELECT CURRENT_USER()") == [("factors@%",)]
    with pytest.raises(Refusal, match="check user and password"):
        secured.log_in("factors", TlsMode.PREFERRED)


@pytest.mark.parametrize(
    ("secure_auth", "says"), [("ON", "has the format of MySQL before 4.1"), ("OFF", "is never sent")]
)
def test_passwords_of_before_mysql_41_are_refused(
    secured_of: Callable[[str], Secured], secure_auth: str, says: str
) -> None:
    secured = secured_of("mariadb-10.11")
    server = secured.server
    stored = server.query("SELECT OLD_PASSWORD(%s)", PASSWORD)[0][0]
    server.execute(
        f"SET GLOBAL secure_auth = {secure_auth}",
        f"CREATE OR REPLACE USER old IDENTIFIED VIA mysql_old_password USING '{stored}'",
    )
    with pytest.raises(EngineError, match=says):
        secured.log_in("old", TlsMode.REQUIRED)
