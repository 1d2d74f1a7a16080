"""The tables whose columns a statement may change: their names, types or order.

Small and conservative: a statement is split into words, quoted names and punctuation marks, and unless it is
one of the harmless kinds below, it may change every table that it names. A statement that cannot be split
with certainty may change every table whose name is one of its words, in any database, and every table whose
name is not a word.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

Name = tuple[str | None, str | None]
"""Database and table, both case-folded; None for any."""
ANY_TABLE: Name = (None, None)
_NO_WORD: Name = (None, "")
"""Any table whose name, or whose database's name, is not a word in ASCII."""

_TOKEN = re.compile(
    r"""
    [ \t\n\r\f\v]+ | \#[^\n]* | --(?=[\x00-\x20]|\Z)[^\n]* | /\*.*?\*/ | \*/
    | ` (?P<quoted> (?:[^`]|``)+ ) `
    | " (?P<ansi> (?:[^"]|"")+ ) "
    | (?P<word> (?:[\w$]|[^\x00-\x7f])+ )
    | (?P<string> '(?:[^']|'')*' | "" )
    | (?P<mark> . )
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_WORD = re.compile(r"[\w$]+", re.ASCII)
_EXECUTABLE = r"/\*M?!\d*"
_UNCERTAIN = re.compile(rf"\\|{_EXECUTABLE}|#mysql50#", re.IGNORECASE)
"""Depending on sql_mode, a backslash may escape a quote; only some servers execute such a comment; the prefix
denotes a table by its file name."""
_TEMPORARY_BY_SERVER = "DROP /*!40005 TEMPORARY */"
_BEFORE_A_NAME = ("TABLE", "TABLES", "EXISTS", "TO", "AS", "RENAME")
"""After one of these words a dot does not follow a database: `.t` is a table of the default database."""

_NAME = r"""[\w$`"]+"""
_OPTION = (
    r"(?:ALGORITHM|AUTO_INCREMENT|AVG_ROW_LENGTH|CHECKSUM|COMMENT|COMPRESSION|ENGINE|KEY_BLOCK_SIZE|LOCK"
    r"|MAX_ROWS|MIN_ROWS|PACK_KEYS|ROW_FORMAT|STATS_\w+)(?: =)? [^ (),]+"
)
_HARMLESS_CLAUSES = (
    r"ADD (?:UNIQUE|FULLTEXT|SPATIAL|INDEX|KEY|PRIMARY KEY|FOREIGN KEY|CONSTRAINT|CHECK)(?: [^,]*)?",
    r"ADD PARTITION(?: IF NOT EXISTS)?(?: PARTITIONS \d+| \(\))",
    rf"ALTER (?:COLUMN )?{_NAME} (?:SET DEFAULT [^,]+|DROP DEFAULT)",
    rf"ALTER (?:INDEX|KEY|CHECK|CONSTRAINT) {_NAME} [^,]+",
    r"(?:DISABLE|ENABLE) KEYS",
    r"DROP (?:INDEX|KEY|FOREIGN KEY|CONSTRAINT|CHECK) [^,]+",
    r"DROP PRIMARY KEY",
    r"FORCE",
    rf"{_OPTION}(?: {_OPTION})*",
    rf"ORDER BY {_NAME}(?: ASC| DESC)?(?: , {_NAME}(?: ASC| DESC)?)*",
    r"PARTITION BY [^,]+",
    rf"(?:ANALYZE|CHECK|COALESCE|DROP|OPTIMIZE|REBUILD|REORGANIZE|REPAIR|TRUNCATE) PARTITION"
    rf"(?: IF EXISTS)? {_NAME}(?: , {_NAME})*(?: INTO \(\))?",
    r"REMOVE PARTITIONING",
    rf"RENAME (?:INDEX|KEY) {_NAME} TO {_NAME}",
    r"(?:WITH|WITHOUT) VALIDATION",
)
"""Of ALTER TABLE. Their first words cannot be the name of a column unless it is quoted."""
_CLAUSE = "(?:" + "|".join(_HARMLESS_CLAUSES) + ")"
_ALTER_TABLE = re.compile(
    rf"(ALTER (?:ONLINE |OFFLINE |IGNORE )*TABLE (?:IF EXISTS )?){_NAME}( \. {_NAME})?(?: WAIT \d+| NOWAIT)?"
)
_SECOND_TABLE = re.compile(r" (?:RENAME(?! COLUMN| INDEX| KEY)|EXCHANGE)\b")
"""In an ALTER TABLE that affects two tables."""
_DATABASE_DROPPED = re.compile(r"(?:DROP|CREATE OR REPLACE) (?:DATABASE|SCHEMA)\b")

_HARMLESS_START = re.compile(
    "|".join(
        (
            # The table exists: CREATE fails unless another statement drops or renames it first.
            r"CREATE (?!OR\b)\w+",
            r"CREATE OR REPLACE (?:AGGREGATE|ALGORITHM|DEFINER|EVENT|FULLTEXT|FUNCTION|INDEX|PACKAGE"
            r"|PROCEDURE|ROLE|SERVER|SPATIAL|SQL|TEMPORARY|TRIGGER|UNIQUE|USER|VIEW)\b",
            r"DROP (?:EVENT|FUNCTION|INDEX|PACKAGE|PREPARE|PROCEDURE|RESOURCE|ROLE|SERVER|SPATIAL|TABLESPACE"
            r"|TEMPORARY|TRIGGER|UNDO|USER|VIEW)\b",
            r"ALTER (?:ALGORITHM|DATABASE|DEFINER|EVENT|FUNCTION|INSTANCE|LOGFILE|PROCEDURE|RESOURCE|ROLE"
            r"|SCHEMA|SERVER|SQL|TABLESPACE|UNDO|USER|VIEW)\b",
            r"RENAME USER\b",
            r"(?:ANALYZE|COMMIT|DELETE|FLUSH|GRANT|INSERT|REPLACE|REVOKE|ROLLBACK|SAVEPOINT|TRUNCATE|UPDATE"
            r"|WITH)\b",
        )
    )
)
"""Harmless whatever follows."""
_HARMLESS = re.compile(rf"{_ALTER_TABLE.pattern}(?: {_CLAUSE}(?: , {_CLAUSE})*)?")


@dataclass(frozen=True, slots=True)
class _Token:
    name: str | None
    """The name, if it can be one; None for marks and strings."""
    shown: str
    """Its form in the text for the patterns: a word in upper case, a mark, or only the quote."""


def changed_tables(statement: str, database: str) -> frozenset[Name]:
    """The tables that existed before the statement and whose columns it may have changed.

    `database` is the session's default.
    """
    text = statement.replace(_TEMPORARY_BY_SERVER, "DROP TEMPORARY")
    doubt = _UNCERTAIN.search(text)
    tokens = _tokens(text[: doubt.start()] if doubt else text)
    if _HARMLESS_START.match(" ".join(token.shown for token in tokens[:4])):
        return frozenset()
    if doubt:
        return _words_in_doubt(text)
    words = _words(tokens)
    if _HARMLESS.fullmatch(words):
        return frozenset()
    if _DATABASE_DROPPED.match(words):
        return frozenset((token.name.casefold(), None) for token in tokens if token.name)
    altered = _ALTER_TABLE.match(words)
    if altered and not _SECOND_TABLE.search(words):
        # The first of these words is the table's name, or its database's.
        named = len(altered[1].split())
        return _names(tokens[named : named + (3 if altered[2] else 1)], database)
    return _names(tokens, database)


def _words_in_doubt(text: str) -> frozenset[Name]:
    """Every word may name a table, or a database if the statement may be about one."""
    words = {word.casefold() for word in _WORD.findall(re.sub(_EXECUTABLE, " ", text))}
    names: set[Name] = {(None, word) for word in words}
    if not words.isdisjoint(("database", "schema")):
        names |= {(word, None) for word in words}
    return frozenset(names | {_NO_WORD})


def names_of(database: str, table: str) -> tuple[Name, ...]:
    """All elements of a result of `changed_tables` that include this table."""
    owner, name = database.casefold(), table.casefold()
    names: tuple[Name, ...] = (owner, name), (owner, None), (None, name), ANY_TABLE
    return names if _WORD.fullmatch(owner) and _WORD.fullmatch(name) else (*names, _NO_WORD)


def _tokens(text: str) -> list[_Token]:
    """All tokens except comments and spaces."""
    tokens = []
    for match in _TOKEN.finditer(text):
        kind, value = match.lastgroup, match[match.lastgroup or 0]
        if kind == "word":
            tokens.append(_Token(value, value.upper()))
        elif kind == "quoted" or kind == "ansi":
            quote = "`" if kind == "quoted" else '"'
            tokens.append(_Token(value.replace(quote * 2, quote), quote))
        elif kind is not None:
            tokens.append(_Token(None, "'" if kind == "string" else value))
    return tokens


def _words(tokens: Sequence[_Token]) -> str:
    """The statement for the patterns above: one space between tokens, and `()` for each parenthesis."""
    shown = []
    depth = 0
    for token in tokens:
        if token.shown == ")":
            depth -= 1
        if depth == 0 and token.shown != "(":
            shown.append("()" if token.shown == ")" else token.shown)
        if token.shown == "(":
            depth += 1
    # A server does not run statements with unbalanced parentheses.
    return " ".join(shown) if depth == 0 else ""


def _names(tokens: Sequence[_Token], database: str) -> frozenset[Name]:
    """Every name with the database before it, or with the default database."""
    found: set[Name] = set()
    for index, token in enumerate(tokens):
        if token.name is None:
            continue
        before = tokens[index - 2] if index >= 2 and tokens[index - 1].shown == "." else None
        qualified = before is not None and before.name is not None and before.shown not in _BEFORE_A_NAME
        owner = before.name if qualified and before is not None and before.name else database
        found.add((owner.casefold(), token.name.casefold()))
    return frozenset(found)
