"""The tables whose definitions a statement may change, without knowing any definition.

A search ahead in the binlog needs this: an answer of the server's catalog counts for an earlier position only
if no statement in between may have changed the table. A statement that is not understood may change every
table that it mentions, in any database.
"""

from __future__ import annotations

import re

from engine.binlog.events.statements import Query
from engine.schema.alter_actions import (
    Action,
    AddKey,
    DropKey,
    DropPeriod,
    ExchangePartition,
    LoseRows,
    PartitionToTable,
    RenameKey,
    RenameTo,
    SetDefault,
    SetOptions,
    TableToPartition,
)
from engine.schema.changes import TableName
from engine.schema.parser import parse_logged
from engine.schema.session import session_of
from engine.schema.statements import (
    AlterTable,
    CreateTable,
    DefineDatabase,
    DropDatabase,
    DropTables,
    NotUnderstood,
    RenameTables,
    Statement,
    manipulates,
)

Name = tuple[str | None, str | None]
"""Database and table, both case-folded; None for any."""
ANY_TABLE: Name = (None, None)
_KEY = "\0key"
"""Follows the name of a table of which a statement may have changed the primary key."""
_COPIED = "\0copied"
"""Follows the name of a table of which a statement may have made a copy."""
_NO_WORD: Name = (None, "")
"""Any table whose name, or whose database's name, is not a word in ASCII."""
_WORD = re.compile(r"[\w$]+", re.ASCII)
_FILE_NAME = "#mysql50#"
"""A name with this prefix is the name of a table's file, in which characters are encoded."""
_OTHER_TABLE = (RenameTo, ExchangePartition, PartitionToTable, TableToPartition)
"""Clauses of ALTER TABLE that name a second table."""


def altered_tables(query: Query, server_version: str, flavor: str) -> frozenset[Name]:
    """The tables that existed before the statement and whose definitions it may have changed.

    A change of nothing but the primary key has a name of its own, `key_name`; so has a table that it copies,
    `copied_name`.
    """
    return _names(parse_logged(query, session_of(query, server_version, flavor)))


def names_of(database: str, table: str) -> tuple[Name, ...]:
    """All elements of a result of `altered_tables` that include this table."""
    owner, name = database.casefold(), table.casefold()
    names: tuple[Name, ...] = (owner, name), (owner, None), (None, name), ANY_TABLE
    return names if _WORD.fullmatch(owner) and _WORD.fullmatch(name) else (*names, _NO_WORD)


def key_name(database: str, table: str) -> Name:
    """The element of a result of `altered_tables` for a table whose primary key may have changed."""
    return database.casefold(), table.casefold() + _KEY


def copied_name(database: str, table: str) -> Name:
    """The element of a result of `altered_tables` for a table whose definition another table gets."""
    return database.casefold(), table.casefold() + _COPIED


def _names(statement: Statement) -> frozenset[Name]:
    if manipulates(statement):
        return frozenset()
    if isinstance(statement, NotUnderstood):
        return _mentioned(statement)
    if isinstance(statement, DropDatabase):
        return frozenset([(statement.database.casefold(), None)])
    if isinstance(statement, DefineDatabase):
        # The empty name stands for the database's defaults.
        return frozenset([(statement.database.casefold(), None if statement.replace else "")])
    if isinstance(statement, AlterTable) and any(map(_changes_key, statement.actions)):
        table = statement.table
        return frozenset([*map(_name, _tables(statement)), key_name(table.database, table.table)])
    if isinstance(statement, CreateTable) and statement.like is not None and not statement.temporary:
        source = statement.like
        return frozenset([*map(_name, _tables(statement)), copied_name(source.database, source.table)])
    return frozenset(map(_name, _tables(statement)))


def _name(table: TableName) -> Name:
    if table.table.casefold().startswith(_FILE_NAME):
        return table.database.casefold(), None
    return table.database.casefold(), table.table.casefold()


def _tables(statement: Statement) -> list[TableName]:
    if isinstance(statement, CreateTable):
        # Otherwise the table did not exist, or the statement has no effect.
        return [statement.table] if statement.replace and not statement.temporary else []
    if isinstance(statement, DropTables):
        return [] if statement.temporary or statement.only_sequences else list(statement.tables)
    if isinstance(statement, RenameTables):
        return [name for pair in statement.renames for name in pair]
    if isinstance(statement, AlterTable):
        altering = [action for action in statement.actions if _alters(action)]
        others = [action.table for action in altering if isinstance(action, _OTHER_TABLE)]
        return [statement.table, *others] if altering else []
    return []


def _alters(action: Action) -> bool:
    """Whether a clause changes names, types or the order of columns, or the default for new ones."""
    if isinstance(action, SetOptions):
        options = action.options
        return options.charset is not None or options.collation is not None
    return not isinstance(action, SetDefault | LoseRows | AddKey | DropKey | RenameKey | DropPeriod)


def _changes_key(action: Action) -> bool:
    return (isinstance(action, AddKey) and action.key.primary) or (
        isinstance(action, DropKey) and action.of_primary
    )


def _mentioned(statement: NotUnderstood) -> frozenset[Name]:
    names: set[Name] = {(None, name) for name in statement.names}
    if statement.databases:
        names |= {(name, None) for name in statement.names}
    return frozenset(names | {_NO_WORD} if statement.unquoted else names)
