"""The XA transactions that a server has prepared, as its statement XA RECOVER lists them.

MySQL lists a transaction before its XA PREPARE is in the binlog. MariaDB, and MySQL before 8.0.30, write the
binlog first, and list the transaction once the storage engine has prepared it, which takes as long as its log
needs to be on disk. A crash in between loses it.
"""

from __future__ import annotations

from engine.binlog.xids import xid_text
from engine.net.client.connection import Connection
from engine.net.client.explained import explained
from engine.net.protocol.resultset import Row

_LOGGED_SINCE, _LOGS_LAST_SINCE = (5, 7), (8, 0, 30)
"""MySQL's versions since which XA PREPARE is in the binlog, and since which a crash does not lose it."""
_STATEMENTS = (
    ("mysql", _LOGGED_SINCE, "XA RECOVER CONVERT XID"),
    ("mariadb", (10, 5), "XA RECOVER"),
)
"""Flavor, the version since which XA PREPARE is in the binlog, and what lists the prepared transactions."""
HIDDEN = 1401
"""The error code for a user without the privilege XA_RECOVER_ADMIN (MySQL 8.0 and later)."""


def prepared_xids(connection: Connection) -> frozenset[str]:
    """The XIDs, as in `engine.binlog.xids`; none where binlogs do not have XA PREPARE. Raises `Refusal`."""
    greeting = connection.greeting
    for flavor, version, statement in _STATEMENTS:
        if greeting.flavor == flavor and greeting.version >= version:
            with explained(connection):
                rows = connection.query(statement)
            return frozenset(_xid(row, is_hexadecimal=flavor == "mysql") for row in rows)
    return frozenset()


def logs_first(flavor: str, version: tuple[int, ...]) -> bool:
    """Whether servers write XA PREPARE into the binlog before the transaction is prepared and listed."""
    return flavor == "mariadb" or _LOGGED_SINCE <= version < _LOGS_LAST_SINCE


def lists_late(connection: Connection) -> bool:
    """Whether a transaction may be in the binlog before the server lists it."""
    return logs_first(connection.greeting.flavor, connection.greeting.version)


def _xid(row: Row, *, is_hexadecimal: bool) -> str:
    """Of a row with the format, the lengths of the XID's two parts, and both as one value."""
    format_id, gtrid_length, _, value = (cell or "" for cell in row)
    parts = bytes.fromhex(value[2:]) if is_hexadecimal else value.encode("utf-8", "surrogateescape")
    return xid_text(parts[: int(gtrid_length)], parts[int(gtrid_length) :], int(format_id))
