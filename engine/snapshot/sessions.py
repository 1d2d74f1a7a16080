"""The connections on which one reader reads: in sessions that show rows as they are stored, and that last.

A SELECT takes long if few rows fulfil its condition, or while a statement has locked the table. So rows are
waited for without a limit; the stream, and TCP itself, notice a server that is gone. Connections are idle for
long while rows wait for the limit of the rate, and between two requests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from engine.config.server_address import ServerAddress
from engine.dataclass import dataclass
from engine.net.client.connect import connect
from engine.net.client.connection import Connection
from engine.net.client.explained import explained
from engine.snapshot.rows.row_format import SESSION_STATEMENT
from engine.snapshot.table_source import have_estimates_of_now

_ISOLATED = "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ"
_PATIENT = "SET SESSION net_write_timeout = 3600, wait_timeout = 31536000"
_TIME_LIMITS = (
    ("mysql", (5, 7, 8), "SET SESSION max_execution_time = 0"),
    ("mariadb", (10, 1), "SET SESSION max_statement_time = 0"),
    (
        "mariadb",
        (10, 3),
        "SET SESSION idle_transaction_timeout = 0, idle_readonly_transaction_timeout = 0, "
        "idle_write_transaction_timeout = 0",
    ),
)
"""Flavor, the version since which the server may limit the time of a statement, or of an idle transaction,
and how to switch that off."""


@dataclass(frozen=True, slots=True)
class Readers:
    """The connections of one reader."""

    rows: Connection
    """On which rows are read."""
    source: Connection
    """To the server of the stream, for questions and locks."""
    rows_at_source: Connection
    """On which rows are read that must be those of the stream's server; `rows` if that is read anyway."""
    check: Callable[[], None]
    """Raises `Stopped` when the process is to leave."""

    @property
    def at_source(self) -> Readers:
        """The same without another server."""
        return replace(self, rows=self.rows_at_source)


def open_readers(stream: ServerAddress, other: ServerAddress | None, check: Callable[[], None]) -> Readers:
    """Connect to the stream's server, and to another one to read from, if there is one.

    `check`: see `Readers`. Raises `EngineError`.
    """
    rows = connect(stream if other is None else other, read_timeout=None)
    source = connect(stream)
    at_source = rows if other is None else connect(stream, read_timeout=None)
    for connection in {rows, at_source}:
        _prepare(connection)
    with explained(source):
        source.execute(_PATIENT)
    return Readers(rows, source, at_source, check)


def _prepare(connection: Connection) -> None:
    """Have a connection read rows as they are stored and committed, and for as long as it takes."""
    greeting = connection.greeting
    have_estimates_of_now(connection)
    with explained(connection):
        for statement in (SESSION_STATEMENT, _ISOLATED, _PATIENT):
            connection.execute(statement)
        for flavor, version, statement in _TIME_LIMITS:
            if greeting.flavor == flavor and greeting.version >= version:
                connection.execute(statement)
