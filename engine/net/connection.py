"""One connection to a server: the only module of the room that touches sockets.

It logs in, runs control statements, sends a dump command, and then hands the socket with whatever was read
already to the receive loop. Protocol decisions are made in the sans-IO modules; here bytes move.
"""

from __future__ import annotations

import contextlib
import os
import platform
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from engine.errors import EngineError
from engine.net.auth import METHODS, Credentials, begin
from engine.net.capabilities import Capability, ServerStatus
from engine.net.commands import build_ping, build_query, build_quit
from engine.net.handshake import (
    DEFAULT_PLUGIN,
    Greeting,
    HandshakeResponse,
    build_response,
    build_ssl_request,
    is_auth_switch,
    parse_auth_switch,
    parse_greeting,
)
from engine.net.packets import (
    MORE_DATA_MARKER,
    PacketJoiner,
    ServerError,
    frame,
    is_err,
    is_ok,
    parse_err,
    parse_ok,
)
from engine.net.refusals import Context, explain
from engine.net.resultset import ResultSet, ResultSetParser
from engine.net.wire import ProtocolError

Socket = socket.socket

RECEIVE_SIZE = 1 << 16
MAX_AUTHENTICATION_ROUNDS = 16
_UTF8MB4_GENERAL_CI = 45
_UTF8_GENERAL_CI = 33
_UTF8MB4_SINCE = (5, 5, 3)
_WANTED = (
    Capability.LONG_PASSWORD
    | Capability.LONG_FLAG
    | Capability.PROTOCOL_41
    | Capability.TRANSACTIONS
    | Capability.SECURE_CONNECTION
    | Capability.PLUGIN_AUTH
    | Capability.PLUGIN_AUTH_LENENC_CLIENT_DATA
    | Capability.CONNECT_ATTRS
    | Capability.DEPRECATE_EOF
)


class ConnectionFailed(EngineError):
    """The server cannot be reached, or the connection was lost: trying again later may help."""

    passing = True


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a server listens: host and port, or a unix socket."""

    host: str
    port: int = 3306
    unix_socket: str | None = None

    def __str__(self) -> str:
        if self.unix_socket is not None:
            return self.unix_socket
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Connection:
    """A session on a server. Not for several threads at once; not usable after `take_over` or a lost link."""

    def __init__(self, endpoint: Endpoint, user: str, sock: Socket, read_timeout: float | None) -> None:
        """Only `open` calls this."""
        self.endpoint = endpoint
        self.user = user
        self.greeting: Greeting
        self.capabilities = Capability.NONE
        self.status = ServerStatus.NONE
        self.read_timeout = read_timeout
        self._socket: Socket | None = sock
        self._joiner = PacketJoiner()

    @classmethod
    def open(
        cls,
        host: str,
        port: int = 3306,
        user: str = "",
        password: str = "",
        *,
        unix_socket: str | None = None,
        connect_timeout: float = 10.0,
        read_timeout: float | None = 60.0,
        attributes: Mapping[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> Connection:
        """A logged-in session. Timeouts are in seconds; `read_timeout` null waits for ever.

        With `tls` the connection is encrypted before anything secret is said, or fails. The password is used
        here and not kept. Raises `ConnectionFailed` where the server cannot be reached, `Refusal` where it
        refuses us, `EngineError` for everything else, always one sentence.
        """
        endpoint = Endpoint(host, port, unix_socket)
        connection = cls(endpoint, user, _connect(endpoint, connect_timeout), read_timeout)
        try:
            connection._log_in(password, attributes or {}, tls)
            connection.socket.settimeout(read_timeout)
        except BaseException:
            connection._drop()
            raise
        return connection

    @property
    def socket(self) -> Socket:
        """The socket, in TLS where that is on; raises `ConnectionFailed` once it is closed or taken."""
        if self._socket is None:
            raise ConnectionFailed(f"the connection to {self.endpoint} is closed")
        return self._socket

    def query(self, sql: str) -> ResultSet:
        """The rows of a statement; raises `ServerError` where the server refuses it."""
        parser = ResultSetParser(self.capabilities)
        self.send_command(build_query(sql))
        try:
            while not parser.feed(self._read()):
                pass
        except ProtocolError:
            self._drop()
            raise
        self.status = parser.status
        return parser.result

    def execute(self, sql: str) -> None:
        """Run a statement for what it does."""
        self.query(sql)

    def quote(self, text: str) -> str:
        """`text` as a string literal for this session's SQL mode."""
        if ServerStatus.NO_BACKSLASH_ESCAPES not in self.status:
            text = text.replace("\\", "\\\\")
        return "'" + text.replace("'", "''") + "'"

    def ping(self) -> None:
        """Ask the server for a sign of life."""
        self.send_command(build_ping())
        self.read_ok()

    def send_command(self, payload: bytes) -> None:
        """Send one command and leave its answer unread. Its packets count from 0, the answer's go on."""
        self._joiner.sequence = 0
        self._send(payload)

    def read_ok(self) -> None:
        """The answer of a command that returns nothing; raises `ServerError` where it is a refusal."""
        payload = self._read()
        if is_err(payload):
            raise parse_err(payload)
        if not is_ok(payload):
            self._drop()
            raise ProtocolError(f"{self.endpoint} answered neither OK nor with an error")

    def take_over(self) -> tuple[Socket, bytes]:
        """The socket, and bytes that were read from it beyond the last answer, packet headers and all.

        From here on the caller owns the socket; its timeout is still `read_timeout`.
        """
        taken, self._socket = self.socket, None
        return taken, self._joiner.take_pending()

    def close(self) -> None:
        """Say good-bye and close; harmless when closed already."""
        if self._socket is not None:
            with contextlib.suppress(ConnectionFailed):
                self.send_command(build_quit())
            self._drop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Connection to {self.endpoint} as {self.user}{'' if self._socket else ', closed'}>"

    def _log_in(self, password: str, attributes: Mapping[str, str], tls: ssl.SSLContext | None) -> None:
        try:
            first = self._read()
            if is_err(first):
                raise parse_err(first)
            self.greeting = parse_greeting(first)
            self.capabilities = _WANTED & self.greeting.capabilities
            if tls is not None:
                self._encrypt(tls)
            self._authenticate(password, attributes, tls is not None)
            if self.greeting.version >= _UTF8MB4_SINCE:
                # A server may be told to ignore the character set of the handshake.
                self.execute("SET NAMES utf8mb4")
        except ServerError as error:
            raise explain(error, Context(str(self.endpoint), self.user)) from error
        except ProtocolError as error:
            raise ProtocolError(f"{self.endpoint} does not answer as a MySQL server does: {error}") from error

    def _encrypt(self, tls: ssl.SSLContext) -> None:
        if Capability.SSL not in self.greeting.capabilities:
            raise EngineError(f"{self.endpoint} offers no TLS: set it up on the server, or connect without")
        if self._joiner.take_pending():
            raise ProtocolError("bytes came between the greeting and TLS")
        self.capabilities |= Capability.SSL
        self._send(build_ssl_request(self._response(b"", DEFAULT_PLUGIN, {})))
        try:
            self._socket = tls.wrap_socket(self.socket, server_hostname=self.endpoint.host)
        except ssl.SSLCertVerificationError as error:
            raise EngineError(
                f"the certificate of {self.endpoint} is not to be trusted: {error.verify_message}"
            ) from error
        except OSError as error:
            raise ConnectionFailed(f"TLS with {self.endpoint} failed: {error}") from error

    def _authenticate(self, password: str, attributes: Mapping[str, str], encrypted: bool) -> None:
        secure = encrypted or self.endpoint.unix_socket is not None
        plugin = self.greeting.auth_plugin if self.greeting.auth_plugin in METHODS else DEFAULT_PLUGIN
        exchange = begin(plugin, Credentials(password.encode(), self.greeting.nonce, secure))
        self._send(build_response(self._response(next(exchange), plugin, attributes)))
        for _ in range(MAX_AUTHENTICATION_ROUNDS):
            payload = self._read()
            if is_ok(payload):
                self.status = parse_ok(payload, self.capabilities).status
                return
            if is_err(payload):
                raise parse_err(payload)
            if is_auth_switch(payload):
                plugin, nonce = parse_auth_switch(payload)
                exchange = begin(plugin, Credentials(password.encode(), nonce, secure))
                self._send(next(exchange))
                continue
            # Some servers put the marker only in front of what might be taken for another packet.
            data = payload[1:] if payload[:1] == bytes([MORE_DATA_MARKER]) else payload
            with contextlib.suppress(StopIteration):
                self._send(exchange.send(data))
        raise ProtocolError("authentication does not come to an end")

    def _response(
        self, auth_response: bytes, plugin: str, attributes: Mapping[str, str]
    ) -> HandshakeResponse:
        ours = {"_client_name": "binlog-engine", "_pid": str(os.getpid()), "_os": platform.system()}
        return HandshakeResponse(
            capabilities=self.capabilities,
            user=self.user,
            auth_response=auth_response,
            charset=_UTF8_GENERAL_CI if self.greeting.version < _UTF8MB4_SINCE else _UTF8MB4_GENERAL_CI,
            auth_plugin=plugin,
            attributes={**ours, **attributes},
        )

    def _send(self, payload: bytes) -> None:
        packets, self._joiner.sequence = frame(payload, self._joiner.sequence)
        try:
            self.socket.sendall(packets)
        except OSError as error:
            raise self._lost(error) from error

    def _read(self) -> bytes:
        while (payload := self._joiner.next()) is None:
            try:
                received = self.socket.recv(RECEIVE_SIZE)
            except OSError as error:
                raise self._lost(error) from error
            if not received:
                self._drop()
                raise ConnectionFailed(f"{self.endpoint} closed the connection: see the server's error log")
            self._joiner.feed(received)
        return payload

    def _lost(self, error: OSError) -> ConnectionFailed:
        self._drop()
        if isinstance(error, TimeoutError):
            return ConnectionFailed(f"{self.endpoint} stopped answering: check the server and the network")
        return ConnectionFailed(f"the connection to {self.endpoint} was lost: {error.strerror or error}")

    def _drop(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _connect(endpoint: Endpoint, timeout: float) -> Socket:
    try:
        if endpoint.unix_socket is not None:
            sock = socket.socket(socket.AF_UNIX)
            sock.settimeout(timeout)
            sock.connect(endpoint.unix_socket)
            return sock
        sock = socket.create_connection((endpoint.host, endpoint.port), timeout)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        return sock
    except (socket.gaierror, UnicodeError):
        raise ConnectionFailed(f"no host is called {endpoint.host}: check the name") from None
    except (ConnectionRefusedError, FileNotFoundError):
        raise ConnectionFailed(
            f"nothing listens on {endpoint}: check that the server runs, and where it listens"
        ) from None
    except TimeoutError:
        raise ConnectionFailed(
            f"{endpoint} did not answer within {timeout:g} s: check the address and any firewall between"
        ) from None
    except OSError as error:
        raise ConnectionFailed(f"cannot connect to {endpoint}: {error.strerror or error}") from error
