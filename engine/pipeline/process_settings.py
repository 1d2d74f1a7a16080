"""What each process of a run is started with: its source or output, its sockets, its limits.

Plain dataclasses in a module that imports little, since the supervisor needs these but no process's modules.
"""

from __future__ import annotations

from dataclasses import field
from pathlib import Path

from engine.binlog.files import MAGIC_LENGTH
from engine.binlog.position import BinlogPosition
from engine.config.decode_options import DecodeOptions
from engine.config.server_address import ServerAddress
from engine.config.table_filter import TableFilter
from engine.dataclass import dataclass
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
    heartbeat_seconds: float = 5.0
    """Interval of the heartbeats of a server that has nothing to send."""
    prompt_heartbeats: bool = False
    """Ask for more of them: a snapshot waits until the stream has come to a place, which they contain."""
    semi_sync: bool = False
    """Acknowledge to the server what is safe on disk."""
    may_assume: bool = False
    """Definitions may count before they are proven (`engine.net.client.assumptions`)."""
    definitions_since: BinlogPosition | None = None
    """Read the definitions of all wanted tables when the stream starts: it starts at the end of the binlog,
    which is at this position or after it."""
    skips: tuple[Corruption, ...] = ()
    """Corrupt events to skip."""
    may_lose_prepared: bool = False
    """The server may have lost prepared XA transactions of the stream in a crash, and can say which."""
    has_prepared: bool = False
    """XA transactions are prepared where the stream starts."""


@dataclass(frozen=True, slots=True)
class FileSource:
    """Binlog files, in order, the first one from a position on."""

    files: tuple[Path, ...]
    position: int = MAGIC_LENGTH
    gtid_set: str | None = None
    skips: tuple[Corruption, ...] = ()
    """Corrupt events to skip."""


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
    slots: SlotFile | None = None
    """Shared with decoders and sink."""
    slot_count: int = 0
    """How many of the slots, from the first on, the process lends."""


@dataclass(frozen=True, slots=True)
class DecoderConfig:
    """What a decoder process is started with."""

    name: str
    batches_endpoints: tuple[str, ...]
    """Of the network process and of the snapshot process."""
    results_endpoint: str
    reports_endpoint: str
    options: DecodeOptions
    slots: SlotFile | None = None
    """Shared with the other processes."""
    ready_slots: int = 0
    """How many slots, from the first on, the stream uses as soon as it starts."""


@dataclass(frozen=True, slots=True)
class SnapshotOptions:
    """How snapshots are read in a run."""

    is_unfinished: bool = False
    """The output has requests that have not ended."""
    when_changed: bool = False
    """Request a snapshot of each table whose rows a statement changes without row events."""
    run_ends: bool = False
    """The run ends when every request has ended, and the stream has come to the end of the binlog."""
    connections: int = 4
    """How many connections read."""
    chunk_rows: int = 200_000
    """Rows that one statement reads, at most."""
    rows_per_second: int | None = None
    bytes_per_second: int | None = None
    read_from: ServerAddress | None = None
    """Another server of the topology to read the rows from; None for the stream's."""
    watched: tuple[ServerAddress, ...] = ()
    """Replicas: while one of them lags, no chunk is begun."""
    max_lag: float | None = None
    """Seconds that the stream, or such a replica, may lag; None for what suits the commit interval."""


@dataclass(frozen=True, slots=True)
class SnapshotConfig:
    """What the snapshot process is started with."""

    address: ServerAddress
    """The server of the stream."""
    out: str
    tables: TableFilter
    """The tables of the stream, which alone can be read."""
    batches_endpoint: str
    """The process binds it: decoders pull batches from it."""
    orders_endpoint: str
    answers_endpoint: str
    """The process binds it."""
    reports_endpoint: str
    options: SnapshotOptions
    commit_interval: float = 1.0
    """Seconds."""
    slots: SlotFile | None = None
    """Shared with decoders and sink; the process lends those from `first_slot` on."""
    first_slot: int = 0


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
    orders_endpoint: str
    """The sink binds it: the snapshot process pushes each `SnapshotOrder` to it."""
    answers_endpoint: str
    """The sink connects to it: the snapshot process pulls each `SnapshotAnswer` from it."""
    server_uuid: str
    """Empty if the source has none."""
    flavor: str
    """`mysql` or `mariadb`."""
    shard: str = ""
    """As in `Commit`."""
    snapshot_when_changed: bool = False
    """As in `SnapshotOptions`."""
    commit_interval: float = 1.0
    """Seconds."""
    commit_bytes: int = 256 << 20
    slots: SlotFile | None = None
    """Shared with network process and decoders."""
