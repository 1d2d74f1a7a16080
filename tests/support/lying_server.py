"""A server that lies: what a script sends, from bytes, to each client that connects.

A script is a function of a `Talk`, which is one connection; it may tell the truth up to the point where the
lie begins. Everything listens on the loopback address.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.net.protocol.capabilities import Capability, ServerStatus
from engine.net.protocol.commands import parse_query
from engine.net.protocol.handshake import Greeting, build_greeting
from engine.net.protocol.packets import Ok, PacketJoiner, build_ok, frame
from engine.net.protocol.resultset import build_result_set
from engine.net.protocol.wire import ProtocolError

CAPABILITIES = (
    Capability.LONG_PASSWORD
    | Capability.PROTOCOL_41
    | Capability.SECURE_CONNECTION
    | Capability.PLUGIN_AUTH
    | Capability.PLUGIN_AUTH_LENENC_CLIENT_DATA
    | Capability.CONNECT_ATTRS
    | Capability.DEPRECATE_EOF
)
GREETING = Greeting("9.7.0", 7, bytes(range(33, 53)), CAPABILITIES, auth_plugin="caching_sha2_password")
OK = build_ok(Ok(status=ServerStatus.AUTOCOMMIT), CAPABILITIES)
PATIENCE_SECONDS = 20.0

Row = Sequence[str | None]


class Talk:
    """One connection to the server."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._joiner = PacketJoiner(numbered=False)
        self.sequence = 0
        """The number of the next packet."""

    def send(self, *payloads: bytes) -> None:
        """Send payloads as packets with the numbers that follow."""
        packets = []
        for payload in payloads:
            framed, self.sequence = frame(payload, self.sequence)
            packets.append(framed)
        self.send_bytes(b"".join(packets))

    def send_bytes(self, data: bytes) -> None:
        """Send bytes as they are."""
        self._socket.sendall(data)

    def send_for_ever(self, *payloads: bytes) -> None:
        """Send the payloads again and again, until the client has gone."""
        while True:
            self.send(*payloads * 100)

    def read(self) -> bytes:
        """The client's next payload. Raises `ConnectionError` if it has gone."""
        self._joiner.sequence = self.sequence
        while (payload := self._joiner.next()) is None:
            self._joiner.feed(self.read_bytes())
        self.sequence = self._joiner.sequence
        return payload

    def read_bytes(self) -> bytes:
        """What the client has sent, as it is. Raises `ConnectionError` if it has gone."""
        received = self._socket.recv(1 << 16)
        if not received:
            raise ConnectionResetError
        return received

    def greet(self, **changes: Any) -> bytes:
        """Send a greeting; returns the client's response."""
        self.send(build_greeting(replace(GREETING, **changes)))
        return self.read()

    def log_in(self, **changes: Any) -> None:
        """An honest login, and the answer to the statement that follows it."""
        self.greet(**changes)
        self.send(OK)
        self.command()
        self.send(OK)

    def command(self) -> bytes:
        """The client's next command."""
        self.sequence = 0
        return self.read()

    def statement(self) -> str:
        """The client's next command, which is a statement."""
        return parse_query(self.command())

    def answer(self, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """An honest result set."""
        self.send(*build_result_set(columns, rows, ServerStatus.AUTOCOMMIT, CAPABILITIES))


Script = Callable[[Talk], object]


@contextlib.contextmanager
def lying_server(script: Script) -> Iterator[int]:
    """Listens, and follows the script with each client; yields the port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        accepting = threading.Thread(target=_accept, args=(listener, script), daemon=True)
        accepting.start()
        yield listener.getsockname()[1]
        # Closing a socket does not wake the thread that waits on it.
        listener.shutdown(socket.SHUT_RDWR)
        accepting.join()


def _accept(listener: socket.socket, script: Script) -> None:
    while True:
        try:
            sock, _ = listener.accept()
        except OSError:
            return
        sock.settimeout(PATIENCE_SECONDS)
        threading.Thread(target=_serve, args=(sock, script), daemon=True).start()


def _serve(sock: socket.socket, script: Script) -> None:
    with sock, contextlib.suppress(OSError, ProtocolError):
        talk = Talk(sock)
        script(talk)
        # The client closes the connection when it has noticed the lie.
        talk.read()


class PeakMemory:
    """The most memory that this process has, in bytes, beyond what it has at the beginning of the block."""

    def __enter__(self) -> PeakMemory:
        Path("/proc/self/clear_refs").write_text("5")
        self._before = _peak()
        return self

    def __exit__(self, *_: object) -> None:
        self.bytes = _peak() - self._before


def _peak() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no peak in /proc/self/status")
