"""The settings of every command: one frozen dataclass per command, and the groups that commands share.

The dataclasses are the only declaration of the flags, environment variables and TOML keys
(`engine.config.setting` describes the notation), and commands receive their instances.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from engine.config.setting import Setting

_DAY = 86_400

TlsChoice = Literal["disabled", "preferred", "required", "verify-ca", "verify-identity"]
TlsVersion = Literal["1.0", "1.1", "1.2", "1.3"]
Compression = Literal["none", "zlib", "zstd"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionSettings:
    """How to reach a server and log in to it."""

    host: Annotated[str, Setting("server to read from; several with commas, tried in turn")] = "127.0.0.1"
    port: Annotated[int, Setting("its port", least=1, most=65535)] = 3306
    socket: Annotated[Path | None, Setting("its unix socket, instead of host and port")] = None
    user: Annotated[str, Setting("user with REPLICATION SLAVE (and best REPLICATION CLIENT, and SELECT)")]
    password_env: Annotated[
        str | None, Setting("environment variable that holds the password [MYSQL_PWD]")
    ] = None
    password_file: Annotated[Path | None, Setting("file that holds the password")] = None
    password2_env: Annotated[
        str | None, Setting("variable with the second password, of an account with several")
    ] = None
    password2_file: Annotated[Path | None, Setting("file with the second password")] = None
    password3_env: Annotated[str | None, Setting("variable with the third password")] = None
    password3_file: Annotated[Path | None, Setting("file with the third password")] = None
    defaults_file: Annotated[
        Path | None, Setting("MySQL option file: [client] and [binlog-engine] say how to connect")
    ] = None
    tls: Annotated[
        TlsChoice | None,
        Setting("how much to ask of the connection's encryption [preferred; verify-ca with --tls-ca]"),
    ] = None
    tls_ca: Annotated[
        Path | None, Setting("file of authorities to trust; by default those that this machine trusts")
    ] = None
    tls_cert: Annotated[
        Path | None, Setting("file of the client certificate, if the server asks for one")
    ] = None
    tls_key: Annotated[Path | None, Setting("file of its key; by default it is in the same file")] = None
    tls_min_version: Annotated[TlsVersion, Setting("oldest TLS version to accept")] = "1.2"
    compression: Annotated[Compression, Setting("compression of the connection")] = "none"
    server_public_key: Annotated[
        Path | None, Setting("file of the server's RSA key, for passwords without TLS")
    ] = None
    server_id: Annotated[
        int,
        Setting(
            "our id as a replica; by default one derived from the output folder", least=0, most=(1 << 32) - 1
        ),
    ] = 0

    @property
    def unix_socket(self) -> str | None:
        """The path of the unix socket as Python's `socket` takes it."""
        return None if self.socket is None else str(self.socket)


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineSettings:
    """What is decoded, and how it is committed to the output folder."""

    out: Annotated[Path, Setting("output folder")]
    workers: Annotated[
        int, Setting("decoder processes; by default one per core but one", least=0, most=256)
    ] = 0
    tables: Annotated[tuple[str, ...], Setting("tables wanted, as database.table patterns with * and ?")] = ()
    exclude_tables: Annotated[tuple[str, ...], Setting("tables not wanted, as such patterns")] = ()
    commit_interval: Annotated[
        float | None,
        Setting("seconds from the first row to its commit [1, 0 with semi-sync]", least=0, most=_DAY),
    ] = None
    commit_bytes: Annotated[int, Setting("bytes that a commit holds, about, at most", least=1)] = 256 << 20
    temporal: Annotated[Literal["arrow", "text"], Setting("temporal columns as Arrow types or as text")] = (
        "arrow"
    )
    bookkeeping_events: Annotated[bool, Setting("GTIDs, BEGINs and table maps in the events feed, too")] = (
        False
    )
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
            "where a new output starts: earliest, latest, FILE:POSITION, gtid:SET, or 2026-11-20T08:00:00Z"
        ),
    ] = "earliest"
    retry_seconds: Annotated[
        float, Setting("how long to keep trying when the connection is lost", least=0)
    ] = 600.0
    heartbeat_seconds: Annotated[
        float, Setting("seconds between the heartbeats of an idle server", least=0.001, most=_DAY)
    ] = 5.0
    semi_sync: Annotated[bool, Setting("have the server's commits wait until their rows are on our disk")] = (
        False
    )
    stop_at_end: Annotated[bool, Setting("drain what the server has, then exit")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """Of `run`."""

    connection: ConnectionSettings
    pipeline: PipelineSettings
    stream: StreamSettings
    report: Path | None = None
    """File for the outcome as JSON."""
    verbose: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeSettings:
    """Of `decode`."""

    files: tuple[Path, ...]
    """Binlog files, the oldest first; at least one."""
    pipeline: PipelineSettings
    report: Path | None = None
    """File for the outcome as JSON."""
    verbose: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEventsSettings:
    """Of `events` for binlog files."""

    files: tuple[Path, ...]
    as_json: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerEventsSettings:
    """Of `events` for a server's binlog."""

    connection: ConnectionSettings
    start: str = "earliest"
    as_json: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class VacuumSettings:
    """Of `vacuum`."""

    out: Path
    older_than: str
    """An age such as `36h`."""
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSettings:
    """Of `serve`."""

    files: tuple[Path, ...]
    address: str = "127.0.0.1"
    port: int = 0
    """0 for any free port."""
    user: str = "repl"
    password_env: str | None = None
    """The environment variable that holds the user's password; None for an empty password."""
    tls_cert: Path | None = None
    """None for a certificate that is made for this run."""
    tls_key: Path | None = None
    """None if the key is in the certificate's file."""
