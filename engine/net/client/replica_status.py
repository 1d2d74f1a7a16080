"""What a replica itself says of its replication: from which servers, and how far it is behind them."""

from __future__ import annotations

from engine.errors import EngineError
from engine.net.client.connection import Connection
from engine.net.client.explained import explained

_RENAMED_SINCE = (8, 0, 22)


def replica_lag(connection: Connection) -> float | None:
    """In seconds, behind the source that is furthest ahead; None if replication does not run.

    Raises `Refusal`, and `EngineError` if the server is no replica.
    """
    lags = _of_each_source(connection, "seconds_behind_source", "seconds_behind_master")
    if not lags:
        raise EngineError(f"{connection.endpoint} is no replica, so it has no lag: watch another server")
    return None if None in lags else max(float(lag or 0) for lag in lags)


def source_server_ids(connection: Connection) -> set[int]:
    """The servers from which it replicates; empty if it is no replica. Raises `Refusal`."""
    return {
        int(number or 0) for number in _of_each_source(connection, "source_server_id", "master_server_id")
    }


def _of_each_source(connection: Connection, *names: str) -> list[str | None]:
    """A column, by its present and its former name."""
    greeting = connection.greeting
    if greeting.flavor == "mariadb":
        statement = "SHOW ALL SLAVES STATUS"
    else:
        statement = "SHOW REPLICA STATUS" if greeting.version >= _RENAMED_SINCE else "SHOW SLAVE STATUS"
    with explained(connection):
        rows = connection.query(statement)
        (place,) = (place for place, name in enumerate(rows.columns) if name.lower() in names)
        return [row[place] for row in rows]
