"""The commands of the command phase: built for the client, parsed for the archive server.

A command is one payload that starts with the command's code. Layouts: MySQL's protocol pages "Command Phase"
and "Replication Protocol".
"""

from __future__ import annotations

from enum import IntEnum

from engine.dataclass import dataclass
from engine.net.protocol.wire import Reader, short_bytes, uint_bytes

BINLOG_DUMP_NON_BLOCK = 0x01
"""Flag of the dump commands: send EOF at the end of the last binlog instead of waiting for more events."""
BINLOG_SEND_ANNOTATE_ROWS = 0x02
"""Flag of MariaDB's COM_BINLOG_DUMP: also send ANNOTATE_ROWS events."""
BINLOG_SEND_HEARTBEAT_V2 = 0x02
"""MySQL's meaning of the same bit, since 8.0.26: heartbeats may be of version 2, for positions over 4 GiB."""
BINLOG_THROUGH_GTID = 0x04
"""Flag of COM_BINLOG_DUMP_GTID: start where the GTID set ends; without it, start at the given position."""


class Command(IntEnum):
    """The command codes that the engine, a replica and its tools use."""

    QUIT = 0x01
    INIT_DB = 0x02
    QUERY = 0x03
    PING = 0x0E
    BINLOG_DUMP = 0x12
    REGISTER_SLAVE = 0x15
    STMT_PREPARE = 0x16
    STMT_EXECUTE = 0x17
    STMT_CLOSE = 0x19
    RESET_CONNECTION = 0x1F
    BINLOG_DUMP_GTID = 0x1E


def build_query(sql: str) -> bytes:
    """COM_QUERY, for a connection whose character set is utf8mb4."""
    return uint_bytes(Command.QUERY, 1) + sql.encode()


def build_quit() -> bytes:
    """COM_QUIT: the server closes the connection without an answer."""
    return uint_bytes(Command.QUIT, 1)


@dataclass(frozen=True, slots=True)
class RegisterSlave:
    """COM_REGISTER_SLAVE: a replica registers. Servers only display its user and password."""

    server_id: int
    hostname: str = ""
    user: str = ""
    password: str = ""
    port: int = 0
    rank: int = 0
    source_id: int = 0

    def build(self) -> bytes:
        """The command; raises `ValueError` for texts of more than 255 bytes."""
        return b"".join(
            (
                uint_bytes(Command.REGISTER_SLAVE, 1),
                uint_bytes(self.server_id, 4),
                short_bytes(self.hostname.encode()),
                short_bytes(self.user.encode()),
                short_bytes(self.password.encode()),
                uint_bytes(self.port, 2),
                uint_bytes(self.rank, 4),
                uint_bytes(self.source_id, 4),
            )
        )

    @classmethod
    def parse(cls, payload: bytes) -> RegisterSlave:
        """The command from its bytes; raises `ProtocolError`."""
        reader = _open(payload, Command.REGISTER_SLAVE)
        return cls(
            server_id=reader.uint(4),
            hostname=_text(reader.short_bytes()),
            user=_text(reader.short_bytes()),
            password=_text(reader.short_bytes()),
            port=reader.uint(2),
            rank=reader.uint(4),
            source_id=reader.uint(4),
        )


@dataclass(frozen=True, slots=True)
class BinlogDump:
    """COM_BINLOG_DUMP: the server sends events from then on. An empty `file` means its first binlog."""

    file: str
    position: int
    server_id: int
    flags: int = 0

    def build(self) -> bytes:
        """The command; raises `OverflowError` for a position of 4 GiB or more: its field has 4 bytes."""
        return b"".join(
            (
                uint_bytes(Command.BINLOG_DUMP, 1),
                uint_bytes(self.position, 4),
                uint_bytes(self.flags, 2),
                uint_bytes(self.server_id, 4),
                self.file.encode(),
            )
        )

    @classmethod
    def parse(cls, payload: bytes) -> BinlogDump:
        """The command from its bytes; raises `ProtocolError`."""
        reader = _open(payload, Command.BINLOG_DUMP)
        position, flags, server_id = reader.uint(4), reader.uint(2), reader.uint(4)
        return cls(_text(reader.nul_bytes_or_rest()), position, server_id, flags)


@dataclass(frozen=True, slots=True)
class BinlogDumpGtid:
    """COM_BINLOG_DUMP_GTID: a dump without the transactions of `gtid_data`, a GTID set in its binary form."""

    server_id: int
    gtid_data: bytes
    file: str = ""
    position: int = 4
    flags: int = BINLOG_THROUGH_GTID

    def build(self) -> bytes:
        """The command."""
        file = self.file.encode()
        return b"".join(
            (
                uint_bytes(Command.BINLOG_DUMP_GTID, 1),
                uint_bytes(self.flags, 2),
                uint_bytes(self.server_id, 4),
                uint_bytes(len(file), 4) + file,
                uint_bytes(self.position, 8),
                uint_bytes(len(self.gtid_data), 4) + self.gtid_data,
            )
        )

    @classmethod
    def parse(cls, payload: bytes) -> BinlogDumpGtid:
        """The command from its bytes; raises `ProtocolError`."""
        reader = _open(payload, Command.BINLOG_DUMP_GTID)
        flags, server_id = reader.uint(2), reader.uint(4)
        file = _text(reader.take(reader.uint(4)))
        position = reader.uint(8)
        gtid_data = reader.take(reader.uint(4)) if reader.remaining else b""
        return cls(server_id, gtid_data, file, position, flags)


def parse_query(payload: bytes) -> str:
    """The statement of a COM_QUERY without query attributes."""
    return _text(_open(payload, Command.QUERY).rest())


def _open(payload: bytes, command: Command) -> Reader:
    reader = Reader(payload, f"COM_{command.name}")
    if reader.uint(1) != command:
        raise reader.fail(f"the command code is 0x{payload[0]:02x}, not 0x{command:02x}")
    return reader


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Replica:
    """A replica that is registered with the server."""

    server_id: int
    host: str
    port: int
    uuid: str | None
    """The replica's `server_uuid`; None if it sent none, as MariaDB's replicas do."""
