"""Real replication between two servers of a flavor: one follows the other, until it is on its own."""

from __future__ import annotations

from tests.servers import Server
from tests.support.engine_run import wait_until

GTIDS: dict[str, str | None] = {"gtid_mode": "ON", "enforce_gtid_consistency": "ON"}
_MARIADB: dict[str, str | None] = {"log_slave_updates": "ON", "gtid_strict_mode": "ON"}
OPTIONS: dict[str, dict[str, str | None]] = {
    "mysql-9.7": GTIDS,
    "mariadb-10.11": _MARIADB,
    "mariadb-11.8": _MARIADB,
}
"""What both servers of a flavor need."""
REPLICA_OPTIONS: dict[str, str | None] = {"server_id": "2"}

_FOLLOW_MARIADB = (
    "CHANGE MASTER TO MASTER_HOST = '{host}', MASTER_PORT = {port}, MASTER_USER = 'root', "
    "MASTER_USE_GTID = slave_pos, MASTER_CONNECT_RETRY = 1"
)
_FOLLOW = {
    "mysql-9.7": "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '{host}', SOURCE_PORT = {port}, "
    "SOURCE_USER = 'root', SOURCE_AUTO_POSITION = 1, GET_SOURCE_PUBLIC_KEY = 1, "
    "SOURCE_CONNECT_RETRY = 1",
    "mariadb-10.11": _FOLLOW_MARIADB,
    "mariadb-11.8": _FOLLOW_MARIADB,
}
REPLICA_WORDS = {"mysql-9.7": "REPLICA", "mariadb-10.11": "SLAVE", "mariadb-11.8": "SLAVE"}
"""What a flavor's statements call a replica."""
_EXECUTED = {
    "mysql-9.7": "gtid_executed",
    "mariadb-10.11": "gtid_binlog_pos",
    "mariadb-11.8": "gtid_binlog_pos",
}


def follow_source(replica: Server, source: Server) -> None:
    """Make the one a replica of the other."""
    replica.execute(
        _FOLLOW[replica.flavor].format(host=source.host, port=source.port),
        f"START {REPLICA_WORDS[replica.flavor]}",
    )


def go_on_following(replica: Server) -> None:
    """After `stop_following`, follow the same source again."""
    replica.query(f"START {REPLICA_WORDS[replica.flavor]}")


def stop_following(replica: Server) -> None:
    """Have the replica apply what it has got, and be a server of its own."""
    word = REPLICA_WORDS[replica.flavor]
    replica.query(f"STOP {word} IO_THREAD")
    wait_until(lambda: "has read all relay log" in _applier_state(replica).lower(), "end of the relay log")
    replica.query(f"STOP {word}")


def executed(server: Server) -> str:
    """All transactions that the server has."""
    return "".join(server.query(f"SELECT @@GLOBAL.{_EXECUTED[server.flavor]}")[0][0].split())


def wait_for_replica(replica: Server, source: Server) -> None:
    """Wait until the replica has all that the source, which must be quiet, has."""
    goal = executed(source)
    wait_until(lambda: executed(replica) == goal, f"replica with {goal}")


def _applier_state(replica: Server) -> str:
    rows = replica.query("SELECT state FROM information_schema.processlist WHERE state IS NOT NULL")
    return " / ".join(row[0] for row in rows)
