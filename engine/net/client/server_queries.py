"""Statements that read the state of a server's binlogs, and who else reads them.

Every server error is raised as a `Refusal`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from engine.binlog.gtid_set import MysqlGtidSet
from engine.binlog.position import BinlogPosition, ExecutedPosition
from engine.errors import EngineError
from engine.net.client.connection import Connection
from engine.net.client.dump_requests import shown_host
from engine.net.client.explained import explained
from engine.net.client.refusals import Refusal
from engine.net.client.source_facts import on_one_line
from engine.net.protocol.commands import Replica
from engine.net.protocol.resultset import ResultSet

Answer = TypeVar("Answer")

_ACCESS_ERRORS = (1044, 1045, 1142, 1227)
_OWNER_BEFORE_UUID = re.compile(r"#[0-9]+?([0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})", re.IGNORECASE)


def executed_or_owned(connection: Connection) -> MysqlGtidSet:
    """MySQL's executed GTIDs, and those of transactions that are being committed.

    With semi-synchronous replication a replica gets the latter before they are executed. Raises `Refusal`.
    """
    with explained(connection):
        # In this order: a GTID that is not owned any more in the first value is executed in the second.
        ((owned, executed),) = connection.query("SELECT @@GLOBAL.gtid_owned, @@GLOBAL.gtid_executed")
    return MysqlGtidSet.parse(f"{executed},{_without_owners(owned or '')}")


def _without_owners(owned: str) -> str:
    """A thread follows each number, and the next source follows it without a comma: `uuid:7#1uuid:9#3`."""
    return re.sub("#[0-9]+", "", _OWNER_BEFORE_UUID.sub(r",\1", owned))


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
    return ExecutedPosition(end.file, end.position, on_one_line(gtid_set))


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


def has_prepared(connection: Connection) -> bool:
    """Whether the server has prepared XA transactions since its start. Raises `Refusal`."""
    with explained(connection):
        return connection.query("SHOW GLOBAL STATUS LIKE 'Com_xa_prepare'")[0][1] != "0"


def known_end(connection: Connection) -> BinlogPosition | None:
    """The end of the server's binlog; None if this user may not know it. Raises `EngineError`."""
    return _if_allowed(lambda: end_of_binlog(connection))


def known_logs(connection: Connection) -> list[tuple[str, int]] | None:
    """As `binary_logs`; None if this user may not know them."""
    return _if_allowed(lambda: binary_logs(connection))


def _if_allowed(ask: Callable[[], Answer]) -> Answer | None:
    """The answer to a statement that needs a privilege which a dump does not need; None without it."""
    try:
        return ask()
    except Refusal as refusal:
        if refusal.retryable:
            raise
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
    """Another replica with this server id, if any.

    One with the same UUID, or on MariaDB the same name, is an earlier run of the engine: a server lists it
    for long if the network has lost its connection.
    """
    name = shown_host(connection.greeting.flavor, replica_uuid)
    for replica in replicas(connection):
        is_ours = replica.host == name if replica.uuid is None else replica.uuid == replica_uuid
        if replica.server_id == server_id and not is_ours:
            return replica
    return None


def _replica(rows: ResultSet, row: tuple[str | None, ...]) -> Replica:
    cells = {name.lower(): value for name, value in zip(rows.columns, row, strict=True)}
    return Replica(
        server_id=int(cells.get("server_id") or 0),
        host=cells.get("host") or "",
        port=int(cells.get("port") or 0),
        uuid=cells.get("replica_uuid") or cells.get("slave_uuid"),
    )
