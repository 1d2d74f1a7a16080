"""A replication source made of archived binlog files, for any client that speaks the replication protocol.

`ReplicationSource` listens, and gives each client a thread, which logs the client in
(`engine.net.server_login`), answers its statements (`engine.net.answers`) and sends it a dump
(`engine.net.dump`). It needs no other process of the engine.
"""

from __future__ import annotations

import contextlib
import itertools
import select
import signal
import socket
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Self

from engine.errors import EngineError
from engine.net.answers import answer
from engine.net.archive import Archive
from engine.net.capabilities import Capability
from engine.net.commands import (
    BINLOG_DUMP_NON_BLOCK,
    BinlogDump,
    Command,
    RegisterSlave,
    parse_query,
)
from engine.net.dump import FATAL_DUMP_ERROR, Dump
from engine.net.handshake import version_tuple
from engine.net.packets import Ok, PacketJoiner, ServerError, build_end, build_err, build_ok, frame
from engine.net.resultset import build_result_set
from engine.net.server_login import STATUS, Account, log_in, make_greeting
from engine.net.session import Session
from engine.net.source import Replica
from engine.net.wire import ProtocolError

CONNECTION_LIMIT = 200
MAX_COMMAND = 1 << 20
LOGIN_SECONDS = 10.0
_RECEIVE_SIZE = 1 << 14


class ReplicationSource:
    """Serves binlog files, oldest first; it listens while it is entered as a context manager.

    `port` 0 takes any free port; `port` then tells which. Without a user anybody may log in.
    """

    def __init__(
        self,
        files: Iterable[Path | str],
        host: str = "127.0.0.1",
        port: int = 0,
        user: str | None = None,
        password: str = "",
    ) -> None:
        """Raises `EngineError` for files that cannot be served."""
        self.archive = Archive(Path(file) for file in files)
        self.host = host
        self.port = port
        self.account = None if user is None else Account(user, password)
        self.replicas: dict[int, Replica] = {}
        """Replicas that have registered, by connection id."""
        self._listener: socket.socket | None = None
        self._acceptor = threading.Thread(target=self._accept, name="accept", daemon=True)
        self._clients: dict[_Client, threading.Thread] = {}
        self._connection_ids = itertools.count(1)

    def __enter__(self) -> Self:
        """Listen. Raises `EngineError` where the port cannot be had."""
        try:
            self._listener = socket.create_server((self.host, self.port))
        except OSError as error:
            raise EngineError(
                f"cannot listen on {self.host}:{self.port} ({error.strerror or error}): choose another port"
            ) from None
        self.port = self._listener.getsockname()[1]
        self._acceptor.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop listening and hang up on all clients."""
        if self._listener is not None:
            # Closing a socket does not wake the thread that waits on it.
            with contextlib.suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self._acceptor.join()
        for client, thread in list(self._clients.items()):
            client.hang_up()
            thread.join()

    def _accept(self) -> None:
        assert self._listener is not None
        while True:
            try:
                sock, address = self._listener.accept()
            except OSError:
                return
            client = _Client(self, sock, str(address[0]), next(self._connection_ids))
            if len(self._clients) >= CONNECTION_LIMIT:
                client.refuse(ServerError(1040, "08004", "Too many connections"))
                continue
            thread = threading.Thread(target=self._run, args=(client,), name="client", daemon=True)
            self._clients[client] = thread
            thread.start()

    def _run(self, client: _Client) -> None:
        try:
            client.run()
        finally:
            self.replicas.pop(client.connection_id, None)
            self._clients.pop(client, None)


class _ClientGone(Exception):
    """The client has hung up."""


class _Client:
    """One client on its thread."""

    def __init__(self, source: ReplicationSource, sock: socket.socket, host: str, connection_id: int) -> None:
        self.connection_id = connection_id
        self._source = source
        self._socket = sock
        self._host = host
        self._joiner = PacketJoiner(MAX_COMMAND)
        self._capabilities = Capability.NONE
        self._session = Session(source.archive, connection_id, "", replicas=source.replicas)

    def run(self) -> None:
        """Serve the client until it leaves, misbehaves or is hung up on."""
        with self._socket, contextlib.suppress(_ClientGone, OSError, ProtocolError):
            self._socket.settimeout(LOGIN_SECONDS)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._log_in():
                self._socket.settimeout(None)
                while self._serve_command():
                    pass

    def refuse(self, error: ServerError) -> None:
        """Turn the client away in place of a greeting."""
        with self._socket, contextlib.suppress(OSError):
            self._send(build_err(ServerError(error.code, None, error.message)))

    def hang_up(self) -> None:
        """End the connection from another thread."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def _log_in(self) -> bool:
        newest = self._source.archive.last.format
        version = version_tuple(newest.server_version)
        greeting = make_greeting(newest.server_version, newest.flavor, version, self.connection_id)
        exchange = log_in(greeting, self._source.account, self._host)
        try:
            payload = next(exchange)
            while True:
                self._send(payload)
                payload = exchange.send(self._read())
        except StopIteration as end:
            self._capabilities = end.value.capabilities
            self._session.user = end.value.response.user
            self._session.database = end.value.response.database
            for payload in end.value.farewell:
                self._send(payload)
            return True
        except ServerError as error:
            self._send(build_err(error))
        except ProtocolError as error:
            self._send(build_err(ServerError(1043, "08S01", f"Bad handshake: {error}")))
        return False

    def _serve_command(self) -> bool:
        """Answer the next command; false for the last one."""
        self._joiner.sequence = 0
        payload = self._read()
        if payload[:1] == bytes([Command.QUIT]):
            return False
        handle = _COMMANDS.get(payload[0] if payload else -1, _Client._unknown)
        try:
            handle(self, payload)
        except (ServerError, ProtocolError) as error:
            refusal = error if isinstance(error, ServerError) else ServerError(1835, "HY000", str(error))
            self._send(build_err(refusal))
        return True

    def _ok(self, payload: bytes) -> None:
        self._send(build_ok(Ok(status=STATUS), self._capabilities))

    def _use(self, payload: bytes) -> None:
        self._session.database = payload[1:].decode("utf-8", "replace")
        self._ok(payload)

    def _unknown(self, payload: bytes) -> None:
        raise ServerError(1047, "08S01", "Unknown command: this source of archived binlogs does not take it")

    def _query(self, payload: bytes) -> None:
        try:
            result = answer(parse_query(payload), self._session)
        except ServerError:
            raise
        except EngineError as error:
            raise ServerError(1105, "HY000", str(error)) from error
        if not result.columns:
            self._ok(payload)
            return
        for part in build_result_set(result.columns, result, STATUS, self._capabilities):
            self._send(part)

    def _register(self, payload: bytes) -> None:
        command = RegisterSlave.parse(payload)
        host = command.hostname or self._host
        self._source.replicas[self.connection_id] = Replica(
            command.server_id, host, command.port, self._session.replica_uuid
        )
        self._ok(payload)

    def _dump(self, payload: bytes) -> None:
        request = BinlogDump.parse(payload)
        dump = Dump(self._source.archive, request, self._session.announced_checksum)
        try:
            for piece in dump.stream():
                self._socket.sendall(piece)
        except ServerError as error:
            self._socket.sendall(dump.packet(build_err(error)))
            return
        except EngineError as error:
            refusal = ServerError(FATAL_DUMP_ERROR, "HY000", str(error))
            self._socket.sendall(dump.packet(build_err(refusal)))
            return
        if request.flags & BINLOG_DUMP_NON_BLOCK:
            self._socket.sendall(dump.packet(build_end(STATUS, self._capabilities)))
            return
        self._stay(dump)

    def _stay(self, dump: Dump) -> None:
        """Keep a client that waits for more, with a heartbeat whenever it is due, until it leaves."""
        period = self._session.heartbeat_seconds or None
        while True:
            readable, _, _ = select.select([self._socket], [], [], period)
            if not readable:
                self._socket.sendall(dump.heartbeat())
            elif not self._socket.recv(_RECEIVE_SIZE):
                raise _ClientGone

    def _send(self, payload: bytes) -> None:
        packets, self._joiner.sequence = frame(payload, self._joiner.sequence)
        self._socket.sendall(packets)

    def _read(self) -> bytes:
        while (payload := self._joiner.next()) is None:
            received = self._socket.recv(_RECEIVE_SIZE)
            if not received:
                raise _ClientGone
            self._joiner.feed(received)
        return payload


_COMMANDS: dict[int, Callable[[_Client, bytes], None]] = {
    Command.INIT_DB: _Client._use,
    Command.QUERY: _Client._query,
    Command.PING: _Client._ok,
    Command.BINLOG_DUMP: _Client._dump,
    Command.REGISTER_SLAVE: _Client._register,
    Command.RESET_CONNECTION: _Client._ok,
}


def run_server(
    files: Iterable[Path | str],
    host: str = "127.0.0.1",
    port: int = 0,
    user: str | None = None,
    password: str = "",
    announce: Callable[[str], None] = print,
) -> None:
    """Serve the files until SIGINT or SIGTERM; `announce` is told where, once clients can connect.

    Only for the main thread. Raises `EngineError` for files that cannot be served and a port that is taken.
    """
    ended = threading.Event()
    handlers = {
        number: signal.signal(number, lambda *_: ended.set()) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        with ReplicationSource(files, host, port, user, password) as source:
            names = [binlog.name for binlog in source.archive.binlogs]
            span = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]} ({len(names)} files)"
            announce(f"serving {span} on {source.host}:{source.port}")
            ended.wait()
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
