"""What each process of a run is started with: its source or output, its sockets, its limits.

Plain dataclasses in a module that imports little, since the supervisor needs these but no process's modules.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from engine.binlog.files import MAGIC_LENGTH
from engine.binlog.position import BinlogPosition
from engine.config.decode_options import DecodeOptions
from engine.config.server_address import ServerAddress
from engine.pipeline.messages import Corruption
from engine.pipeline.slot_file import SlotFile


@dataclass(frozen=True, slots=True)
class ServerSource:
    """A server's binlog from a position on."""

    address: ServerAddress
    file: str
    position: int
    gtid_set: str | None
    """The executed set at that position; None if not known."""
    by_gtid: bool
    """Request what is not in `gtid_set`; file and position, which may be another server's, are ignored."""
    server_id: int
    replica_uuid: str
    """The same for all runs of an output folder, so that a server replaces the old run's dump by the new."""
    stop_at_end: bool
    server_uuid: str | None = None
    """The server of that position; if another server answers instead, the run ends."""
    heartbeat_seconds: float = 5.0
    """Interval of the heartbeats of a server that has nothing to send."""
    semi_sync: bool = False
    """Acknowledge to the server what is safe on disk."""
    lower_case_table_names: int = 0
    """The server's setting: 0 exact, 1 stored in lower case, 2 compared without regard to case."""
    definitions_since: BinlogPosition | None = None
    """Read the definitions of all wanted tables when the stream starts: it starts at the end of the binlog,
    which is at this position or after it."""
    skips: tuple[Corruption, ...] = ()
    """Corrupt events to skip."""


@dataclass(frozen=True, slots=True)
class FileSource:
    """Binlog files, in order, the first one from a position on."""

    files: tuple[Path, ...]
    position: int = MAGIC_LENGTH
    gtid_set: str | None = None
    skips: tuple[Corruption, ...] = ()
    """Corrupt events to skip."""


WINDOW_BYTES = 64 << 20
"""Limit on the bytes of batches between network process and sink; one batch is always allowed."""


@dataclass(frozen=True, slots=True)
class SchemaOptions:
    """Where the table definitions come from that a run starts with."""

    out: str | None = None
    """The output that it continues, whose commit log has the definitions; None for a new output."""
    commit: int = -1
    """The commit that it continues after."""
    schema_file: Path | None = None
    """DDL statements that define tables, for those that the stream does not define."""
    numbers_unknown: bool = False
    """Give columns whose names are not certain the names @1, @2…, instead of stopping."""


@dataclass(frozen=True, slots=True)
class NetworkConfig:
    """What the network process is started with."""

    origin: ServerSource | FileSource
    batches_endpoint: str
    acks_endpoint: str
    reports_endpoint: str
    decode: DecodeOptions
    """The decoders' options: what they would leave out is not sent to them."""
    flavor: str = "mysql"
    """`mysql` or `mariadb`."""
    schema: SchemaOptions = field(default_factory=SchemaOptions)
    decoders: int = 1
    """Number of decoders."""
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
"""Size from which on a data file is closed and the next one begun."""


@dataclass(frozen=True, slots=True)
class SinkConfig:
    """What the sink process is started with."""

    out: str
    expected_commit: int
    """`OutputState.commit` of the state from which the source resumes; -1 for a new output."""
    results_endpoint: str
    """The sink binds it: decoders push each `Result` to it."""
    acks_endpoint: str
    """The sink connects to it: the network process pulls each `Ack` from it."""
    reports_endpoint: str
    """The sink connects to it: the supervisor pulls each `Report` from it."""
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
