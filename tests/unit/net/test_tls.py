"""What may be asked of TLS, which files it takes, and what the failures of a handshake are called."""

from __future__ import annotations

import contextlib
import re
import socket
import ssl
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from engine.config import tls
from engine.config.tls import Tls, TlsMode
from engine.errors import EngineError
from engine.net.client.tls_stream import TlsStream
from tests.support.certificates import Authority, Certificate

HOST = "db1.example"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("stranger"), "strangers")


@pytest.fixture(scope="module")
def server(authority: Authority) -> Certificate:
    return authority.issue("server", [HOST])


@pytest.fixture(scope="module")
def client(authority: Authority) -> Certificate:
    return authority.issue("client")


REFUSED = "refused"


@pytest.mark.parametrize(
    ("mode", "offered", "not_offered", "socket_offered", "socket_not_offered"),
    [
        (TlsMode.DISABLED, False, False, False, False),
        (TlsMode.PREFERRED, True, False, False, False),
        (TlsMode.REQUIRED, True, REFUSED, True, REFUSED),
        (TlsMode.VERIFY_CA, True, REFUSED, True, REFUSED),
        (TlsMode.VERIFY_IDENTITY, True, REFUSED, REFUSED, REFUSED),
    ],
)
def test_what_each_mode_makes_of_each_server(
    mode: TlsMode,
    offered: bool,
    not_offered: bool | str,
    socket_offered: bool | str,
    socket_not_offered: bool | str,
) -> None:
    def outcome(**server: bool) -> bool | str:
        try:
            return Tls(mode).wanted(**server, where="db1:3306")
        except EngineError as error:
            assert re.search("offers no TLS|ask for verify-ca", str(error))
            return REFUSED

    assert outcome(offered=True, local=False) == offered
    assert outcome(offered=False, local=False) == not_offered
    assert outcome(offered=True, local=True) == socket_offered
    assert outcome(offered=False, local=True) == socket_not_offered


@pytest.mark.parametrize("mode", [TlsMode.DISABLED, TlsMode.PREFERRED, TlsMode.REQUIRED])
def test_authorities_that_would_not_count_are_refused(mode: TlsMode, authority: Authority) -> None:
    with pytest.raises(EngineError, match="so --tls-ca has no effect: ask for verify-ca"):
        Tls(mode, ca=authority.ca)


def test_a_key_without_a_certificate_is_refused(client: Certificate) -> None:
    with pytest.raises(EngineError, match="--tls-key has no effect without --tls-cert"):
        Tls(key=client.key)


def test_files_that_cannot_be_used(
    authority: Authority, server: Certificate, client: Certificate, tmp_path: Path
) -> None:
    missing, empty = tmp_path / "missing.pem", tmp_path / "empty.pem"
    empty.write_text("nothing here")
    locked = authority.issue("locked", passphrase=b"open sesame")
    for asked, says in (
        (Tls(TlsMode.VERIFY_CA, ca=missing), f"--tls-ca {missing} cannot be read: No such file"),
        (Tls(TlsMode.VERIFY_CA, ca=empty), "contains no certificates in PEM form"),
        (Tls(certificate=missing), f"--tls-cert {missing} cannot be read: No such file"),
        (Tls(certificate=client.certificate, key=missing), f"--tls-key {missing} cannot be read"),
        (Tls(certificate=client.certificate, key=tmp_path), f"--tls-key {tmp_path} cannot be read: Is a dir"),
        (Tls(certificate=client.certificate, key=server.key), "is not the key of the certificate"),
        (Tls(certificate=client.certificate, key=empty), "contain no certificate and key in PEM form"),
        (Tls(certificate=client.certificate), "contain no certificate and key in PEM form"),
        (Tls(certificate=locked.certificate, key=locked.key), "that a passphrase protects"),
    ):
        with pytest.raises(EngineError, match=says) as caught:
            asked.context()
        assert "\n" not in str(caught.value)


def test_certificate_and_key_in_one_file(client: Certificate, tmp_path: Path) -> None:
    both = tmp_path / "both.pem"
    both.write_bytes(client.certificate.read_bytes() + client.key.read_bytes())
    assert Tls(certificate=both).context().get_ca_certs() == []


def serving(certificate: Certificate, **limits: ssl.TLSVersion | ssl.VerifyMode) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.certificate, certificate.key)
    for name, value in limits.items():
        setattr(context, name, value)
    return context


@contextlib.contextmanager
def answering(context: ssl.SSLContext | None) -> Iterator[socket.socket]:
    """Our end of a connection whose other end answers in TLS, or in clear without a context."""
    ours, theirs = socket.socketpair()

    def answer() -> None:
        with theirs, contextlib.suppress(OSError):
            if context is None:
                theirs.sendall(b"no TLS here, sorry")
                theirs.recv(1 << 16)
                return
            with context.wrap_socket(theirs, server_side=True) as encrypted:
                encrypted.sendall((encrypted.version() or "").encode())

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        with ours:
            ours.settimeout(10)
            yield ours
    finally:
        thread.join(10)
        assert not thread.is_alive()


def spoken(asked: Tls, context: ssl.SSLContext | None, host: str = HOST) -> str | None:
    """The version that both sides agree on, as the other one says."""
    with answering(context) as ours:
        try:
            encrypted = TlsStream(ours, asked.context(), host)
            encrypted.handshake()
            return encrypted.recv(100).decode()
        except OSError as error:
            raise tls.explain(error, "db1:3306", asked) from error


def test_a_server_that_is_who_it_says(authority: Authority, server: Certificate) -> None:
    assert spoken(Tls(TlsMode.VERIFY_IDENTITY, ca=authority.ca), serving(server)) == "TLSv1.3"
    assert spoken(Tls(TlsMode.VERIFY_CA, ca=authority.ca), serving(server), "another.example") == "TLSv1.3"
    assert spoken(Tls(TlsMode.VERIFY_CA, ca=server.certificate), serving(server)) == "TLSv1.3"
    assert spoken(Tls(TlsMode.REQUIRED), serving(server)) == "TLSv1.3"


def test_servers_that_are_not_to_be_trusted(
    authority: Authority, stranger: Authority, server: Certificate
) -> None:
    expired = authority.issue("expired", [HOST], lifetime=timedelta(hours=-1))
    identity = Tls(TlsMode.VERIFY_IDENTITY, ca=authority.ca)
    for asked, context, host, says in (
        (Tls(TlsMode.VERIFY_CA, ca=stranger.ca), serving(server), HOST, f"signed by none of {stranger.ca}"),
        (Tls(TlsMode.VERIFY_CA), serving(server), HOST, "signed by none of this machine's authorities"),
        (identity, serving(server), "db2.example", "names another host .*db2.example"),
        (identity, serving(server), "10.0.0.1", "names another host .*10.0.0.1"),
        (identity, serving(expired), HOST, "has expired"),
    ):
        with pytest.raises(EngineError, match=says) as caught:
            spoken(asked, context, host)
        assert not caught.value.retryable


def test_versions(server: Certificate) -> None:
    old = serving(server, maximum_version=ssl.TLSVersion.TLSv1_2)
    assert spoken(Tls(TlsMode.REQUIRED), old) == "TLSv1.2"
    with pytest.raises(EngineError, match=r"no TLS of version 1\.3 or later .* lower --tls-min-version"):
        spoken(Tls(TlsMode.REQUIRED, minimum_version="1.3"), old)


def test_a_server_that_does_not_speak_tls() -> None:
    with pytest.raises(EngineError, match="broke off TLS"):
        spoken(Tls(TlsMode.REQUIRED), None)


def test_certificates_of_clients(
    authority: Authority, stranger: Authority, server: Certificate, client: Certificate
) -> None:
    picky = serving(server, verify_mode=ssl.CERT_REQUIRED)
    picky.load_verify_locations(authority.ca)
    strange = stranger.issue("client")
    assert spoken(Tls(certificate=client.certificate, key=client.key), picky) == "TLSv1.3"
    for asked in (Tls(), Tls(certificate=strange.certificate, key=strange.key)):
        with pytest.raises(EngineError, match="refuses our certificate"):
            spoken(asked, picky)
