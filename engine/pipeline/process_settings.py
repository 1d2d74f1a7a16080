"""What the network process is started with: where the events come from, and which sockets lead on.

Plain dataclasses in a module that imports little, since the supervisor needs them and none of the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.binlog.files import MAGIC_LENGTH
from engine.config.decode_options import DecodeOptions
from engine.config.server_address import ServerAddress
from engine.pipeline.messages import Corruption
from engine.pipeline.slot_file import SlotFile


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


@dataclass(frozen=True, slots=True)
class DecoderConfig:
    """What a decoder process is started with."""

    name: str
    batches_endpoint: str
    results_endpoint: str
    reports_endpoint: str
    options: DecodeOptions
    slots: SlotFile | None = None
    """Shared with network process and sink."""


ROLL_BYTES = 256 << 20
"""A data file that has reached this size is followed by another one."""


@dataclass(frozen=True, slots=True)
class SinkConfig:
    """What the supervisor tells the sink."""

    out: str
    expected_commit: int
    """`OutputState.commit` of the state from which the source is read on; -1 for a new output."""
    results_endpoint: str
    """Bound here: decoders push `Result`s to it."""
    acks_endpoint: str
    """Connected to: the network process pulls `Ack`s from it."""
    reports_endpoint: str
    """Connected to: the supervisor pulls `Report`s from it."""
    server_uuid: str
    """Empty if the source has none."""
    flavor: str
    """`mysql` or `mariadb`."""
    commit_interval: float = 1.0
    """Seconds."""
    commit_bytes: int = 256 << 20
    roll_bytes: int = ROLL_BYTES
    slots: SlotFile | None = None
    """Shared with network process and decoders."""
