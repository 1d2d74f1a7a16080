"""What a replica sends to get a binlog: its session variables, its registration, and the dump commands.

Every server error is raised as a `Refusal`, but those of the dump itself, which its reader gets.
"""

from __future__ import annotations

import socket

from engine.binlog.gtid_encoding import encode_gtid_set
from engine.binlog.gtid_set import MysqlGtidSet
from engine.errors import EngineError
from engine.net.client.connection import Connection
from engine.net.client.explained import explained
from engine.net.client.source_facts import SourceFacts
from engine.net.protocol.commands import (
    BINLOG_DUMP_NON_BLOCK,
    BINLOG_SEND_ANNOTATE_ROWS,
    BINLOG_THROUGH_GTID,
    BinlogDump,
    BinlogDumpGtid,
    RegisterSlave,
)

FIRST_POSITION = 4
"""The position of the first event in a binlog file."""
MAX_DUMP_POSITION = (1 << 32) - 1
_LONGEST_HOST = 60
"""Characters of a replica's host name, as in older servers."""
_SHOWN_DIGITS = 8
_MARIADB_CAPABILITY_GTID = 4
"""The replica supports MariaDB's GTID events, so the server sends them unchanged."""


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


def shown_host(flavor: str, replica_uuid: str) -> str:
    """This machine's name for SHOW REPLICAS; with the first digits of our UUID where that is not shown."""
    name = socket.gethostname()
    # MariaDB shows no UUIDs.
    digits = f"/{replica_uuid[:_SHOWN_DIGITS]}" if flavor == "mariadb" else ""
    return name[: _LONGEST_HOST - len(digits)] + digits


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
