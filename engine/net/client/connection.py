"""One connection to a server: login, statements, and the dump command.

After the dump command `take_over` gives the socket and the bytes already read from it to the receive loop.
This module does the I/O; the modules of `engine.net.protocol` parse and build the packets.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Self

from engine.config import tls as tls_rules
from engine.config.tls import NO_TLS, Tls, TlsMode
from engine.dataclass import dataclass
from engine.errors import ConnectionFailed, EngineError
from engine.net.client.compressed_stream import CompressedStream, Stream
from engine.net.client.endpoint import Endpoint, open_socket
from engine.net.client.refusals import Context, explain
from engine.net.client.tls_stream import TlsStream
from engine.net.protocol.capabilities import Capability, ServerStatus
from engine.net.protocol.client_login import UTF8MB4_SINCE, Account, log_in, shared_capabilities, ssl_request
from engine.net.protocol.commands import build_query, build_quit
from engine.net.protocol.compression import ALGORITHMS
from engine.net.protocol.handshake import Greeting, parse_greeting
from engine.net.protocol.packets import (
    MAX_CONTROL_PAYLOAD,
    MAX_LOGIN_PAYLOAD,
    PacketJoiner,
    ServerError,
    frame,
    is_err,
    is_ok,
    parse_err,
)
from engine.net.protocol.prepared import (
    ExecuteParser,
    PrepareParser,
    build_close,
    build_execute,
    build_prepare,
)
from engine.net.protocol.resultset import ColumnDefinition, ResultSet, ResultSetParser
from engine.net.protocol.wire import ProtocolError

RECEIVE_SIZE = 1 << 16
READ_SECONDS = 60.0
"""How long an answer may take, unless the caller says otherwise."""
LOGIN_SECONDS = 60.0
"""Upper limit for a whole login, however often the server sends something."""
_SESSION_STATEMENT = (
    "SET NAMES utf8mb4, autocommit = 1, completion_type = 0, sql_big_selects = 1, "
    "sql_select_limit = 18446744073709551615"
)
"""What no session takes from the server's settings. A server can be configured to ignore the character set of
the handshake. Without autocommit every query, of MySQL's catalog, too, shows what was there at the first one.
`completion_type` would end the connection with a transaction, `max_join_size` refuse large tables, and
`sql_select_limit` cut off results: of SELECT, and of what SHOW and information_schema list."""


@dataclass(frozen=True, slots=True)
class RowsStart:
    """The beginning of a result whose rows the caller receives."""

    statement_id: int
    columns: tuple[ColumnDefinition, ...]
    pending: bytes
    """What was received after the definitions of the columns."""
    sequence: int
    """The number of the first row's packet."""


class Connection:
    """A session on a server. Not thread-safe; not usable after `take_over` or a lost connection."""

    def __init__(
        self, endpoint: Endpoint, user: str, sock: socket.socket, tls: Tls, read_timeout: float | None
    ) -> None:
        """Called by `open` only."""
        self.endpoint = endpoint
        self.user = user
        self.greeting: Greeting
        self.capabilities = Capability.NONE
        self.status = ServerStatus.NONE
        self.read_timeout = read_timeout
        name = sock.getsockname()
        self.local_port: int = name[1] if isinstance(name, tuple) else 0
        """The local TCP port of the connection; 0 for a unix socket."""
        self._tls = tls
        self._stream: Stream | None = sock
        self._joiner = PacketJoiner(MAX_LOGIN_PAYLOAD)
        self._login_deadline: float | None = time.monotonic() + LOGIN_SECONDS
        self._received = memoryview(bytearray(RECEIVE_SIZE))

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
        read_timeout: float | None = READ_SECONDS,
        attributes: Mapping[str, str] | None = None,
        tls: Tls = NO_TLS,
        compression: str = "none",
        public_key: bytes | None = None,
        further_passwords: Sequence[str] = (),
        meanwhile: Callable[[], None] | None = None,
    ) -> Connection:
        """Connect and log in. Timeouts are in seconds; a `read_timeout` of None waits without limit.

        With `tls` the connection is encrypted before anything secret is sent, or fails. `compression`: none,
        zlib or zstd. `public_key`: the server's RSA key in PEM form; None requests it from the server.
        `further_passwords`: for accounts with several authentication factors. Passwords are not stored.
        `meanwhile`, if given, is called at least once a second while the connection waits for the server.
        Raises `ConnectionFailed` if the server cannot be reached, `Refusal` if it refuses the login,
        `EngineError` for every other failure.
        """
        endpoint = Endpoint(host, port, unix_socket)
        # A password from the environment may contain bytes that are not UTF-8.
        passwords = [text.encode("utf-8", "surrogateescape") for text in (password, *further_passwords)]
        account = Account(user, passwords, public_key, attributes or {})
        context = None if tls.mode is TlsMode.DISABLED else tls.context()
        connection = cls(endpoint, user, open_socket(endpoint, connect_timeout, meanwhile), tls, read_timeout)
        try:
            connection._log_in(account, context, compression)
            connection._joiner.limit = MAX_CONTROL_PAYLOAD
            connection._login_deadline = None
            connection.stream.settimeout(read_timeout)
        except BaseException:
            connection.drop()
            raise
        return connection

    @property
    def stream(self) -> Stream:
        """The socket, or the TLS or compressed stream over it; raises `ConnectionFailed` if it is closed."""
        if self._stream is None:
            raise ConnectionFailed(f"the connection to {self.endpoint} is closed")
        return self._stream

    @property
    def is_open(self) -> bool:
        """Whether it was not closed, lost or taken over."""
        return self._stream is not None

    @property
    def encrypted(self) -> bool:
        """Whether the connection uses TLS."""
        return Capability.SSL in self.capabilities

    @property
    def numbered_packets(self) -> bool:
        """Whether packets have consecutive sequence numbers; on a compressed connection they need not."""
        return self._joiner.numbered

    def query(self, sql: str) -> ResultSet:
        """The rows of a statement; raises `ServerError` if the server refuses it."""
        parser = ResultSetParser(self.capabilities)
        self.send_command(build_query(sql))
        self._read_answer(parser)
        self.status = parser.status
        return parser.result

    def execute(self, sql: str) -> None:
        """Run a statement and discard its result; raises `ServerError` if the server refuses it."""
        self.query(sql)

    def start_rows(self, sql: str) -> RowsStart:
        """Run a SELECT as a prepared statement, up to the first row of its result, which has binary values.

        The rows then come through `receive_into`, after `RowsStart.pending`; `end_rows` follows. Raises
        `ServerError` if the server refuses the statement.
        """
        prepared = PrepareParser(self.capabilities)
        self._converse(build_prepare(sql), prepared)
        started = ExecuteParser(self.capabilities)
        self._converse(build_execute(prepared.statement_id), started)
        return RowsStart(
            prepared.statement_id, started.columns, self._joiner.take_pending(), self._joiner.sequence
        )

    def end_rows(self, start: RowsStart) -> None:
        """The caller has received all rows: discard the statement."""
        self.send_command(build_close(start.statement_id))

    def receive_into(self, memory: memoryview) -> int:
        """Receive some bytes of an answer into `memory`; returns how many, never 0."""
        try:
            size = self.stream.recv_into(memory)
        except OSError as error:
            raise self._lost(error) from error
        if not size:
            self.drop()
            raise ConnectionFailed(f"{self.endpoint} closed the connection: see the server's error log")
        return size

    def drop(self) -> None:
        """Close the connection at once, as in the middle of a result."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def quote(self, text: str) -> str:
        """`text` as a string literal for this session's SQL mode."""
        if ServerStatus.NO_BACKSLASH_ESCAPES not in self.status:
            text = text.replace("\\", "\\\\")
        return "'" + text.replace("'", "''") + "'"

    def send_command(self, payload: bytes) -> None:
        """Send one command without reading its answer, whose packets continue its sequence numbers."""
        self._joiner.sequence = 0
        self._send(payload)

    def read_ok(self) -> None:
        """Read the answer to a command that returns no rows; raises `ServerError` if it is an error."""
        payload = self._read()
        if is_err(payload):
            raise parse_err(payload)
        if not is_ok(payload):
            self.drop()
            raise ProtocolError(f"{self.endpoint} answered with neither an OK packet nor an error")

    def take_over(self) -> tuple[Stream, bytes]:
        """The stream, and the bytes read from it after the last answer, packet headers included.

        The caller then owns the stream; its timeout is still `read_timeout`.
        """
        taken, self._stream = self.stream, None
        return taken, self._joiner.take_pending()

    def close(self) -> None:
        """Send COM_QUIT and close; does nothing if the connection is closed."""
        if self._stream is not None:
            with contextlib.suppress(ConnectionFailed):
                self.send_command(build_quit())
            self.drop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Connection to {self.endpoint} as {self.user}{'' if self._stream else ', closed'}>"

    def _log_in(self, account: Account, context: ssl.SSLContext | None, compression: str) -> None:
        try:
            first = self._read()
            if is_err(first):
                raise parse_err(first)
            self.greeting = parse_greeting(first)
            self.capabilities = shared_capabilities(self.greeting, self._compression(compression))
            if context is not None:
                self._encrypt(context)
            self._authenticate(account)
            if compression != "none":
                self._compress(compression)
            if self.greeting.version >= UTF8MB4_SINCE:
                self.execute(_SESSION_STATEMENT)
        except ServerError as error:
            raise explain(error, Context(str(self.endpoint), self.user)) from error
        except ProtocolError as error:
            raise ProtocolError(f"{self.endpoint} does not answer like a MySQL server: {error}") from error

    def _compression(self, name: str) -> Capability:
        if name == "none":
            return Capability.NONE
        wanted = ALGORITHMS[name].capability
        if wanted in self.greeting.capabilities:
            return wanted
        offered = [each for each, how in ALGORITHMS.items() if how.capability in self.greeting.capabilities]
        raise EngineError(
            f"{self.endpoint} offers no {name} compression: use --compression "
            f"{' or '.join([*offered, 'none'])}"
        )

    def _encrypt(self, context: ssl.SSLContext) -> None:
        local = self.endpoint.unix_socket is not None
        offered = Capability.SSL in self.greeting.capabilities
        if not self._tls.wanted(offered=offered, local=local, where=str(self.endpoint)):
            return
        if self._joiner.take_pending():
            raise ProtocolError("unexpected bytes arrived between the greeting and TLS")
        self.capabilities |= Capability.SSL
        self._send(ssl_request(self.greeting, self.capabilities))
        plain = self.stream
        assert isinstance(plain, socket.socket)
        try:
            self._stream = TlsStream(plain, context, self.endpoint.host or None)
            self._stream.handshake()
        except OSError as error:
            raise self._lost(error) from error

    def _authenticate(self, account: Account) -> None:
        local = self.endpoint.unix_socket is not None
        login = log_in(self.greeting, self.capabilities, account, local=local)
        reply = next(login)
        while True:
            if reply is not None:
                self._send(reply)
            try:
                reply = login.send(self._read())
            except StopIteration as end:
                self.status = end.value.status
                return

    def _compress(self, name: str) -> None:
        if self._joiner.take_pending():
            raise ProtocolError("unexpected bytes arrived between the login and compression")
        self._stream = CompressedStream(self.stream, ALGORITHMS[name])
        self._joiner.numbered = False

    def _send(self, payload: bytes) -> None:
        packets, self._joiner.sequence = frame(payload, self._joiner.sequence)
        try:
            self.stream.sendall(packets)
        except OSError as error:
            raise self._lost(self._tls_alert_or(error)) from error

    def _read(self) -> bytes:
        while (payload := self._joiner.next()) is None:
            if self._login_deadline is not None and time.monotonic() > self._login_deadline:
                self.drop()
                raise ConnectionFailed(
                    f"the login to {self.endpoint} did not end within {LOGIN_SECONDS:g} s: check the server"
                )
            size = self.receive_into(self._received)
            self._joiner.feed(self._received[:size])
        return payload

    def _converse(self, command: bytes, parser: PrepareParser | ExecuteParser) -> None:
        """Send a command, and feed `parser` until it has the whole answer."""
        self.send_command(command)
        self._read_answer(parser)

    def _read_answer(self, parser: ResultSetParser | PrepareParser | ExecuteParser) -> None:
        try:
            while not parser.feed(self._read()):
                pass
        except ProtocolError:
            self.drop()
            raise

    def _tls_alert_or(self, error: OSError) -> OSError:
        """The TLS alert with which the server closed the connection during a send; without one, `error`."""
        if isinstance(self._stream, TlsStream):
            try:
                self._stream.recv(1)
            except ssl.SSLError as alert:
                return alert
            except OSError:
                pass
        return error

    def _lost(self, error: OSError) -> EngineError:
        self.drop()
        if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError):
            return tls_rules.explain(error, str(self.endpoint), self._tls)
        if isinstance(error, TimeoutError):
            return ConnectionFailed(f"{self.endpoint} stopped answering: check the server and the network")
        return ConnectionFailed(f"the connection to {self.endpoint} was lost: {error.strerror or error}")
