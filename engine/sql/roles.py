"""What an entry of the events feed is to a script: a definition to repeat, a boundary, or a reason to refuse.

Statements are read by the parser that follows table definitions, because the feed says only of known tables
which statements concern them.
"""

from __future__ import annotations

import json
from enum import Enum, auto

from engine.binlog.events.query_status import takes_effect
from engine.schema.changes import TableName
from engine.schema.parser import parse
from engine.schema.session import Flavor, StatementSession
from engine.schema.statements import (
    CreateTable,
    DefineDatabase,
    DropDatabase,
    DropTables,
    NotUnderstood,
    Statement,
    manipulates,
    named_tables,
)
from engine.schema.token_reader import TokenReader
from engine.schema.tokens import TokenError, tokenize
from engine.sql.entries import FeedEntry
from engine.sql.selection import Selection

_NEWEST = (99, 0, 0)
"""The feed does not contain the server's version; the newest reads every executable comment."""
_QUERIES = frozenset({"QUERY_EVENT", "QUERY_COMPRESSED_EVENT"})
_LOADS = frozenset({"EXECUTE_LOAD_QUERY_EVENT", "LOAD_EVENT", "NEW_LOAD_EVENT", "EXEC_LOAD_EVENT"})
_GTIDS = ("GTID_LOG_EVENT", "ANONYMOUS_GTID_LOG_EVENT", "GTID_TAGGED_LOG_EVENT", "GTID_EVENT")
_BOUNDARIES = frozenset({"XID_EVENT", "XA_PREPARE_LOG_EVENT", *_GTIDS})
_OF_TRANSACTIONS = frozenset({"BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "START", "XA"})
_OF_ROWS = frozenset({"INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD", "CALL", "WITH"})


class Role(Enum):
    """What an entry is."""

    OTHER = auto()
    """Of no concern."""
    BOUNDARY = auto()
    """The beginning or the end of a transaction."""
    TABLE_DEFINITION = auto()
    DATABASE_DEFINITION = auto()
    ROWS = auto()
    """A statement that changed rows without row events."""
    DROPPED = auto()
    """Changes that `--on-corrupt skip` dropped."""


def role_of(entry: FeedEntry, selection: Selection, flavor: Flavor) -> Role:
    """The role of an entry in a script of the selection's changes."""
    if entry.kind in _LOADS:
        return Role.ROWS
    if entry.kind == "CORRUPT_EVENT":
        return Role.DROPPED
    if entry.kind not in _QUERIES:
        return Role.BOUNDARY if entry.kind in _BOUNDARIES else Role.OTHER
    if entry.statement in _OF_TRANSACTIONS:
        return Role.BOUNDARY
    data = json.loads(entry.data)
    status = data.get("status") or {}
    if not takes_effect(status):
        return Role.OTHER
    session = session_of_entry(entry, flavor)
    word = _first_word(entry.statement, session)
    if word in _OF_TRANSACTIONS:
        return Role.BOUNDARY
    if word in _OF_ROWS:
        return Role.ROWS
    return _role_of_definition(parse(entry.statement, session), data, entry, selection)


def session_of_entry(entry: FeedEntry, flavor: Flavor) -> StatementSession:
    """What is known of the session of an entry's statement."""
    status = json.loads(entry.data).get("status") or {}
    return StatementSession(flavor, _NEWEST, entry.database, status.get("sql_mode", 0))


def _first_word(statement: str, session: StatementSession) -> str:
    """The first word in upper case."""
    try:
        return TokenReader(tokenize(statement, session, most=1), session).upper
    except TokenError:
        return ""


def _role_of_definition(
    statement: Statement, data: dict[str, object], entry: FeedEntry, selection: Selection
) -> Role:
    if manipulates(statement):
        return Role.ROWS
    if isinstance(statement, DefineDatabase | DropDatabase):
        wanted = selection.may_want_database(statement.database)
        return Role.DATABASE_DEFINITION if wanted else Role.OTHER
    if isinstance(statement, CreateTable | DropTables) and statement.temporary:
        return Role.OTHER
    listed = data.get("tables", ())
    assert isinstance(listed, list | tuple)
    names = [*named_tables(statement), *(TableName(each["database"], each["table"]) for each in listed)]
    wanted = any(_may_want(selection, name) for name in names)
    if isinstance(statement, NotUnderstood):
        wanted = wanted or selection.may_want_database(entry.database)
    if wanted and isinstance(statement, CreateTable) and statement.select:
        # With row events the query is not in the statement.
        return Role.ROWS
    return Role.TABLE_DEFINITION if wanted else Role.OTHER


def _may_want(selection: Selection, name: TableName) -> bool:
    """Whether the table is wanted; servers may store names in lower case."""
    if not name.table:
        return selection.may_want_database(name.database)
    wants = selection.tables.wants
    return wants(name.database, name.table) or wants(name.database.lower(), name.table.lower())
