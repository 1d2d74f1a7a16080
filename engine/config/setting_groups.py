"""The groups of settings that commands share: a server's connection, the pipeline, the log and others.

Each is a frozen dataclass in the notation of `engine.config.setting`, and a field of the commands' settings
(`engine.config.settings`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from engine.config.option_file import OptionFile
from engine.config.output_place import OutputPlace
from engine.config.rates import RateLimit
from engine.config.retention import Retention
from engine.config.server_address import named_server
from engine.config.setting import Setting
from engine.config.shard import Shard
from engine.config.table_filter import TableFilter
from engine.dataclass import dataclass

_DAY = 86_400
WANTED_TABLES = "tables wanted, as database.table patterns with * and ?, separated by commas"
EXCLUDED_TABLES = "tables not wanted, in the same way"

TlsChoice = Literal["disabled", "preferred", "required", "verify-ca", "verify-identity"]
TlsVersion = Literal["1.0", "1.1", "1.2", "1.3"]
Compression = Literal["none", "zlib", "zstd"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionSettings:
    """How to reach a server and log in to it."""

    host: Annotated[str, Setting("server to read from; several with commas, tried in turn")] = "127.0.0.1"
    port: Annotated[int, Setting("port of the server", least=1, most=65535)] = 3306
    socket: Annotated[Path | None, Setting("unix socket of the server, instead of host and port")] = None
    user: Annotated[str, Setting("user with the privileges REPLICATION SLAVE, REPLICATION CLIENT and SELECT")]
    password_env: Annotated[
        str | None, Setting("environment variable that holds the password [MYSQL_PWD]")
    ] = None
    password_file: Annotated[Path | None, Setting("file that holds the password")] = None
    password2_env: Annotated[
        str | None, Setting("variable with the second password, of an account with several factors")
    ] = None
    password2_file: Annotated[Path | None, Setting("file with the second password")] = None
    password3_env: Annotated[str | None, Setting("variable with the third password")] = None
    password3_file: Annotated[Path | None, Setting("file with the third password")] = None
    defaults_file: Annotated[
        Path | None, Setting("MySQL option file: [client] and [binlog-engine] say how to connect")
    ] = None
    options: OptionFile | None = None
    """The content of `defaults_file`, of which the passwords are not settings."""
    tls: Annotated[
        TlsChoice | None,
        Setting("encryption of the connection, and verification [preferred; verify-ca with --tls-ca]"),
    ] = None
    tls_ca: Annotated[
        Path | None, Setting("file of authorities to trust [those that this machine trusts]")
    ] = None
    tls_cert: Annotated[
        Path | None, Setting("file of the client certificate, if the server asks for one")
    ] = None
    tls_key: Annotated[
        Path | None, Setting("file of the client certificate's key [the file of --tls-cert]")
    ] = None
    tls_min_version: Annotated[TlsVersion, Setting("oldest TLS version to accept")] = "1.2"
    compression: Annotated[Compression, Setting("compression of the connection")] = "none"
    server_public_key: Annotated[
        Path | None, Setting("file of the server's RSA key, for passwords without TLS")
    ] = None
    server_id: Annotated[
        int,
        Setting("server id of the engine as a replica [chosen by the engine]", least=0, most=(1 << 32) - 1),
    ] = 0

    @property
    def unix_socket(self) -> str | None:
        """The path of the unix socket as Python's `socket` takes it."""
        return None if self.socket is None else str(self.socket)


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineSettings:
    """What is decoded, and how it is committed to the output folder."""

    out: Annotated[OutputPlace, Setting("output folder, or s3://BUCKET/PREFIX (gs://, az://)")]
    workers: Annotated[
        int, Setting("decoder processes [one less than there are cores]", least=0, most=256)
    ] = 0
    tables: Annotated[tuple[str, ...], Setting(WANTED_TABLES)] = ()
    exclude_tables: Annotated[tuple[str, ...], Setting(EXCLUDED_TABLES)] = ()
    shard: Annotated[
        str | None, Setting("only the tables of one shard, such as 2/4, if several engines share a server")
    ] = None
    commit_interval: Annotated[
        float | None,
        Setting("seconds from the first row to its commit [1, 0 with semi-sync]", least=0, most=_DAY),
    ] = None
    commit_bytes: Annotated[
        int, Setting("bytes after which a commit is made before its interval is over", least=1)
    ] = 256 << 20
    temporal: Annotated[Literal["arrow", "text"], Setting("temporal columns as Arrow types or as text")] = (
        "arrow"
    )
    bookkeeping_events: Annotated[
        bool, Setting("also GTIDs, BEGIN, COMMIT, XID and table maps in the events feed")
    ] = False
    on_corrupt: Annotated[
        Literal["stop", "skip"],
        Setting("at a corrupt event: stop, or skip its whole transaction and record that in the events feed"),
    ] = "stop"
    unknown_columns: Annotated[
        Literal["stop", "number"] | None,
        Setting(
            "when a table's columns cannot be named for certain: stop, or number them (@1, @2…) "
            "[stop; number for files]"
        ),
    ] = None
    schema_file: Annotated[
        Path | None,
        Setting("file of CREATE TABLE statements (mysqldump --no-data), for tables without certain columns"),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSettings:
    """Where following a server starts, how it continues and when it ends."""

    start: Annotated[
        str,
        Setting(
            "where a new output starts: snapshot (the rows that are there, then every change), earliest, "
            "latest, FILE:POSITION, gtid:SET, or 2026-11-20T08:00:00Z"
        ),
    ] = "earliest"
    retry_seconds: Annotated[
        float, Setting("how long to keep trying when the connection is lost", least=0)
    ] = 600.0
    heartbeat_seconds: Annotated[
        float, Setting("seconds between the heartbeats of an idle server", least=0.001, most=_DAY)
    ] = 5.0
    semi_sync: Annotated[
        bool, Setting("have the server's commits wait until the engine has committed their rows")
    ] = False
    stop_at_end: Annotated[bool, Setting("drain what the server has, then exit")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotReadingSettings:
    """How a run reads the rows of snapshots."""

    snapshot_workers: Annotated[
        int, Setting("connections that read the rows of snapshots", least=1, most=256)
    ] = 4
    snapshot_host: Annotated[
        str | None, Setting("replica to read the rows of snapshots from, as HOST or HOST:PORT")
    ] = None
    snapshot_when_changed: Annotated[
        bool, Setting("read a table again when a statement changed its rows without row events")
    ] = False
    snapshot_chunk_rows: Annotated[int, Setting("rows that one statement reads, at most", least=1)] = 200_000
    snapshot_rate: Annotated[
        str | None, Setting("what snapshots read in a second, at most: rows (50000) or bytes (20MB)")
    ] = None
    snapshot_watch: Annotated[
        tuple[str, ...],
        Setting("replicas, as HOST:PORT with commas: while one lags, snapshots begin no chunk"),
    ] = ()
    snapshot_max_lag: Annotated[
        float | None,
        Setting(
            "seconds of lag of the stream, or of a replica of --snapshot-watch, at which snapshots slow down "
            "[about 1.5 commit intervals]",
            least=0.001,
            most=_DAY,
        ),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """The log of a command on standard error."""

    log_format: Annotated[
        Literal["text", "json"] | None,
        Setting(
            "log lines with time, level and run id, for people or as JSON objects [no log: warnings and "
            "progress as plain text]"
        ),
    ] = None
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], Setting("lowest level of the lines of --log-format")
    ] = "info"


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitoringSettings:
    """How a run can be watched."""

    http: Annotated[
        str | None,
        Setting(
            "address of metrics, probes and a status page: HOST:PORT, or PORT on this machine only [none]"
        ),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceSettings:
    """What a run does about old data."""

    compact: Annotated[
        Literal["on", "off"], Setting("merge the small files of old commits into large ones")
    ] = "on"
    retain: Annotated[
        str | None,
        Setting("how much to keep, such as 30d or 500GB; what a consumer has not read is kept, too [all]"),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowSettings:
    """How a server is followed into an output: of `run`, and of each source of a fleet.

    Raises `EngineError` for a text that is not valid, so that a reload is refused before a run ends for it.
    """

    connection: ConnectionSettings
    pipeline: PipelineSettings
    stream: StreamSettings
    snapshot: SnapshotReadingSettings = SnapshotReadingSettings()
    maintenance: MaintenanceSettings = MaintenanceSettings()

    def __post_init__(self) -> None:
        TableFilter(self.pipeline.tables, self.pipeline.exclude_tables)
        if self.pipeline.shard is not None:
            Shard.parse(self.pipeline.shard)
        if self.maintenance.retain is not None:
            Retention.parse(self.maintenance.retain)
        RateLimit.parse(self.snapshot.snapshot_rate)
        for name in self.connection.host.split(","):
            named_server(name, f"--host {self.connection.host}")
        if self.snapshot.snapshot_host is not None:
            named_server(self.snapshot.snapshot_host, "--snapshot-host")
        for name in self.snapshot.snapshot_watch:
            named_server(name, "--snapshot-watch")
