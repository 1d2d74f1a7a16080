"""Reads CREATE TABLE: columns, the keys that definitions depend on, options, and what the table copies."""

from __future__ import annotations

import dataclasses

from engine.schema.column_clauses import read_column, skip_reference
from engine.schema.declarations import ColumnClause, Key, KeyPart, Period
from engine.schema.statements import CreateTable
from engine.schema.table_options import OptionFields, query_follows, read_option, skip_partitions
from engine.schema.token_reader import TokenReader
from engine.schema.tokens import WORD

_INDEX_KINDS = frozenset({"UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR"})
_PRIMARY = frozenset({"PRIMARY"})
_KEY_STARTS = frozenset(
    {"CONSTRAINT", "CHECK", "FOREIGN", "FULLTEXT", "INDEX", "KEY", "PRIMARY", "SPATIAL", "UNIQUE"}
)
_AFTER_CLUSTERING = frozenset({"INDEX", "KEY", "UNIQUE"})
_KEY_FLAGS = frozenset({"VISIBLE", "INVISIBLE", "IGNORED"})
_KEY_OPTIONS = frozenset({"KEY_BLOCK_SIZE", "COMMENT", "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE"})
"""Options whose value may follow without an equals sign."""
_ALGORITHM = frozenset({"USING", "TYPE"})
_EXECUTION_OPTIONS = frozenset({"ALGORITHM", "LOCK"})
"""Options of CREATE INDEX that are not the key's."""


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
    versioned = False
    while not reader.at_end:
        if reader.take("PARTITION"):
            skip_partitions(reader)
        elif reader.take("WITH", "SYSTEM", "VERSIONING"):
            versioned = True
        elif query_follows(reader):
            break
        elif not (reader.take(",") or read_option(reader, options)):
            raise reader.unexpected("a table option")
    return dataclasses.replace(
        start,
        columns=tuple(body.columns),
        keys=tuple(body.keys),
        options=options.frozen(),
        versioned=versioned,
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
        if starts_period(reader):
            self.periods.append(read_period(reader))
            return
        if starts_key(reader):
            key = read_key(reader)
            if key is not None:
                self.keys.append(key)
            return
        self.columns.append(read_column(reader))


def starts_key(reader: TokenReader) -> bool:
    """Whether a key or constraint comes next, and not a column; one may be named `vector` or `clustering`."""
    if reader.upper == "VECTOR":
        return reader.following().upper in ("INDEX", "KEY", "(")
    return reader.upper in _KEY_STARTS or _clustering_follows(reader)


def starts_period(reader: TokenReader) -> bool:
    """Whether a period comes next, and not a column of that name."""
    return reader.ahead("PERIOD", "FOR") or reader.ahead("PERIOD", "IF")


def read_period(reader: TokenReader) -> Period:
    """PERIOD FOR name (start, end). Raises `UnexpectedTokenError`."""
    reader.expect("PERIOD")
    if_not_exists = reader.take("IF", "NOT", "EXISTS")
    reader.expect("FOR")
    of_system = reader.name().upper() == "SYSTEM_TIME"
    reader.expect("(")
    start = reader.column()
    reader.expect(",")
    end = reader.column()
    reader.expect(")")
    return Period(of_system, start, end, if_not_exists)


def read_key(reader: TokenReader) -> Key | None:
    """A key or constraint; None unless it is a primary or unique key. Raises `UnexpectedTokenError`."""
    if_not_exists, name = False, None
    if reader.take("CONSTRAINT"):
        if_not_exists = reader.take("IF", "NOT", "EXISTS")
        name = reader.optional_name("PRIMARY", "UNIQUE", "FOREIGN", "CHECK")
    if reader.take("CHECK"):
        reader.skip_parentheses()
        if not reader.take("NOT", "ENFORCED"):
            reader.take("ENFORCED")
        return None
    if reader.take("FOREIGN", "KEY"):
        _skip_foreign_key(reader)
        return None
    kind = reader.take_one_of(_PRIMARY) or read_index_kind(reader)
    if kind == "PRIMARY":
        reader.expect("KEY")
    elif not (reader.take("INDEX") or reader.take("KEY") or kind):
        raise reader.unexpected("a key")
    if_not_exists = reader.take("IF", "NOT", "EXISTS") or if_not_exists
    if reader.upper not in ("(", "USING"):
        # TYPE is an algorithm's word only after the name.
        name = reader.name()
    hashed = read_key_algorithm(reader)
    return read_key_columns(reader, kind, hashed=hashed, if_not_exists=if_not_exists, name=name)


def read_index_kind(reader: TokenReader) -> str:
    """The word before INDEX or KEY, without Percona Server's CLUSTERING, on which no definition depends."""
    if _clustering_follows(reader):
        reader.step()
    kind = reader.take_one_of(_INDEX_KINDS)
    if _clustering_follows(reader):
        reader.step()
    return kind


def _clustering_follows(reader: TokenReader) -> bool:
    return reader.upper == "CLUSTERING" and reader.following().upper in _AFTER_CLUSTERING


def read_key_algorithm(reader: TokenReader) -> bool:
    """USING and TYPE with the algorithm of a key; whether it is HASH. Raises `UnexpectedTokenError`."""
    hashed = False
    while reader.take_one_of(_ALGORITHM):
        hashed = reader.step().upper == "HASH"
    return hashed


def read_key_columns(
    reader: TokenReader, kind: str, *, hashed: bool, if_not_exists: bool, name: str | None
) -> Key | None:
    """The columns and options of a key of a kind, as in `read_key`. Raises `UnexpectedTokenError`."""
    if kind not in ("PRIMARY", "UNIQUE"):
        reader.skip_parentheses()
        _skip_key_options(reader)
        return None
    parts: list[KeyPart] = []
    without_overlaps = False
    reader.expect("(")
    while True:
        part = _key_part(reader)
        if reader.take("WITHOUT", "OVERLAPS"):
            without_overlaps = True
        elif part is not None:
            parts.append(part)
        if not reader.take(","):
            break
    reader.expect(")")
    hashed = _skip_key_options(reader) or hashed
    return Key(kind == "PRIMARY", tuple(parts), hashed, if_not_exists, name, without_overlaps)


def _skip_foreign_key(reader: TokenReader) -> None:
    reader.take("IF", "NOT", "EXISTS")
    if reader.upper != "(":
        reader.name()
    reader.skip_parentheses()
    reader.expect("REFERENCES")
    skip_reference(reader)


def _key_part(reader: TokenReader) -> KeyPart | None:
    """A column or the period of a key; None for an expression."""
    part = None
    if reader.upper == "(":
        reader.skip_parentheses()
    else:
        column, length = reader.column(), None
        if reader.take("("):
            length = reader.number()
            reader.expect(")")
        part = KeyPart(column, length)
    if not reader.take("ASC"):
        reader.take("DESC")
    return part


def _skip_key_options(reader: TokenReader) -> bool:
    """Step over options of a key, those of storage engines included; whether one is USING HASH."""
    hashed = False
    # MariaDB's CREATE INDEX says here how long it waits.
    reader.skip_wait()
    while reader.token.kind == WORD and reader.upper not in _EXECUTION_OPTIONS:
        if reader.upper in _ALGORITHM:
            hashed = read_key_algorithm(reader)
        elif reader.take("WITH", "PARSER"):
            reader.name()
        elif reader.take("NOT"):
            reader.expect("IGNORED")
        elif not reader.take_one_of(_KEY_FLAGS):
            if reader.upper not in _KEY_OPTIONS and reader.following().upper != "=":
                return hashed
            reader.step()
            reader.take("=")
            reader.skip_value()
    return hashed
