"""Reads a statement: which kind it is, and for those that define tables or change rows what they say.

No general SQL parser: of statements that change rows only the tables' names are read, whatever else defines
neither tables nor databases is recognized by its first words, and a statement that is not understood is
returned with all the names that it contains.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace

from engine.binlog.charset_tables import MULTI_BYTE_CHARSETS
from engine.binlog.charsets import collation_charset
from engine.binlog.events.statements import EMPTIED_BY_SERVER, Query
from engine.binlog.xids import ended_xid
from engine.schema.alter_table import read_alter_table
from engine.schema.changes import TableName
from engine.schema.create_table import read_create_table, read_index_kind
from engine.schema.index_statements import read_create_index, read_drop_index
from engine.schema.manipulation import MANIPULATIONS, read_manipulation
from engine.schema.sequences import read_alter_sequence, read_create_sequence, read_drop_sequence
from engine.schema.session import StatementSession
from engine.schema.statements import (
    ChangeRows,
    DefineDatabase,
    DropDatabase,
    DropTables,
    Harmless,
    NotUnderstood,
    RenameTables,
    RollBackPrepared,
    Statement,
    Truncate,
    manipulates,
)
from engine.schema.table_options import OptionFields, read_charset_option
from engine.schema.token_reader import TokenReader, UnexpectedTokenError
from engine.schema.tokens import STRING, TokenError, tokenize

_HARMLESS_WORDS = """
    BEGIN BINLOG CACHE CALL CHECK CHECKSUM COMMIT DO END EXPLAIN FLUSH GRANT HANDLER INSTALL KILL
    LOCK OPTIMIZE PURGE RELEASE REPAIR RESET REVOKE ROLLBACK SAVEPOINT SELECT SHUTDOWN START STOP UNINSTALL
    UNLOCK USE VALUES XA
"""
_HARMLESS = frozenset(_HARMLESS_WORDS.split())
"""First words of statements that neither define tables nor change rows of tables that they name."""
_OTHER_OBJECTS_WORDS = """
    AGGREGATE ALGORITHM COMPRESSION_DICTIONARY DEFINER EVENT EXTERNAL FUNCTION INSTANCE JSON LIBRARY
    LOGFILE MASKING MATERIALIZED PACKAGE PREPARE PROCEDURE RESOURCE ROLE SERVER SPATIAL SQL TABLESPACE
    TRIGGER UNDO USER VIEW
"""
_OTHER_OBJECTS = frozenset(_OTHER_OBJECTS_WORDS.split())
"""What CREATE, ALTER and DROP are about otherwise."""
_DATABASE = frozenset({"DATABASE", "SCHEMA"})
_FIRST_TOKENS, _LOOKED_AHEAD = 64, 4
"""The beginning of a statement, and how far a reader looks beyond a token."""
_ASCII_WORDS = re.compile(r"[\w$]+", re.ASCII)
_INVALID_BYTE = re.compile(r"\\x[0-9a-f]{2}")
"""How the text of a statement shows it."""
_XA_ROLLBACK = re.compile(r"XA\s+ROLLBACK\b", re.IGNORECASE)
_EXECUTABLE_VERSION = re.compile(r"/\*M?!\d*")


def parse(statement: str, session: StatementSession) -> Statement:
    """What the statement says; never raises."""
    word = ""
    try:
        word = next((token.upper for token in tokenize(statement, session, most=1)), "")
        if word == "XA":
            return _xa(statement)
        if word in _HARMLESS:
            return Harmless()
        if word in MANIPULATIONS:
            return _manipulation(statement, session)
        tokens = tokenize(statement, session)
    except TokenError as error:
        return _not_split(statement, str(error), is_manipulation=word in MANIPULATIONS)
    reader = TokenReader(tokens, session)
    try:
        return _statement(reader)
    except UnexpectedTokenError as error:
        names = reader.words()
        return NotUnderstood(str(error), names, _may_drop_database(names), unquoted=False)


def _manipulation(statement: str, session: StatementSession) -> Statement:
    """Reads the beginning of the statement, and only if that is not enough all of it.

    With the values of many rows, or a list of many, it may have millions of tokens. Raises `TokenError`.
    """
    most = _FIRST_TOKENS
    while True:
        tokens = tokenize(statement, session, most)
        reader = TokenReader(tokens, session)
        read = _read_manipulation(reader)
        is_certain = not isinstance(read, NotUnderstood) and reader.position + _LOOKED_AHEAD < len(tokens)
        if is_certain or len(tokens) < most:
            if isinstance(read, ChangeRows) and EMPTIED_BY_SERVER.match(statement):
                return replace(read, all_rows=True)
            return read
        most = sys.maxsize


def _read_manipulation(reader: TokenReader) -> Statement:
    try:
        return read_manipulation(reader)
    except UnexpectedTokenError as error:
        return NotUnderstood(str(error), reader.words(), databases=False, unquoted=False, manipulates=True)


def _not_split(statement: str, reason: str, *, is_manipulation: bool = False) -> NotUnderstood:
    """A statement of which no more is known than its words in ASCII."""
    words = _ASCII_WORDS.findall(_EXECUTABLE_VERSION.sub(" ", statement))
    names = frozenset(word.casefold() for word in words)
    may_drop = not is_manipulation and _may_drop_database(names)
    return NotUnderstood(reason, names, may_drop, unquoted=True, manipulates=is_manipulation)


def parse_logged(query: Query, session: StatementSession) -> Statement:
    """The same for a QUERY event, whose text may not be valid in the client's character set.

    It is understood if it says the same whatever stands in the place of the bytes that are not valid: these
    are in comments, which some servers accept so.
    """
    statement = parse(query.statement, session)
    if query.statement_bytes is None or isinstance(statement, Harmless) or manipulates(statement):
        return statement
    if collation_charset(query.status.get("collation_client", 0)) not in MULTI_BYTE_CHARSETS:
        one, other = (parse(_INVALID_BYTE.sub(letter, query.statement), session) for letter in "ab")
        if one == other and not isinstance(one, NotUnderstood):
            return one
    return _not_split(query.statement, "the text is not valid in its character set")


def _xa(statement: str) -> Statement:
    """The other statements of XA transactions change nothing that row events do not say."""
    xid = ended_xid(statement) if _XA_ROLLBACK.match(statement) else None
    return Harmless() if xid is None else RollBackPrepared(xid)


def _may_drop_database(names: frozenset[str]) -> bool:
    return "database" in names or "schema" in names


def _statement(reader: TokenReader) -> Statement:
    if reader.at_end:
        return Harmless()
    if reader.take("SET", "STATEMENT"):
        return _set_statement(reader)
    if reader.upper in MANIPULATIONS:
        return _read_manipulation(reader)
    word = reader.take_one_of(frozenset(_VERBS))
    if word:
        statement = _VERBS[word](reader)
        if not isinstance(statement, Harmless) and not reader.at_end and not _is_query(statement):
            raise reader.unexpected("the end")
        return statement
    if reader.upper in _HARMLESS or reader.ahead("SET") or reader.upper == "(":
        return Harmless()
    raise reader.unexpected("a statement")


def _is_query(statement: Statement) -> bool:
    return getattr(statement, "select", False)


def _set_statement(reader: TokenReader) -> Statement:
    """MariaDB's SET STATEMENT variable = value, … FOR statement."""
    while not reader.take("FOR"):
        if reader.upper == "(":
            reader.skip_parentheses()
        else:
            reader.step()
    return _statement(reader)


def _create(reader: TokenReader) -> Statement:
    replace = reader.take("OR", "REPLACE")
    if reader.take_one_of(_DATABASE):
        if_not_exists = reader.take("IF", "NOT", "EXISTS")
        return _database(reader, reader.database(), create=True, replace=replace, if_not_exists=if_not_exists)
    temporary = reader.take("TEMPORARY")
    if reader.take("TABLE"):
        return read_create_table(reader, replace=replace, temporary=temporary)
    if reader.take("SEQUENCE"):
        return Harmless() if temporary else read_create_sequence(reader, replace=replace)
    reader.take("ONLINE") or reader.take("OFFLINE")
    start = reader.position
    kind = read_index_kind(reader)
    if reader.take("INDEX"):
        return read_create_index(reader, kind, replace=replace)
    reader.position = start
    return _other_object(reader)


def _alter(reader: TokenReader) -> Statement:
    start = reader.position
    ignore = False
    while option := reader.take_one_of(frozenset({"ONLINE", "OFFLINE", "IGNORE"})):
        ignore = ignore or option == "IGNORE"
    if reader.take("TABLE"):
        return read_alter_table(reader, ignore=ignore)
    reader.position = start
    if reader.take("SEQUENCE"):
        return read_alter_sequence(reader)
    if reader.take_one_of(_DATABASE):
        name = None if _database_option_follows(reader) else reader.database()
        if name is not None and reader.take("UPGRADE", "DATA", "DIRECTORY", "NAME"):
            raise UnexpectedTokenError("the database gets another name")
        return _database(reader, reader.session.database if name is None else name)
    return _other_object(reader)


def _database_option_follows(reader: TokenReader) -> bool:
    """Whether ALTER DATABASE goes on without a name."""
    following = reader.following().upper
    value_follows = following == "=" or reader.following().kind == STRING
    return (
        reader.ahead("CHARACTER", "SET")
        or reader.ahead("CHAR", "SET")
        or (reader.upper in ("DEFAULT", "CHARSET", "COLLATE", "ENCRYPTION") and following != "")
        or (reader.ahead("READ", "ONLY"))
        or (reader.upper in ("CHARSET", "COLLATE"))
        or (reader.upper == "COMMENT" and value_follows)
    )


def _drop(reader: TokenReader) -> Statement:
    if reader.take_one_of(_DATABASE):
        reader.take("IF", "EXISTS")
        return DropDatabase(reader.database())
    temporary = reader.take("TEMPORARY")
    if reader.take("TABLE") or reader.take("TABLES"):
        return _drop_tables(reader, temporary)
    if reader.take("SEQUENCE"):
        return Harmless() if temporary else read_drop_sequence(reader)
    reader.take("ONLINE") or reader.take("OFFLINE")
    if reader.take("INDEX"):
        return read_drop_index(reader)
    return _other_object(reader)


def _drop_tables(reader: TokenReader, temporary: bool) -> DropTables:
    if_exists = reader.take("IF", "EXISTS")
    tables = [reader.table()]
    while reader.take(","):
        tables.append(reader.table())
    reader.skip_wait()
    if not reader.take("RESTRICT"):
        reader.take("CASCADE")
    reader.skip_wait()
    return DropTables(tuple(tables), if_exists, temporary)


def _rename(reader: TokenReader) -> Statement:
    if reader.take("USER"):
        return Harmless()
    if not reader.take("TABLES"):
        reader.expect("TABLE")
    if_exists = reader.take("IF", "EXISTS")
    renames: list[tuple[TableName, TableName]] = []
    while True:
        old = reader.table()
        reader.skip_wait()
        reader.expect("TO")
        renames.append((old, reader.table()))
        if not reader.take(","):
            return RenameTables(tuple(renames), if_exists)


def _truncate(reader: TokenReader) -> Statement:
    reader.take("TABLE")
    table = reader.table()
    reader.skip_wait()
    # MariaDB's Oracle dialect.
    reader.take("DROP", "STORAGE") or reader.take("REUSE", "STORAGE")
    return Truncate(table)


def _database(
    reader: TokenReader,
    name: str,
    *,
    create: bool = False,
    replace: bool = False,
    if_not_exists: bool = False,
) -> DefineDatabase:
    fields = OptionFields()
    while not reader.at_end:
        if read_charset_option(reader, fields):
            continue
        reader.take("DEFAULT")
        if reader.take("ENCRYPTION") or reader.take("COMMENT") or reader.take("READ", "ONLY"):
            reader.take("=")
            reader.skip_value()
        else:
            raise reader.unexpected("an option of a database")
    return DefineDatabase(name, fields.charset, fields.collation, create, replace, if_not_exists)


def _other_object(reader: TokenReader) -> Statement:
    if reader.upper in _OTHER_OBJECTS:
        return Harmless()
    raise reader.unexpected("what is defined")


_VERBS: Mapping[str, Callable[[TokenReader], Statement]] = {
    "CREATE": _create,
    "ALTER": _alter,
    "DROP": _drop,
    "RENAME": _rename,
    "TRUNCATE": _truncate,
}
