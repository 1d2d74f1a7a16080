"""The settings of every command: one frozen dataclass per command.

These dataclasses, with the groups in them (`engine.config.setting_groups`), are the only declaration of the
flags, environment variables and TOML keys (`engine.config.setting` describes the notation), and commands
receive their instances.
"""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import Annotated, Literal

from engine.config.output_place import OutputPlace, StoreUrl
from engine.config.setting import Setting
from engine.config.setting_groups import (
    EXCLUDED_TABLES,
    WANTED_TABLES,
    ConnectionSettings,
    FollowSettings,
    LogSettings,
    MonitoringSettings,
    PipelineSettings,
)
from engine.dataclass import dataclass
from engine.errors import EngineError


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings(FollowSettings):
    """Of `run`."""

    log: LogSettings = field(default_factory=LogSettings)
    monitoring: MonitoringSettings = field(default_factory=MonitoringSettings)
    report: Path | None = None
    """File for the outcome as JSON."""
    verbose: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSettings:
    """Of `fleet`, beside those of its sources."""

    root: Annotated[Path, Setting("folder of the fleet: a source's output is the folder of its name in it")]
    decoders: Annotated[
        int,
        Setting(
            "decoder processes that all sources share [one less than there are cores]", least=0, most=256
        ),
    ] = 0
    log: LogSettings = field(default_factory=LogSettings)
    monitoring: MonitoringSettings = field(default_factory=MonitoringSettings)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeSettings:
    """Of `decode`."""

    files: tuple[Path, ...]
    """Binlog files, the oldest first; at least one."""
    pipeline: PipelineSettings
    log: LogSettings = field(default_factory=LogSettings)
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
class SnapshotSettings:
    """Of `snapshot`."""

    out: OutputPlace
    tables: Annotated[
        tuple[str, ...],
        Setting("tables to read, as database.table patterns with * and ?, separated by commas"),
    ]
    exclude_tables: Annotated[tuple[str, ...], Setting("tables not to read, in the same way")] = ()
    where: Annotated[str | None, Setting("SQL condition that limits the rows")] = None
    cancel: Annotated[bool, Setting("end the snapshots of these tables instead")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareSettings:
    """Of `compare`."""

    out: OutputPlace
    tables: Annotated[
        tuple[str, ...],
        Setting("tables to compare, as database.table patterns with * and ?, separated by commas"),
    ]
    exclude_tables: Annotated[tuple[str, ...], Setting("tables not to compare, in the same way")] = ()
    partial_images: Annotated[
        bool, Setting("complete the row images of binlog_row_image MINIMAL or NOBLOB from earlier ones")
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlSettings:
    """Of `sql`."""

    sources: tuple[OutputPlace, ...]
    """An output, or binlog files with the oldest first; empty for a server."""
    undo: Annotated[bool, Setting("inverse statements in reverse order")] = False
    tables: Annotated[tuple[str, ...], Setting(WANTED_TABLES)] = ()
    exclude_tables: Annotated[tuple[str, ...], Setting(EXCLUDED_TABLES)] = ()
    since: Annotated[
        str | None, Setting("first change wanted: a time such as 2026-11-20T08:00:00Z, or FILE:POSITION")
    ] = None
    until: Annotated[str | None, Setting("first change that is not wanted any more, in the same way")] = None
    gtids: Annotated[
        str | None, Setting("transactions wanted: a GTID set of MySQL, or GTIDs of MariaDB with commas")
    ] = None
    schema_file: Annotated[
        Path | None,
        Setting("file of CREATE TABLE statements (mysqldump --no-data), for tables without certain columns"),
    ] = None

    @property
    def output(self) -> OutputPlace | None:
        """The output, if that is what is given."""
        if len(self.sources) != 1:
            return None
        (source,) = self.sources
        return source if isinstance(source, StoreUrl) or source.is_dir() else None

    @property
    def files(self) -> tuple[Path, ...]:
        """The binlog files, if these are given. Raises `EngineError` for a URL among several sources."""
        for source in self.sources:
            if isinstance(source, StoreUrl):
                raise EngineError(f"{source} is not a binlog file: give one output, or files of this machine")
        return tuple(source for source in self.sources if isinstance(source, Path))


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSettings:
    """Of `check`."""

    connection: ConnectionSettings
    out: Annotated[OutputPlace | None, Setting("output to check, too")] = None
    tables: Annotated[tuple[str, ...], Setting(WANTED_TABLES)] = ()
    exclude_tables: Annotated[tuple[str, ...], Setting(EXCLUDED_TABLES)] = ()
    spark: Annotated[bool, Setting("check Java and PySpark, too")] = False
    as_json: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class VacuumSettings:
    """Of `vacuum`."""

    out: OutputPlace
    retain: str
    """An age such as `36h`, or a size such as `500GB`."""
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactSettings:
    """Of `compact`."""

    out: OutputPlace
    grace: Annotated[str, Setting("how long replaced files stay, for queries that have planned them")] = "10m"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumersSettings:
    """Of `consumers`."""

    out: OutputPlace
    remove: str | None = None
    """A consumer that does not come back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifySettings:
    """Of `verify`."""

    out: OutputPlace


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorSettings:
    """Of `mirror`."""

    out: OutputPlace
    to: Annotated[Literal["delta", "iceberg"], Setting("format of the tables")]
    into: Annotated[
        str, Setting("path of the tables, or their name in a catalogue, with {database} and {table} in it")
    ]
    tables: Annotated[tuple[str, ...], Setting(WANTED_TABLES)] = ()
    exclude_tables: Annotated[tuple[str, ...], Setting(EXCLUDED_TABLES)] = ()
    once: Annotated[bool, Setting("bring the tables up to the last commit, then exit")] = False
    every: Annotated[str, Setting("time from one round to the next, such as 10s or 5m")] = "10s"
    until: Annotated[int | None, Setting("bring the tables up to this commit, then exit", least=0)] = None
    status: Annotated[bool, Setting("only show how far each table is, and which are set aside")] = False
    mode: Annotated[
        Literal["mirror", "changelog"], Setting("tables as they stand, or all change rows appended")
    ] = "mirror"
    keyless: Annotated[
        Literal["count", "append"], Setting("tables without a key: count equal rows, or append change rows")
    ] = "count"
    dropped_columns: Annotated[Literal["keep", "drop"], Setting("columns that a table has dropped")] = "keep"
    json: Annotated[Literal["text", "variant"], Setting("type of JSON columns in new targets")] = "text"
    partition_by: Annotated[
        tuple[str, ...], Setting("partitions of new targets, such as shop.orders=days(created_at)")
    ] = ()
    cluster_by: Annotated[
        tuple[str, ...], Setting("columns that cluster new Delta targets, such as shop.orders=customer_id")
    ] = ()
    side_by_side: Annotated[int, Setting("tables written at the same time", least=1, most=64)] = 4
    allow_rewritten: Annotated[
        bool, Setting("accept that statements without row events changed rows, so that a target differs")
    ] = False
    consumer: Annotated[
        str | None, Setting("name under which commits are kept until all targets have their rows")
    ] = None


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
