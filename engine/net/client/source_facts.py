"""The settings of a server that decide how the engine replicates from it, and whether it can.

They are read once for each connection that follows the stream, by statements that need no privilege.
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.binlog.collations import UTF8MB3, UTF8MB4
from engine.dataclass import dataclass
from engine.errors import EngineError
from engine.net.client.connection import Connection
from engine.net.client.explained import explained
from engine.net.protocol.handshake import Flavor
from engine.schema.server_settings import USUAL_SETTINGS, ServerSettings

_VARIABLES = (
    "binlog_checksum",
    "binlog_format",
    "binlog_row_image",
    "binlog_row_metadata",
    "binlog_storage_engine",
    "default_storage_engine",
    "explicit_defaults_for_timestamp",
    "gtid_binlog_pos",
    "gtid_executed",
    "gtid_mode",
    "gtid_purged",
    "log_bin",
    "lower_case_table_names",
    "old_mode",
    "rpl_semi_sync_master_enabled",
    "rpl_semi_sync_source_enabled",
    "server_id",
    "server_uid",
    "server_uuid",
)
_UTF8_IS_UTF8MB3 = "UTF8_IS_UTF8MB3"
"""In MariaDB's `old_mode`, as its default is; before it could be set, it was so."""
_UTF8_IS_SET_SINCE = (10, 6, 1)
_USUAL_ENGINE = "innodb"
_GTID_SETS = ("gtid_binlog_pos", "gtid_executed", "gtid_purged")
"""SHOW cuts long values off (MySQL's after 1024 characters), so these are selected where there are any."""


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """The settings that a server reports; None for a variable that it does not have."""

    flavor: Flavor
    version: str
    version_tuple: tuple[int, ...]
    server_id: int
    server_uuid: str | None
    """Identifies the server on a later connection; None from MariaDB before 10.6.19 and 10.11.9."""
    log_bin: bool
    binlog_format: str
    """ROW, STATEMENT or MIXED; ROW if the server has no such variable."""
    binlog_row_image: str | None
    binlog_row_metadata: str | None
    binlog_checksum: str | None
    """CRC32 or NONE; None from servers without binlog checksums."""
    gtid_mode: str | None
    gtid_purged: str | None
    """Executed transactions that are not in MySQL's binlogs any more; None if GTIDs are off."""
    gtid_set: str | None
    """All transactions in the binlog so far: `gtid_executed` of MySQL, `gtid_binlog_pos` of MariaDB."""
    semi_sync: bool | None
    """Whether its commits wait for semi-synchronous replicas; None if the server does not support it."""
    binlog_storage_engine: str | None = None
    """The engine that MariaDB (12.3 and later) keeps its binlog in; None or empty for files."""
    schema_settings: ServerSettings = USUAL_SETTINGS
    """As sessions have them that keep the server's."""

    @property
    def lacks_names(self) -> bool:
        """Whether its binlogs do not contain everything about columns: MariaDB's lack some types."""
        return self.flavor == "mariadb" or self.binlog_row_metadata != "FULL"

    @property
    def checksum_algorithm(self) -> int:
        """As in a format description, for the events before the first one: 1 for CRC32, 0 for none."""
        return 1 if self.binlog_checksum == "CRC32" else 0

    @property
    def lacks_charsets(self) -> bool:
        """Whether its table maps do not contain the character sets of columns."""
        return self.binlog_row_metadata not in ("MINIMAL", "FULL")


def read_facts(connection: Connection) -> SourceFacts:
    """Read the server's settings; needs no privilege. Raises `Refusal`."""
    names = ", ".join(connection.quote(name) for name in _VARIABLES)
    with explained(connection):
        rows = connection.query(f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({names})")
        values = {(name or "").lower(): value or "" for name, value in rows}
        if sets := [name for name in _GTID_SETS if name in values]:
            (whole,) = connection.query("SELECT " + ", ".join(f"@@GLOBAL.{name}" for name in sets))
            values |= {name: value or "" for name, value in zip(sets, whole, strict=True)}
        return _facts(connection, values)


def _facts(connection: Connection, values: Mapping[str, str]) -> SourceFacts:
    greeting = connection.greeting
    mariadb = greeting.flavor == "mariadb"
    semi_sync = values.get("rpl_semi_sync_source_enabled", values.get("rpl_semi_sync_master_enabled"))
    return SourceFacts(
        flavor=greeting.flavor,
        version=greeting.server_version,
        version_tuple=greeting.version,
        server_id=int(values.get("server_id", 0)),
        server_uuid=_mariadb_identity(values) if mariadb else values.get("server_uuid"),
        log_bin=values.get("log_bin") == "ON",
        binlog_format=values.get("binlog_format", "ROW"),
        binlog_row_image=values.get("binlog_row_image"),
        binlog_row_metadata=values.get("binlog_row_metadata"),
        binlog_checksum=values.get("binlog_checksum"),
        gtid_mode=values.get("gtid_mode"),
        gtid_purged=on_one_line(values.get("gtid_purged")) if values.get("gtid_mode") == "ON" else None,
        gtid_set=on_one_line(values.get("gtid_binlog_pos" if mariadb else "gtid_executed")),
        semi_sync=None if semi_sync is None else semi_sync == "ON",
        binlog_storage_engine=values.get("binlog_storage_engine"),
        schema_settings=_schema_settings(connection, values),
    )


def _schema_settings(connection: Connection, values: Mapping[str, str]) -> ServerSettings:
    greeting = connection.greeting
    explicit = values.get("explicit_defaults_for_timestamp")
    engine = values.get("default_storage_engine", _USUAL_ENGINE).lower()
    return ServerSettings(
        lower_case_table_names=int(values.get("lower_case_table_names", 0)),
        utf8=_utf8(values, greeting.version) if greeting.flavor == "mariadb" else UTF8MB3,
        explicit_timestamp=None if explicit is None else explicit == "ON",
        default_engine=None if engine == _USUAL_ENGINE else engine,
        version=greeting.version,
    )


def _utf8(values: Mapping[str, str], version: tuple[int, ...]) -> str:
    may_differ = version >= _UTF8_IS_SET_SINCE
    return UTF8MB4 if may_differ and _UTF8_IS_UTF8MB3 not in values.get("old_mode", "") else UTF8MB3


def _mariadb_identity(values: Mapping[str, str]) -> str | None:
    """`server_uid` and server id: the former is derived from port and MAC address, which may be shared."""
    return f"{values['server_uid']}-{values['server_id']}" if "server_uid" in values else None


def on_one_line(text: str | None) -> str | None:
    """A GTID set as the server writes it, on one line; an empty set is a set, and None is not."""
    return None if text is None else "".join(text.split())


def check(facts: SourceFacts, where: str, *, semi_sync: bool = False) -> tuple[str, ...]:
    """Check that the engine can replicate from the server: raises `EngineError` if not, returns warnings.

    `where`: the server's name in messages. `semi_sync`: the server's commits are to wait for this engine.
    """
    if not facts.log_bin:
        raise EngineError(
            f"{where} writes no binlog: start it with log_bin and binlog_format=ROW set, then try again"
        )
    if facts.binlog_storage_engine:
        raise EngineError(
            f"{where} keeps its binlog in {facts.binlog_storage_engine}, where events have no positions, "
            "which the engine needs: start it without binlog_storage_engine"
        )
    if facts.server_id == 0:
        raise EngineError(f"{where} has server_id 0, with which it refuses replicas: set another one there")
    if semi_sync and facts.semi_sync is None:
        raise EngineError(
            f"{where} has no semi-synchronous replication: run INSTALL PLUGIN rpl_semi_sync_source SONAME "
            "'semisync_source.so' there (before MySQL 8.0.26 rpl_semi_sync_master, 'semisync_master.so'), or "
            "leave out --semi-sync"
        )
    warnings = []
    if semi_sync and not facts.semi_sync:
        warnings.append(
            f"semi-synchronous replication is off on {where}, so its commits do not wait for this engine: "
            "SET GLOBAL rpl_semi_sync_source_enabled=1 there (or rpl_semi_sync_master_enabled)"
        )
    if facts.binlog_format != "ROW":
        warnings.append(
            f"{where} has binlog_format={facts.binlog_format}: changes that it writes as statements are "
            "emitted in the events feed, not as rows; SET GLOBAL binlog_format='ROW' there"
        )
    return tuple(warnings)
