"""What the network process is started with: where the events come from, and which sockets lead on.

Plain dataclasses in a module that imports little, since the supervisor needs them and none of the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.net.connection import Connection
from engine.net.files import MAGIC_LENGTH
from engine.net.secret import Secret


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """How to reach a server, and as whom."""

    host: str
    port: int
    user: str
    password: Secret
    unix_socket: str | None = None

    def connect(self) -> Connection:
        """A logged-in session; raises `EngineError` in one sentence."""
        return Connection.open(
            self.host,
            self.port,
            self.user,
            self.password.reveal(),
            unix_socket=self.unix_socket,
            attributes={"program_name": "binlog-engine"},
        )


@dataclass(frozen=True, slots=True)
class ServerSource:
    """A server's binlog from a place on."""

    address: ServerAddress
    file: str
    position: int
    gtid_set: str | None
    """The executed set at that place, where it is known."""
    by_gtid: bool
    """Ask for what is not in `gtid_set`; file and position, which may be another server's, do not count."""
    server_id: int
    replica_uuid: str
    """Stays the same for an output folder, so that a server takes a new run for the old one's successor."""
    stop_at_end: bool
    heartbeat_seconds: float = 5.0
    tables: tuple[str, ...] = ()
    name_unknown_columns: bool = False
    """Give columns that nobody can name any more the names @1, @2…, instead of stopping."""


@dataclass(frozen=True, slots=True)
class FileSource:
    """Binlog files, in order, the first one from a position on."""

    files: tuple[Path, ...]
    position: int = MAGIC_LENGTH
    gtid_set: str | None = None


WINDOW_BYTES = 64 << 20
"""Bytes of batches that may be on their way between network process and sink; one batch may always be."""


@dataclass(frozen=True, slots=True)
class NetworkConfig:
    """What the network process is started with."""

    origin: ServerSource | FileSource
    batches_endpoint: str
    acks_endpoint: str
    reports_endpoint: str
    window_bytes: int = WINDOW_BYTES
