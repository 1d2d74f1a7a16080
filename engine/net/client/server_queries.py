"""The statements that the engine sends before a dump, and the dump commands.

They read the server's identity, its settings and its binlogs over a `Connection`, and set the session
variables with which a replica announces what it supports. Every server error is raised as a `Refusal`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from engine.binlog.gtid_encoding import encode_gtid_set
from engine.binlog.gtid_set import MysqlGtidSet
from engine.binlog.position import BinlogPosition, ExecutedPosition
from engine.errors import EngineError
from engine.net.client.connection import Connection
from engine.net.client.refusals import Context, Refusal, explain
from engine.net.protocol.commands import (
    BINLOG_DUMP_NON_BLOCK,
    BINLOG_SEND_ANNOTATE_ROWS,
    BINLOG_THROUGH_GTID,
    BinlogDump,
    BinlogDumpGtid,
    RegisterSlave,
    Replica,
)
from engine.net.protocol.handshake import Flavor
from engine.net.protocol.packets import ServerError
from engine.net.protocol.resultset import ResultSet
from engine.net.protocol.wire import ProtocolError

FIRST_POSITION = 4
"""The position of the first event in a binlog file."""
MAX_DUMP_POSITION = (1 << 32) - 1
_ACCESS_ERRORS = (1044, 1045, 1142, 1227)
_MARIADB_CAPABILITY_GTID = 4
"""The replica supports MariaDB's GTID events, so the server sends them unchanged."""

_VARIABLES = (
    "binlog_checksum",
    "binlog_format",
    "binlog_row_image",
    "binlog_row_metadata",
    "gtid_binlog_pos",
    "gtid_executed",
    "gtid_mode",
    "gtid_purged",
    "log_bin",
    "lower_case_table_names",
    "rpl_semi_sync_master_enabled",
    "rpl_semi_sync_source_enabled",
    "server_id",
    "server_uid",
    "server_uuid",
)


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
    lower_case_table_names: int = 0
    """0: names are exact; 1: stored in lower case; 2: compared without regard to case."""

    @property
    def lacks_names(self) -> bool:
        """Whether its binlogs do not contain everything about columns: MariaDB's lack some types."""
        return self.flavor == "mariadb" or self.binlog_row_metadata != "FULL"

    @property
    def lacks_charsets(self) -> bool:
        """Whether its table maps do not contain the character sets of columns."""
        return self.binlog_row_metadata not in ("MINIMAL", "FULL")


@contextmanager
def explained(
    connection: Connection,
    *,
    file: str | None = None,
    position: int | None = None,
    server_id: int | None = None,
) -> Iterator[None]:
    """Raise a `ServerError` of the `with` block as the `Refusal` that explains it.

    An answer that has not the form that the block expects becomes a `ProtocolError`.
    """
    try:
        yield
    except ServerError as error:
        raise explain(error, context_of(connection, file, position, server_id)) from error
    except (ValueError, LookupError, TypeError) as error:
        raise ProtocolError(
            f"{connection.endpoint} answered a statement in a form that no server uses: check what listens "
            "there"
        ) from error


def context_of(
    connection: Connection,
    file: str | None = None,
    position: int | None = None,
    server_id: int | None = None,
) -> Context:
    """The context for `explain` of a connection that is logged in."""
    return Context(str(connection.endpoint), connection.user, file, position, server_id, logged_in=True)


def read_facts(connection: Connection) -> SourceFacts:
    """Read the server's settings; needs no privilege. Raises `Refusal`."""
    names = ", ".join(connection.quote(name) for name in _VARIABLES)
    with explained(connection):
        rows = connection.query(f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({names})")
        values = {(name or "").lower(): value or "" for name, value in rows}
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
        gtid_purged=_gtid_set(values.get("gtid_purged")) if values.get("gtid_mode") == "ON" else None,
        gtid_set=_gtid_set(values.get("gtid_binlog_pos" if mariadb else "gtid_executed")),
        semi_sync=None if semi_sync is None else semi_sync == "ON",
        lower_case_table_names=int(values.get("lower_case_table_names", 0)),
    )


def _mariadb_identity(values: Mapping[str, str]) -> str | None:
    """`server_uid` and server id: the former is derived from port and MAC address, which may be shared."""
    return f"{values['server_uid']}-{values['server_id']}" if "server_uid" in values else None


def executed_or_owned(connection: Connection) -> MysqlGtidSet:
    """MySQL's executed GTIDs, and those of transactions that are being committed.

    With semi-synchronous replication a replica gets the latter before they are executed. Raises `Refusal`.
    """
    with explained(connection):
        # In this order: a GTID that is not owned any more in the first value is executed in the second.
        ((owned, executed),) = connection.query("SELECT @@GLOBAL.gtid_owned, @@GLOBAL.gtid_executed")
    # Each number is followed by the thread that owns it: `uuid:7#12:8#15`.
    return MysqlGtidSet.parse(f"{executed},{re.sub('#[0-9]+', '', owned or '')}")


def check(facts: SourceFacts, where: str, *, semi_sync: bool = False) -> tuple[str, ...]:
    """Check that the engine can replicate from the server: raises `EngineError` if not, returns warnings.

    `where`: the server's name in messages. `semi_sync`: the server's commits are to wait for this engine.
    """
    if not facts.log_bin:
        raise EngineError(
            f"{where} writes no binlog: start it with log_bin and binlog_format=ROW set, then try again"
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


def binary_logs(connection: Connection) -> list[tuple[str, int]]:
    """The server's binlog files and their sizes in bytes, oldest first. Raises `Refusal`."""
    with explained(connection):
        rows = connection.query("SHOW BINARY LOGS")
        return [(row[0] or "", int(row[1] or 0)) for row in rows]


def current_position(connection: Connection) -> ExecutedPosition:
    """The end of the server's binlog. Raises `Refusal`, and `EngineError` if the server writes none."""
    end, gtid_set = _binlog_status(connection)
    if connection.greeting.flavor == "mariadb":
        with explained(connection):
            gtid_set = connection.query("SELECT @@GLOBAL.gtid_binlog_pos")[0][0]
    return ExecutedPosition(end.file, end.position, _gtid_set(gtid_set))


def end_of_binlog(connection: Connection) -> BinlogPosition:
    """The same without the GTIDs."""
    return _binlog_status(connection)[0]


def _binlog_status(connection: Connection) -> tuple[BinlogPosition, str | None]:
    greeting = connection.greeting
    renamed = greeting.flavor == "mysql" and greeting.version >= (8, 2)
    with explained(connection):
        rows = connection.query("SHOW BINARY LOG STATUS" if renamed else "SHOW MASTER STATUS")
        if not rows:
            raise EngineError(f"{connection.endpoint} writes no binlog: start the server with log_bin set")
        status = dict(zip(rows.columns, rows[0], strict=True))
        end = BinlogPosition(status["File"] or "", int(status["Position"] or 0))
    return end, status.get("Executed_Gtid_Set")


def gives_places(connection: Connection) -> bool:
    """Whether the server says where in the binlog a consistent snapshot is (MariaDB, Percona Server).

    Raises `Refusal`.
    """
    with explained(connection):
        return bool(connection.query("SHOW STATUS LIKE 'binlog_snapshot_file'"))


def known_end(connection: Connection) -> BinlogPosition | None:
    """The end of the server's binlog; None if this user may not know it. Raises `EngineError`."""
    try:
        return end_of_binlog(connection)
    except Refusal as refusal:
        if refusal.retryable:
            raise
        # The statement needs a privilege that a dump does not need.
        return None


def gtid_set_at(connection: Connection, file: str, position: int) -> str | None:
    """The GTIDs before that position, from MariaDB's BINLOG_GTID_POS; None if the position does not exist.

    None from MySQL, too: its binlog files contain the set.
    """
    if connection.greeting.flavor != "mariadb":
        return None
    with explained(connection, file=file, position=position):
        return connection.query(f"SELECT BINLOG_GTID_POS({connection.quote(file)}, {position})")[0][0]


def replicas(connection: Connection) -> list[Replica]:
    """The registered replicas, this engine's last run included; empty if the privilege is missing."""
    greeting = connection.greeting
    renamed = greeting.flavor == "mysql" and greeting.version >= (8, 0, 22)
    try:
        with explained(connection):
            rows = connection.query("SHOW REPLICAS" if renamed else "SHOW SLAVE HOSTS")
            return [_replica(rows, row) for row in rows]
    except Refusal as refusal:
        if refusal.code in _ACCESS_ERRORS:
            return []
        raise


def server_id_holder(connection: Connection, server_id: int, replica_uuid: str) -> Replica | None:
    """Another replica with this server id, if any; one with the same UUID is an earlier run of the engine."""
    for replica in replicas(connection):
        if replica.server_id == server_id and replica.uuid != replica_uuid:
            return replica
    return None


def prepare_dump(
    connection: Connection,
    facts: SourceFacts,
    *,
    heartbeat_seconds: float,
    replica_uuid: str,
    semi_sync: bool = False,
) -> None:
    """Set the session variables that describe this replica to the server. Raises `Refusal`.

    They request checksums as the server writes them. The old and the new name of each variable are set,
    because a server reads only one of them.
    """
    heartbeat = int(heartbeat_seconds * 1_000_000_000)
    values = {
        "master_heartbeat_period": str(heartbeat),
        "source_heartbeat_period": str(heartbeat),
        "slave_uuid": connection.quote(replica_uuid),
        "replica_uuid": connection.quote(replica_uuid),
    }
    if facts.binlog_checksum is not None:
        values["master_binlog_checksum"] = "@@GLOBAL.binlog_checksum"
        values["source_binlog_checksum"] = "@@GLOBAL.binlog_checksum"
    if semi_sync:
        values["rpl_semi_sync_slave"] = values["rpl_semi_sync_replica"] = "1"
    if facts.flavor == "mariadb":
        values["mariadb_slave_capability"] = str(_MARIADB_CAPABILITY_GTID)
    with explained(connection):
        connection.execute("SET " + ", ".join(f"@{name} = {value}" for name, value in values.items()))


def set_write_timeout(connection: Connection, seconds: int) -> None:
    """Set how long the server keeps the connection while the engine does not read. Raises `Refusal`."""
    with explained(connection):
        connection.execute(f"SET SESSION net_write_timeout = {seconds}")


def register(connection: Connection, server_id: int, hostname: str = "", port: int = 0) -> None:
    """Send COM_REGISTER_SLAVE, so that SHOW REPLICAS lists this engine. Raises `Refusal`.

    SHOW REPLICAS shows `port`; the connection's local port identifies it in SHOW PROCESSLIST.
    """
    with explained(connection, server_id=server_id):
        connection.send_command(RegisterSlave(server_id, hostname, "binlog-engine", port=port).build())
        connection.read_ok()


def start_dump(
    connection: Connection, file: str, position: int, server_id: int, non_block: bool = False
) -> None:
    """Send COM_BINLOG_DUMP; the caller reads the answer, also an error. An empty `file` means the first."""
    if position > MAX_DUMP_POSITION:
        raise EngineError(
            f"{file} at position {position} is beyond 4 GiB, where no dump can start: start at the next file"
        )
    flags = BINLOG_DUMP_NON_BLOCK if non_block else 0
    if connection.greeting.flavor == "mariadb":
        flags |= BINLOG_SEND_ANNOTATE_ROWS
    connection.send_command(BinlogDump(file, position, server_id, flags).build())


def start_dump_by_gtid(
    connection: Connection, gtid_set: str, server_id: int, non_block: bool = False
) -> None:
    """Request all transactions that are not in `gtid_set`; the caller reads the answer, also an error."""
    flags = BINLOG_DUMP_NON_BLOCK if non_block else 0
    if connection.greeting.flavor == "mariadb":
        with explained(connection, server_id=server_id):
            connection.execute(
                f"SET @slave_connect_state = {connection.quote(gtid_set)}, @slave_gtid_strict_mode = 0, "
                "@slave_gtid_ignore_duplicates = 0"
            )
        command = BinlogDump("", FIRST_POSITION, server_id, flags | BINLOG_SEND_ANNOTATE_ROWS).build()
    else:
        data = encode_gtid_set(MysqlGtidSet.parse(gtid_set))
        command = BinlogDumpGtid(server_id, data, flags=BINLOG_THROUGH_GTID | flags).build()
    connection.send_command(command)


def _gtid_set(text: str | None) -> str | None:
    # MySQL inserts newlines into long sets; an empty set is a set, and None is not.
    return None if text is None else "".join(text.split())


def _replica(rows: ResultSet, row: tuple[str | None, ...]) -> Replica:
    cells = {name.lower(): value for name, value in zip(rows.columns, row, strict=True)}
    return Replica(
        server_id=int(cells.get("server_id") or 0),
        host=cells.get("host") or "",
        port=int(cells.get("port") or 0),
        uuid=cells.get("replica_uuid") or cells.get("slave_uuid"),
    )
