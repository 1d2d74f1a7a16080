"""Members of ENUM and SET with characters that information_schema does not show (`as_shown`).

Newer servers return the text of any member to a user who may select from the table, whether or not a row has
it: a recursive query has columns of the types of its first part, so that a number in another part becomes a
member. No row is read. What was returned counts only if the catalog shows it as the member that it is to be:
MySQL 8.0.15 returns the number, and MariaDB nothing for the members of a SET after the eighth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from engine.binlog.table_definition import ColumnDefinition, as_shown
from engine.net.client.connection import Connection
from engine.net.protocol.packets import ServerError
from engine.output.sql_text import quoted_name
from engine.schema.changes import TableName
from engine.schema.column_types import members_type

_RECURSIVE_SINCE = {"mysql": (8, 0, 1), "mariadb": (10, 2, 2)}
_TEXTS = (
    "WITH RECURSIVE texts (n, m) AS ("
    "SELECT 0, t.{column} FROM (SELECT 1) one LEFT JOIN {table} t ON FALSE "
    "UNION ALL SELECT listed.n, listed.v FROM texts JOIN ({listed}) listed ON texts.n = 0"
    ") SELECT n, HEX(CONVERT(m USING utf8mb4)) FROM texts WHERE n > 0"
)
_LISTED = "SELECT {number} AS n, CAST({value} AS UNSIGNED) AS v"
_MEMBERS_PER_QUERY = 100
_LOCK_TIMEOUT = "SET SESSION lock_wait_timeout = {}"
_LOCK_SECONDS = 5
"""A table that others have locked is not waited for as long as the connection would wait for an answer."""


def with_hidden_members(
    connection: Connection, table: TableName, column: ColumnDefinition
) -> ColumnDefinition | None:
    """A column that `may_hide_characters` with its true members; None if the server does not tell them."""
    greeting = connection.greeting
    if greeting.version < _RECURSIVE_SINCE[greeting.flavor]:
        return None
    members = list(column.members or ())
    doubtful = [number for number, member in enumerate(members, 1) if "?" in member]
    connection.execute(_LOCK_TIMEOUT.format(_LOCK_SECONDS))
    try:
        for first in range(0, len(doubtful), _MEMBERS_PER_QUERY):
            numbers = doubtful[first : first + _MEMBERS_PER_QUERY]
            for number, text in zip(numbers, _texts(connection, table, column, numbers), strict=True):
                if text is None or as_shown(text) != members[number - 1]:
                    return None
                members[number - 1] = text
    except ServerError:
        # The user may not read the column, or others have locked the table.
        return None
    finally:
        if connection.is_open:
            connection.execute(_LOCK_TIMEOUT.format("DEFAULT"))
    return replace(column, column_type=members_type(column.data_type, members))


def _texts(
    connection: Connection, table: TableName, column: ColumnDefinition, numbers: Sequence[int]
) -> list[str | None]:
    """The texts of the members with these numbers, which begin with 1."""
    is_set = column.data_type == "set"
    listed = " UNION ALL ".join(
        _LISTED.format(number=number, value=1 << number - 1 if is_set else number) for number in numbers
    )
    rows = connection.query(
        _TEXTS.format(
            column=quoted_name(column.name),
            table=f"{quoted_name(table.database)}.{quoted_name(table.table)}",
            listed=listed,
        )
    )
    found = {int(number or 0): bytes.fromhex(text or "").decode() for number, text in rows}
    return [found.get(number) for number in numbers]
