"""TLS as a stream: several records at once, and its end and failures in order."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from engine.config.tls import NO_TLS, Tls, TlsMode, explain
from engine.net.client.tls_stream import TlsStream
from tests.support.certificates import Authority, Certificate

RECORD = 1 << 14
VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return Authority(tmp_path_factory.mktemp("authority")).issue("server", ["db1.example"])


@pytest.fixture(params=VERSIONS)
def both_ends(
    certificate: Certificate, request: pytest.FixtureRequest
) -> Iterator[tuple[TlsStream, ssl.SSLSocket]]:
    """Our stream, non-blocking, and the server's end; they have shaken hands."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.maximum_version = VERSIONS[request.param]
    context.load_cert_chain(certificate.certificate, certificate.key)
    ours, theirs = socket.socketpair()
    ours.settimeout(10)
    theirs.settimeout(10)
    with ours, ThreadPoolExecutor(1) as pool:
        accepted = pool.submit(context.wrap_socket, theirs, server_side=True)
        stream = TlsStream(ours, Tls(TlsMode.REQUIRED).context(), None)
        stream.handshake()
        with accepted.result(10) as server:
            stream.setblocking(False)
            yield stream, server


def test_all_records_that_have_come_are_handed_out_at_once(
    both_ends: tuple[TlsStream, ssl.SSLSocket],
) -> None:
    stream, server = both_ends
    sent = bytes(range(256)) * (5 * RECORD // 256)
    buffer = memoryview(bytearray(2 * len(sent)))
    with pytest.raises(BlockingIOError):
        stream.recv_into(buffer)
    server.sendall(sent)
    assert stream.recv_into(buffer) == len(sent)
    assert buffer[: len(sent)] == sent
    with pytest.raises(BlockingIOError):
        stream.recv_into(buffer)


def test_records_of_many_pieces_are_handed_out_at_once(both_ends: tuple[TlsStream, ssl.SSLSocket]) -> None:
    stream, server = both_ends
    stream._received = memoryview(bytearray(1000))
    sent = bytes(range(256)) * (5 * RECORD // 256)
    server.sendall(sent)
    buffer = memoryview(bytearray(2 * len(sent)))
    assert stream.recv_into(buffer) == len(sent)
    assert buffer[: len(sent)] == sent


def test_a_reset_connection_fails_after_the_valid_bytes(both_ends: tuple[TlsStream, ssl.SSLSocket]) -> None:
    stream, server = both_ends
    server.sendall(b"good")
    # Bytes that will not be read any more, so that closing resets the connection.
    stream.sendall(b"late")
    server.close()
    buffer = memoryview(bytearray(100))
    assert stream.recv_into(buffer) == 4
    for _ in range(2):
        with pytest.raises(ConnectionResetError):
            stream.recv_into(buffer)


def test_what_does_not_fit_is_not_waited_for(both_ends: tuple[TlsStream, ssl.SSLSocket]) -> None:
    stream, server = both_ends
    sent = bytes(range(256)) * (3 * RECORD // 256)
    buffer = memoryview(bytearray(RECORD + 100))
    server.sendall(sent)
    assert stream.recv_into(buffer[:10]) == 10
    assert stream.recv(5) == sent[10:15]
    assert stream.recv_into(buffer) == len(buffer)
    assert buffer == sent[15 : 15 + len(buffer)]
    assert stream.recv_into(buffer) == len(buffer)
    assert stream.recv_into(buffer) == len(sent) - 15 - 2 * len(buffer)


def test_large_messages_are_sent_whole(both_ends: tuple[TlsStream, ssl.SSLSocket]) -> None:
    stream, server = both_ends
    stream.settimeout(10)
    sent = bytes(range(256)) * (4 * RECORD // 256) + b"end"
    stream.sendall(sent)
    received = b""
    while len(received) < len(sent):
        received += server.recv(RECORD)
    assert received == sent


@pytest.mark.parametrize("orderly", [True, False])
def test_the_end_comes_after_everything_else(
    both_ends: tuple[TlsStream, ssl.SSLSocket], orderly: bool
) -> None:
    stream, server = both_ends
    server.sendall(b"last")
    if orderly:
        server.settimeout(0)
        with pytest.raises(ssl.SSLWantReadError):
            server.unwrap()
    server.close()
    buffer = memoryview(bytearray(100))
    assert stream.recv_into(buffer) == 4
    assert stream.recv_into(buffer) == 0
    assert stream.recv(100) == b""


def test_a_damaged_record_fails_after_the_valid_bytes(both_ends: tuple[TlsStream, ssl.SSLSocket]) -> None:
    stream, server = both_ends
    server.sendall(b"good")
    with socket.socket(fileno=server.detach()) as plain:
        # A record of application data that no key of this connection has sealed.
        plain.sendall(b"\x17\x03\x03\x00\x40" + bytes(0x40))
        buffer = memoryview(bytearray(100))
        assert stream.recv_into(buffer) == 4
        with pytest.raises(ssl.SSLError) as caught:
            stream.recv_into(buffer)
    # OpenSSL's versions differ in what they say of it.
    assert explain(caught.value, "db1:3306", NO_TLS).retryable
