"""What the network process is started with: where the events come from, and which sockets lead on.

Plain dataclasses in a module that imports little, since the supervisor needs them and none of the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.decode.options import DecodeOptions
from engine.errors import EngineError
from engine.messages import Corruption
from engine.net.auth import check_public_key
from engine.net.connection import NO_TLS, Connection
from engine.net.files import MAGIC_LENGTH
from engine.net.secret import Secret
from engine.net.tls import Tls
from engine.net.wire import ProtocolError
from engine.slot_file import SlotFile


@dataclass(frozen=True, slots=True)
class Login:
    """As whom to connect, and how safely: the same for every server that a run may turn to."""

    user: str
    passwords: tuple[Secret, ...] = (Secret(),)
    """One per factor, in the server's order."""
    tls: Tls = NO_TLS
    compression: str = "none"
    server_public_key: Path | None = None
    """File of the server's RSA key, for passwords over connections without TLS."""

    def public_key(self) -> bytes | None:
        """The key in PEM form; raises `EngineError` for a file that holds none."""
        if self.server_public_key is None:
            return None
        try:
            key = self.server_public_key.read_bytes()
            check_public_key(key)
        except OSError as error:
            raise EngineError(
                f"--server-public-key {self.server_public_key} cannot be read: {error.strerror}"
            ) from None
        except ProtocolError:
            raise EngineError(
                f"--server-public-key {self.server_public_key} holds no RSA key in PEM form"
            ) from None
        return key


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """A server, and how to log in to it."""

    host: str
    port: int
    login: Login
    unix_socket: str | None = None

    def connect(self) -> Connection:
        """A logged-in session; raises `EngineError` in one sentence."""
        password, *further = (each.reveal() for each in self.login.passwords)
        return Connection.open(
            self.host,
            self.port,
            self.login.user,
            password,
            unix_socket=self.unix_socket,
            attributes={"program_name": "binlog-engine"},
            tls=self.login.tls,
            compression=self.login.compression,
            public_key=self.login.public_key(),
            further_passwords=further,
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
    server_uuid: str | None = None
    """The server that the place is of; another one that answers instead is not followed."""
    heartbeat_seconds: float = 5.0
    """How often a server that has nothing to send says so."""
    semi_sync: bool = False
    """Acknowledge to the server what is safe on disk."""
    name_unknown_columns: bool = False
    """Give columns whose names are not certain the names @1, @2…, instead of stopping."""
    skips: tuple[Corruption, ...] = ()
    """Corrupt events to go past."""


@dataclass(frozen=True, slots=True)
class FileSource:
    """Binlog files, in order, the first one from a position on."""

    files: tuple[Path, ...]
    position: int = MAGIC_LENGTH
    gtid_set: str | None = None
    skips: tuple[Corruption, ...] = ()
    """Corrupt events to go past."""


WINDOW_BYTES = 64 << 20
"""Bytes of batches that may be on their way between network process and sink; one batch may always be."""


@dataclass(frozen=True, slots=True)
class NetworkConfig:
    """What the network process is started with."""

    origin: ServerSource | FileSource
    batches_endpoint: str
    acks_endpoint: str
    reports_endpoint: str
    decode: DecodeOptions
    """What the decoders will make of it: what they would leave out never goes to them."""
    decoders: int = 1
    """How many there are."""
    window_bytes: int = WINDOW_BYTES
    slots: SlotFile | None = None
    """Shared with decoders and sink."""
