"""Reads CREATE TABLE: columns, the keys that definitions depend on, options, and what the table copies."""

from __future__ import annotations

import dataclasses

from engine.schema.column_clauses import read_column, skip_reference
from engine.schema.statements import ColumnClause, CreateTable, Key, KeyPart, Period
from engine.schema.table_options import OptionFields, query_follows, read_option, skip_partitions
from engine.schema.token_reader import TokenReader
from engine.schema.tokens import WORD

_KEY_FLAGS = frozenset({"VISIBLE", "INVISIBLE", "IGNORED"})


def read_create_table(reader: TokenReader, *, replace: bool, temporary: bool) -> CreateTable:
    """The statement from after TABLE. Raises `UnexpectedTokenError`."""
    if_not_exists = reader.take("IF", "NOT", "EXISTS")
    table = reader.table()
    start = CreateTable(table, if_not_exists=if_not_exists, replace=replace, temporary=temporary)
    if reader.take("LIKE"):
        like = reader.table()
        _expect_end(reader)
        return dataclasses.replace(start, like=like)
    if reader.take("(", "LIKE"):
        like = reader.table()
        reader.expect(")")
        _expect_end(reader)
        return dataclasses.replace(start, like=like)
    body = _Body(reader)
    if reader.upper == "(" and reader.following().upper not in ("SELECT", "WITH", "("):
        body.read()
    options = OptionFields()
    while not reader.at_end:
        if reader.take("PARTITION"):
            skip_partitions(reader)
        elif query_follows(reader):
            break
        elif not (reader.take(",") or read_option(reader, options)):
            raise reader.unexpected("a table option")
    return dataclasses.replace(
        start,
        columns=tuple(body.columns),
        keys=tuple(body.keys),
        options=options.frozen(),
        periods=tuple(body.periods),
        select=not reader.at_end,
    )


def _expect_end(reader: TokenReader) -> None:
    """MariaDB allows options after LIKE, without effect on columns."""
    options = OptionFields()
    while not reader.at_end:
        if not read_option(reader, options):
            raise reader.unexpected("the end")


class _Body:
    """The parenthesis of columns and keys."""

    def __init__(self, reader: TokenReader) -> None:
        self._reader = reader
        self.columns: list[ColumnClause] = []
        self.keys: list[Key] = []
        self.periods: list[Period] = []

    def read(self) -> None:
        reader = self._reader
        reader.expect("(")
        while True:
            self._element()
            if not reader.take(","):
                break
        reader.expect(")")

    def _element(self) -> None:
        reader = self._reader
        if reader.ahead("PERIOD", "FOR"):
            self.periods.append(read_period(reader))
            return
        if starts_key(reader):
            key = read_key(reader)
            if key is not None:
                self.keys.append(key)
            return
        self.columns.append(read_column(reader))


def starts_key(reader: TokenReader) -> bool:
    """Whether a key or constraint comes next, and not a column."""
    word = reader.upper
    if word in ("CONSTRAINT", "CHECK", "FOREIGN", "PRIMARY", "UNIQUE", "INDEX", "KEY", "FULLTEXT", "SPATIAL"):
        return True
    if word == "VECTOR":
        return reader.following().upper in ("INDEX", "KEY", "(")
    return False


def read_period(reader: TokenReader) -> Period:
    """PERIOD FOR name (start, end). Raises `UnexpectedTokenError`."""
    reader.expect("PERIOD", "FOR")
    reader.take("IF", "NOT", "EXISTS")
    of_system = reader.name().upper() == "SYSTEM_TIME"
    reader.expect("(")
    start = reader.column()
    reader.expect(",")
    end = reader.column()
    reader.expect(")")
    return Period(of_system, start, end)


def read_key(reader: TokenReader) -> Key | None:
    """A key or constraint; None unless it is a primary or unique key. Raises `UnexpectedTokenError`."""
    name = None
    if_not_exists = False
    if reader.take("CONSTRAINT"):
        if_not_exists = reader.take("IF", "NOT", "EXISTS")
        name = reader.optional_name("PRIMARY", "UNIQUE", "FOREIGN", "CHECK")
    if reader.take("CHECK"):
        reader.skip_parentheses()
        if not reader.take("NOT", "ENFORCED"):
            reader.take("ENFORCED")
        return None
    if reader.take("FOREIGN"):
        reader.expect("KEY")
        reader.take("IF", "NOT", "EXISTS")
        if reader.upper != "(":
            reader.name()
        reader.skip_parentheses()
        reader.expect("REFERENCES")
        skip_reference(reader)
        return None
    primary = unique = False
    if reader.take("PRIMARY"):
        reader.expect("KEY")
        primary = True
    elif reader.take("UNIQUE"):
        unique = True
        reader.take("INDEX") or reader.take("KEY")
    elif reader.take("FULLTEXT") or reader.take("SPATIAL") or reader.take("VECTOR"):
        reader.take("INDEX") or reader.take("KEY")
    elif not (reader.take("INDEX") or reader.take("KEY")):
        raise reader.unexpected("a key")
    if_not_exists = reader.take("IF", "NOT", "EXISTS") or if_not_exists
    if reader.upper not in ("(", "USING", "TYPE"):
        name = reader.name()
    return _key_columns(reader, primary=primary, unique=unique, name=name, if_not_exists=if_not_exists)


def _key_columns(
    reader: TokenReader, *, primary: bool, unique: bool, name: str | None, if_not_exists: bool
) -> Key | None:
    """A key from its algorithm on. Raises `UnexpectedTokenError`."""
    while reader.upper != "(":
        if not (reader.take("USING") or reader.take("TYPE")):
            raise reader.unexpected("the columns of a key")
        reader.step()
    if not primary and not unique:
        reader.skip_parentheses()
        _skip_key_options(reader)
        return None
    parts: list[KeyPart] = []
    reader.expect("(")
    while True:
        part = _key_part(reader)
        if part is not None:
            parts.append(part)
        if not reader.take(","):
            break
    reader.expect(")")
    _skip_key_options(reader)
    return Key(primary, tuple(parts), name, if_not_exists)


def read_key_columns(reader: TokenReader, *, unique: bool, name: str, if_not_exists: bool) -> Key | None:
    """The columns and options of CREATE INDEX; None unless it is unique. Raises `UnexpectedTokenError`."""
    return _key_columns(reader, primary=False, unique=unique, name=name, if_not_exists=if_not_exists)


def _key_part(reader: TokenReader) -> KeyPart | None:
    """A column of a key; None for an expression."""
    if reader.upper == "(":
        reader.skip_parentheses()
        length = None
        column = None
    else:
        column = reader.column()
        length = None
        if reader.take("("):
            length = reader.number()
            reader.expect(")")
    if not reader.take("ASC"):
        reader.take("DESC")
    reader.take("WITHOUT", "OVERLAPS")
    return None if column is None else KeyPart(column, length)


def _skip_key_options(reader: TokenReader) -> None:
    """Options of a key: KEY_BLOCK_SIZE, USING, WITH PARSER, COMMENT, VISIBLE, and those of engines."""
    while reader.token.kind == WORD and not _after_key(reader):
        if reader.take("WITH", "PARSER"):
            reader.name()
        elif reader.take("NOT"):
            reader.expect("IGNORED")
        elif not reader.take_one_of(_KEY_FLAGS):
            reader.step()
            reader.take("=")
            reader.skip_value()


def _after_key(reader: TokenReader) -> bool:
    """Whether the options of a CREATE INDEX that concern its execution come next."""
    return reader.upper in ("ALGORITHM", "LOCK", "WAIT", "NOWAIT")
