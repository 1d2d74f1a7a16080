"""One client of the source that we serve: logged in, its statements answered, its dump sent.

The conversation of a server's session, from the greeting to the last packet, on a blocking socket with a
thread of its own. Encryption begins where the client asks for it, between the greeting and its answer.
"""

from __future__ import annotations

import contextlib
import select
import socket
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from engine.binlog.files import MAGIC_LENGTH
from engine.binlog.gtid_encoding import decode_gtid_set
from engine.binlog.gtid_set import MariadbGtidSet
from engine.errors import EngineError
from engine.net.archive_server.answers import answer
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
class Served:
    """What all clients of a source share."""

    archive: Archive
    account: Account | None
    """Who may log in; null for anybody."""
    tls: ServerTls
    replicas: dict[int, Replica] = field(default_factory=dict)
    """Replicas that have registered, by connection id."""


class _ClientGone(Exception):
    """The client has hung up."""


class ServedClient:
    """One client on its thread."""

    def __init__(self, served: Served, sock: socket.socket, host: str, connection_id: int) -> None:
        self.connection_id = connection_id
        self._served = served
        self._socket = sock
        self._host = host
        self._joiner = PacketJoiner(MAX_COMMAND)
        self._capabilities = Capability.NONE
        self._session = Session(served.archive, connection_id, "", replicas=served.replicas)

    def run(self) -> None:
        """Serve the client until it leaves, misbehaves or is hung up on."""
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
            self._served.replicas.pop(self.connection_id, None)
            self._close()

    def refuse(self, error: ServerError) -> None:
        """Turn the client away in place of a greeting."""
        with self._socket, contextlib.suppress(OSError):
            self._send(build_err(ServerError(error.code, None, error.message)))

    def hang_up(self) -> None:
        """End the connection from another thread."""
        with contextlib.suppress(OSError):
            # Not TLS's own, which would have its thread go on in clear.
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def _close(self) -> None:
        with contextlib.suppress(OSError):
            # Bytes that nobody has read would have the system throw away our last words.
            self._socket.setblocking(False)
            self._socket.recv(_RECEIVE_SIZE)
        self._socket.close()

    def _log_in(self) -> bool:
        newest = self._served.archive.last.format
        version = version_tuple(newest.server_version)
        greeting = make_greeting(newest.server_version, newest.flavor, version, self.connection_id)
        exchange = log_in(greeting, self._served.account, self._host, self._served.tls.fingerprint)
        try:
            self._send(next(exchange))
            payload = self._read()
            if is_ssl_request(payload):
                self._socket = self._served.tls.context.wrap_socket(self._socket, server_side=True)
                payload = self._read()
            while True:
                self._send(exchange.send(payload))
                payload = self._read()
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
        handle = _COMMANDS.get(payload[0] if payload else -1, ServedClient._unknown)
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
        raise ServerError(1047, "08S01", "Unknown command: this source of archived binlogs does not take it")

    def _query(self, payload: bytes) -> None:
        result = answer(parse_query(payload), self._session)
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
        self._served.replicas[self.connection_id] = Replica(
            command.server_id, host, command.port, self._session.replica_uuid
        )
        self._ok(payload)

    def _dump_by_place(self, payload: bytes) -> None:
        request = BinlogDump.parse(payload)
        state = self._session.connect_state
        if self._served.archive.last.format.flavor != "mariadb" or state is None:
            self._dump(request, None)
            return
        if self._session.variables.get("slave_until_gtid"):
            raise dump_refusal("this source of archived binlogs does not stop at a GTID: leave out UNTIL")
        gtids = MariadbReplicaGtids(MariadbGtidSet.parse(state))
        self._dump(replace(request, file="", position=MAGIC_LENGTH), gtids)

    def _dump_by_gtid(self, payload: bytes) -> None:
        request = BinlogDumpGtid.parse(payload)
        self._dump(request, MysqlReplicaGtids(decode_gtid_set(request.gtid_data)))

    def _dump(self, request: BinlogDump | BinlogDumpGtid, gtids: ReplicaGtids | None) -> None:
        dump = Dump(self._served.archive, request, self._session.announced_checksum, gtids)
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
            # No more than this packet: the first bytes of TLS may follow right behind it.
            received = self._socket.recv(self._joiner.missing)
            if not received:
                raise _ClientGone
            self._joiner.feed(received)
        return payload


_COMMANDS: dict[int, Callable[[ServedClient, bytes], None]] = {
    Command.INIT_DB: ServedClient._use,
    Command.QUERY: ServedClient._query,
    Command.PING: ServedClient._ok,
    Command.BINLOG_DUMP: ServedClient._dump_by_place,
    Command.BINLOG_DUMP_GTID: ServedClient._dump_by_gtid,
    Command.REGISTER_SLAVE: ServedClient._register,
    Command.RESET_CONNECTION: ServedClient._reset,
}
