"""One client's connection to the archive server: login, statements, dump.

Each connection has a blocking socket and a thread, which runs it from the greeting to the last packet.
Encryption begins if the client requests it, between the greeting and the handshake response.
"""

from __future__ import annotations

import contextlib
import select
import socket
from collections.abc import Callable
from dataclasses import field, replace

from engine.binlog.files import MAGIC_LENGTH
from engine.binlog.gtid_encoding import decode_gtid_set
from engine.binlog.gtid_set import MariadbGtidSet
from engine.dataclass import dataclass
from engine.errors import EngineError
from engine.net.archive_server.archive import Archive
from engine.net.archive_server.dump import Dump
from engine.net.archive_server.replica_gtids import (
    MariadbReplicaGtids,
    MysqlReplicaGtids,
    ReplicaGtids,
    dump_refusal,
)
from engine.net.archive_server.server_login import STATUS, Account, log_in, make_greeting
from engine.net.archive_server.server_tls import ServerTls
from engine.net.archive_server.session import Session
from engine.net.archive_server.statements import execute_statement
from engine.net.protocol.capabilities import Capability
from engine.net.protocol.commands import (
    BINLOG_DUMP_NON_BLOCK,
    BinlogDump,
    BinlogDumpGtid,
    Command,
    RegisterSlave,
    Replica,
    parse_query,
)
from engine.net.protocol.handshake import is_ssl_request, version_tuple
from engine.net.protocol.packets import Ok, PacketJoiner, ServerError, build_end, build_err, build_ok, frame
from engine.net.protocol.resultset import build_result_set
from engine.net.protocol.wire import ProtocolError

MAX_COMMAND = 1 << 20
LOGIN_SECONDS = 10.0
_RECEIVE_SIZE = 1 << 14


@dataclass(frozen=True, slots=True)
class ServerState:
    """The state that all connections of one archive server share."""

    archive: Archive
    account: Account | None
    """The account that can log in; None accepts every client."""
    tls: ServerTls
    replicas: dict[int, Replica] = field(default_factory=dict)
    """The registered replicas by connection id."""


class _ClientGone(Exception):
    """The client has closed the connection."""


class ClientConnection:
    """One client's connection; `run` is the main function of its thread."""

    def __init__(self, state: ServerState, sock: socket.socket, host: str, connection_id: int) -> None:
        self.connection_id = connection_id
        self._state = state
        self._socket = sock
        self._host = host
        self._joiner = PacketJoiner(MAX_COMMAND)
        self._capabilities = Capability.NONE
        self._session = Session(state.archive, connection_id, "", replicas=state.replicas)

    def run(self) -> None:
        """Serve the client until it disconnects, violates the protocol or is disconnected."""
        try:
            self._socket.settimeout(LOGIN_SECONDS)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._log_in():
                self._socket.settimeout(None)
                while self._serve_command():
                    pass
        except (_ClientGone, OSError, ProtocolError):
            pass
        finally:
            self._state.replicas.pop(self.connection_id, None)
            self._close()

    def refuse(self, error: ServerError) -> None:
        """Send an error instead of the greeting and close the connection."""
        with self._socket, contextlib.suppress(OSError):
            self._send(build_err(ServerError(error.code, None, error.message)))

    def disconnect(self) -> None:
        """End the connection from another thread."""
        with contextlib.suppress(OSError):
            # Not the TLS socket's own method: it removes TLS, and the thread would continue in clear.
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def _close(self) -> None:
        with contextlib.suppress(OSError):
            # If received bytes are unread, closing resets the connection and the last packets are lost.
            self._socket.setblocking(False)
            self._socket.recv(_RECEIVE_SIZE)
        self._socket.close()

    def _log_in(self) -> bool:
        newest = self._state.archive.last.format
        version = version_tuple(newest.server_version)
        greeting = make_greeting(newest.server_version, newest.flavor, version, self.connection_id)
        exchange = log_in(greeting, self._state.account, self._host, self._state.tls.fingerprint)
        try:
            self._send(next(exchange))
            payload = self._read()
            if is_ssl_request(payload):
                self._socket = self._state.tls.context.wrap_socket(self._socket, server_side=True)
                payload = self._read()
            while True:
                self._send(exchange.send(payload))
                payload = self._read()
        except StopIteration as end:
            self._capabilities = end.value.capabilities
            self._session.user = end.value.response.user
            self._session.database = end.value.response.database
            for payload in end.value.final_payloads:
                self._send(payload)
            return True
        except ServerError as error:
            self._send(build_err(error))
        except ProtocolError as error:
            self._send(build_err(ServerError(1043, "08S01", f"Bad handshake: {error}")))
        return False

    def _serve_command(self) -> bool:
        """Answer the next command; false for COM_QUIT."""
        self._joiner.sequence = 0
        payload = self._read()
        if payload[:1] == bytes([Command.QUIT]):
            return False
        handle = _COMMANDS.get(payload[0] if payload else -1, ClientConnection._unknown)
        try:
            handle(self, payload)
        except ServerError as error:
            self._send(build_err(error))
        except ProtocolError as error:
            self._send(build_err(ServerError(1835, "HY000", str(error))))
        except EngineError as error:
            self._send(build_err(ServerError(1105, "HY000", str(error))))
        return True

    def _ok(self, payload: bytes) -> None:
        self._send(build_ok(Ok(status=STATUS), self._capabilities))

    def _use(self, payload: bytes) -> None:
        self._session.database = payload[1:].decode("utf-8", "replace")
        self._ok(payload)

    def _unknown(self, payload: bytes) -> None:
        raise ServerError(1047, "08S01", "Unknown command: this server of archived binlogs does not take it")

    def _query(self, payload: bytes) -> None:
        result = execute_statement(parse_query(payload), self._session)
        if not result.columns:
            self._ok(payload)
            return
        for part in build_result_set(result.columns, result, STATUS, self._capabilities):
            self._send(part)

    def _reset(self, payload: bytes) -> None:
        self._session.variables.clear()
        self._ok(payload)

    def _register(self, payload: bytes) -> None:
        command = RegisterSlave.parse(payload)
        host = command.hostname or self._host
        self._state.replicas[self.connection_id] = Replica(
            command.server_id, host, command.port, self._session.replica_uuid
        )
        self._ok(payload)

    def _dump_by_position(self, payload: bytes) -> None:
        request = BinlogDump.parse(payload)
        state = self._session.connect_state
        if self._state.archive.last.format.flavor != "mariadb" or state is None:
            self._dump(request, None)
            return
        if self._session.variables.get("slave_until_gtid"):
            raise dump_refusal("this server of archived binlogs cannot stop at a GTID: leave out UNTIL")
        gtids = MariadbReplicaGtids(MariadbGtidSet.parse(state))
        self._dump(replace(request, file="", position=MAGIC_LENGTH), gtids)

    def _dump_by_gtid(self, payload: bytes) -> None:
        request = BinlogDumpGtid.parse(payload)
        self._dump(request, MysqlReplicaGtids(decode_gtid_set(request.gtid_data)))

    def _dump(self, request: BinlogDump | BinlogDumpGtid, gtids: ReplicaGtids | None) -> None:
        dump = Dump(
            self._state.archive,
            request,
            self._session.announced_checksum,
            gtids,
            expects_heartbeats=self._session.heartbeat_seconds > 0,
        )
        try:
            for piece in dump.stream():
                self._socket.sendall(piece)
        except ServerError as error:
            self._socket.sendall(dump.packet(build_err(error)))
        except EngineError as error:
            self._socket.sendall(dump.packet(build_err(dump_refusal(str(error)))))
        else:
            if request.flags & BINLOG_DUMP_NON_BLOCK:
                self._socket.sendall(dump.packet(build_end(STATUS, self._capabilities)))
            else:
                self._send_heartbeats(dump)

    def _send_heartbeats(self, dump: Dump) -> None:
        """Send a heartbeat each period to a client that waits for more events, until it disconnects."""
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
            # Receive this packet only: the first bytes of TLS may follow it.
            received = self._socket.recv(self._joiner.missing)
            if not received:
                raise _ClientGone
            self._joiner.feed(received)
        return payload


_COMMANDS: dict[int, Callable[[ClientConnection, bytes], None]] = {
    Command.INIT_DB: ClientConnection._use,
    Command.QUERY: ClientConnection._query,
    Command.PING: ClientConnection._ok,
    Command.BINLOG_DUMP: ClientConnection._dump_by_position,
    Command.BINLOG_DUMP_GTID: ClientConnection._dump_by_gtid,
    Command.REGISTER_SLAVE: ClientConnection._register,
    Command.RESET_CONNECTION: ClientConnection._reset,
}
