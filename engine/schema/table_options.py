"""Reads the options of a table or database, and steps over its partitions."""

from __future__ import annotations

from engine.schema.statements import TableOptions
from engine.schema.token_reader import TokenReader
from engine.schema.tokens import NUMBER, QUOTED, STRING, WORD

_QUERY_STARTS = frozenset({"AS", "SELECT", "IGNORE", "REPLACE", "WITH", "VALUES", "TABLE", "("})
"""What a query in CREATE TABLE may begin with."""
_OPTIONS_OF_TWO_WORDS = (
    ("DATA", "DIRECTORY"),
    ("INDEX", "DIRECTORY"),
)


class OptionFields:
    """The options read so far."""

    def __init__(self) -> None:
        self.charset: str | None = None
        self.collation: str | None = None
        self.engine: str | None = None

    def frozen(self) -> TableOptions:
        """The options as a value."""
        return TableOptions(self.charset, self.collation, self.engine)


def read_option(reader: TokenReader, fields: OptionFields) -> bool:
    """Read one table option into `fields`; returns whether there is one. Raises `UnexpectedTokenError`."""
    if read_charset_option(reader, fields):
        return True
    if reader.take("START", "TRANSACTION"):
        return True
    if reader.ahead("ENGINE") or reader.ahead("TYPE"):
        reader.step()
        reader.take("=")
        fields.engine = reader.name_or_string().lower()
        return True
    for words in _OPTIONS_OF_TWO_WORDS:
        if reader.take(*words):
            reader.take("=")
            reader.skip_value()
            return True
    if reader.take("TABLESPACE"):
        reader.take("=")
        reader.name_or_string()
        if reader.take("STORAGE"):
            reader.step()
        return True
    if reader.take("STORAGE"):
        reader.step()
        return True
    if reader.token.kind in (WORD, QUOTED) and reader.upper not in _QUERY_STARTS:
        value = reader.following()
        if value.upper == "=" or value.kind in (NUMBER, STRING, WORD) or reader.ahead("UNION", "("):
            reader.step()
            reader.take("=")
            reader.skip_value()
            return True
    return False


def read_charset_option(reader: TokenReader, fields: OptionFields) -> bool:
    """Read [DEFAULT] CHARACTER SET or COLLATE into `fields`; returns whether there is one."""
    start = reader.position
    reader.take("DEFAULT")
    if reader.take("CHARACTER", "SET") or reader.take("CHAR", "SET") or reader.take("CHARSET"):
        reader.take("=")
        fields.charset = reader.charset()
        return True
    if reader.take("COLLATE"):
        reader.take("=")
        fields.collation = reader.charset()
        return True
    reader.position = start
    return False


def skip_partitions(reader: TokenReader) -> None:
    """Step over what follows PARTITION, up to a query or the end. Raises `UnexpectedTokenError`."""
    reader.expect("BY")
    while not reader.at_end and reader.upper not in _QUERY_STARTS - {"("}:
        if reader.upper == "(":
            if reader.following().upper in ("SELECT", "WITH"):
                return
            reader.skip_parentheses()
        else:
            reader.step()


def query_follows(reader: TokenReader) -> bool:
    """Whether the query of a CREATE TABLE … SELECT comes next."""
    return reader.upper in _QUERY_STARTS
