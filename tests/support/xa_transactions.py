"""XA transactions of a server, as tests prepare and end them."""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

import pymysql

from tests.servers import Server
from tests.support.engine_run import wait_until


class Prepared(NamedTuple):
    """A transaction that is prepared."""

    gtrid: str
    bqual: str
    format_id: int

    @property
    def xid(self) -> str:
        """As statements name it; both parts are plain text."""
        return f"'{self.gtrid}','{self.bqual}',{self.format_id}"


def prepared_transactions(cursor: Any) -> list[Prepared]:
    """What XA RECOVER lists, which has text on MySQL and bytes on MariaDB."""
    cursor.execute("XA RECOVER")
    found = []
    for format_id, size, _, data in cursor.fetchall():
        text = data if isinstance(data, str) else data.decode()
        found.append(Prepared(text[:size], text[size:], format_id))
    return found


def prepare(server: Server, database: str, xid: str, *changes: str) -> None:
    """Prepare a transaction with these changes, in a session of its own, which has ended afterwards.

    MariaDB may keep the locks of a transaction for good if it is ended while that session is leaving.
    """
    with server.connect(database=database) as connection, connection.cursor() as cursor:
        session = connection.thread_id()
        for statement in (f"XA START {xid}", *changes, f"XA END {xid}", f"XA PREPARE {xid}"):
            cursor.execute(statement)
    is_there = f"SELECT id FROM information_schema.PROCESSLIST WHERE id = {session}"
    wait_until(lambda: not server.query(is_there), "end of the session")


def end_prepared(server: Server, how: str, xid: str) -> None:
    """End a prepared transaction, as soon as the server allows it to another session."""

    def ended() -> bool:
        with contextlib.suppress(pymysql.err.OperationalError):
            server.execute(f"XA {how} {xid}")
            return True
        return False

    wait_until(ended, "end of the transaction")


def roll_back_prepared(server: Server) -> None:
    """Roll back all that are prepared."""
    with server.connect() as connection, connection.cursor() as cursor:
        left = prepared_transactions(cursor)
    for transaction in left:
        end_prepared(server, "ROLLBACK", transaction.xid)
