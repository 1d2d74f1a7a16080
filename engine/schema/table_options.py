"""Reads the options of a table or database, and steps over its partitions."""

from __future__ import annotations

from engine.schema.declarations import TableOptions
from engine.schema.token_reader import TokenReader
from engine.schema.tokens import QUOTED, WORD

_QUERY_STARTS = frozenset({"AS", "SELECT", "IGNORE", "REPLACE", "WITH", "VALUES", "TABLE", "("})
"""What a query in CREATE TABLE may begin with."""
_ENGINE = frozenset({"ENGINE", "TYPE"})
_OPTION_NAMES = """
    AUTOEXTEND_SIZE AUTO_INCREMENT AVG_ROW_LENGTH CHECKSUM COMMENT COMPRESSION CONNECTION DELAY_KEY_WRITE
    ENCRYPTION ENGINE_ATTRIBUTE INSERT_METHOD KEY_BLOCK_SIZE MAX_ROWS MIN_ROWS PACK_KEYS PAGE_CHECKSUM
    PASSWORD ROW_FORMAT SECONDARY_ENGINE SECONDARY_ENGINE_ATTRIBUTE SEQUENCE STATS_AUTO_RECALC
    STATS_PERSISTENT STATS_SAMPLE_PAGES TABLE_CHECKSUM TRANSACTIONAL UNION
"""
_OPTIONS = frozenset(_OPTION_NAMES.split())
"""Options whose value may follow without an equals sign."""


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
    if read_charset_option(reader, fields) or reader.take("START", "TRANSACTION"):
        return True
    if reader.take_one_of(_ENGINE):
        reader.take("=")
        fields.engine = reader.name_or_string().lower()
    elif reader.take("DATA", "DIRECTORY") or reader.take("INDEX", "DIRECTORY"):
        reader.take("=")
        reader.string()
    elif reader.take("TABLESPACE"):
        reader.take("=")
        reader.name_or_string()
    elif reader.take("STORAGE"):
        reader.step()
    elif reader.upper in _OPTIONS or _names_option(reader):
        reader.step()
        reader.take("=")
        reader.skip_value()
    else:
        return False
    return True


def _names_option(reader: TokenReader) -> bool:
    """Whether a name and an equals sign come next: MariaDB's storage engines have options of their own."""
    return reader.token.kind in (WORD, QUOTED) and reader.following().upper == "="


def read_charset_option(reader: TokenReader, fields: OptionFields) -> bool:
    """Read [DEFAULT] CHARACTER SET or COLLATE into `fields`; returns whether there is one."""
    start = reader.position
    reader.take("DEFAULT")
    if reader.take("CHARACTER", "SET") or reader.take("CHAR", "SET") or reader.take("CHARSET"):
        reader.take("=")
        fields.charset = reader.charset()
        if reader.session.charset_replaces_collate:
            fields.collation = None
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
    while not reader.at_end:
        if reader.upper == "(" and reader.following().upper not in ("SELECT", "WITH"):
            reader.skip_parentheses()
        elif query_follows(reader):
            return
        else:
            reader.step()


def query_follows(reader: TokenReader) -> bool:
    """Whether the query of a CREATE TABLE … SELECT comes next."""
    return reader.upper in _QUERY_STARTS and not reader.ahead("WITH", "SYSTEM", "VERSIONING")
