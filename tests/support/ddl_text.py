"""How random DDL is spelled: names, quotes, letter case, comments, and executable comments.

A statement is a list of words. A plain word is in MySQL's grammar, so its letter case and the space around it
are free; `Verbatim` marks names, literals and expressions, whose text is exactly what is meant.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from engine.schema.changes import TableName

Words = list[str]
T = TypeVar("T")


@dataclass(frozen=True)
class Dialect:
    """Which server the statements are for."""

    mariadb: bool
    version: tuple[int, ...]

    @classmethod
    def of(cls, flavor: str, version: str) -> Dialect:
        """For a server of `tests.servers`."""
        return cls("mariadb" in flavor, tuple(int(number) for number in re.findall(r"\d+", version)[:3]))

    def mysql_since(self, *version: int) -> bool:
        """Whether it is MySQL of at least this version."""
        return not self.mariadb and self.version >= version

    def mariadb_since(self, *version: int) -> bool:
        """Whether it is MariaDB of at least this version."""
        return self.mariadb and self.version >= version


_BARE = re.compile(r"[0-9a-zA-Z$_\u0080-\uffff]+\Z")
_NUMBER_LIKE = re.compile(r"[0-9]+(e[0-9]*)?\Z|0[xb]", re.IGNORECASE)
_RESERVED_WORDS = """
    add and as asc by case change check column condition constraint create cross current_user
    database default delete desc drop else exists for foreign from fulltext function generated
    grant group having if in index insert int interval into is join key keys left like limit lock
    match not null on or order outer partition primary range references rename require return right
    row rows select set spatial stored system t table to trigger union unique update use using
    values varchar virtual when where with
"""
_RESERVED = frozenset(_RESERVED_WORDS.split())
_COMMENTS = (
    *("/* c */", "/**/", "/* it's */", '/* " */', "/* ` */", "/* -- */", "/* ; */", "/* ADD z INT, */"),
    *("/*\n * lines\n */", "-- c\n", "-- it's\n", "--\tc\n", "--\n", "# c\n", "#`\n", "/***/", "/* ( */"),
)
_SPACES = (" ", " ", " ", " ", " ", "  ", "\n", "\t", "\r\n", " \n ")
_VERSIONS = (
    *("", "", "40101", "50100", "50503", "50600", "50624", "50625", "50699", "50700", "50799", "50708"),
    *("80000", "80013", "80100", "90000", "90700", "90701", "99999", "99997"),
)
_LONG_VERSIONS = ("090000", "100000", "100203", "101100", "110800", "120000", "130000")
"""Versions of six digits, which old servers read as five."""
_STRANGE = (
    *("order", "select", "key", "primary", "Name", "my col", "we`ird", 'qu"ote', "it's", "dot.ted", "ünï"),
    *("名前", "1st", "$x", "a$b", "12", "1e5", "0x1g", "first", "after", "column", "check", "index", "to"),
    *("constraint", "period", "system", "visible", "comment", "default", "unique", "partition", "value"),
    *("type", "date", "time", "timestamp", "enum", "status", "end", "add", "if", "exists", "-- x", "/*x*/"),
    *("#x", "a,b", "(x)", "x)", ";", "a\\'b", "back\\", "%s", "É", "ÿ", "Straße", "İ", "ı", "ж", "_", "__a"),
    *("invisible", "generated", "always", "row", "start", "versioning", "serial", "cascade", "fulltext"),
    *("spatial", "sequence", "temporary", "like", "ignore", "online", "character", "collate", "n" * 64),
    *("row_end", "nowait", "wait", "charset", "convert", "algorithm", "engine", "virtual", "stored"),
)


class Verbatim(str):
    """Text that is written exactly as it is."""

    __slots__ = ()


@dataclass(frozen=True)
class Session:
    """What the spelling of the next statements depends on."""

    database: str
    ansi_quotes: bool = False
    no_backslash_escapes: bool = False
    encoding: str = "utf8"


class Spelling:
    """Writes names, literals and whole statements in the manner of a session, at random."""

    def __init__(self, rng: Random, dialect: Dialect) -> None:
        self.rng = rng
        self.mariadb = dialect.mariadb
        long = dialect.mariadb or dialect.mysql_since(8)
        self.versions = _VERSIONS + _LONG_VERSIONS if long else _VERSIONS
        self.session = Session("")

    def new_name(self) -> str:
        """A name for a column or a table: simple or strange."""
        rng = self.rng
        if rng.random() < 0.55:
            return rng.choice("abcdefghijk") + (str(rng.randrange(10)) if rng.random() < 0.6 else "")
        name = rng.choice(_STRANGE)
        return name + str(rng.randrange(100)) if len(name) < 60 and rng.random() < 0.5 else name

    def name(self, name: str) -> Verbatim:
        """A name, in quotes where it needs them or by chance."""
        if _may_stand_bare(name) and self.rng.random() < 0.7:
            return Verbatim(name)
        if self.session.ansi_quotes and self.rng.random() < 0.6:
            return Verbatim('"' + name.replace('"', '""') + '"')
        return Verbatim("`" + name.replace("`", "``") + "`")

    def name_in_any_case(self, name: str) -> Verbatim:
        """The name of a column or an index: servers compare them without regard to letter case."""
        if self.rng.random() < 0.15 and name.isascii():
            name = self.rng.choice((name.upper(), name.lower(), name.capitalize()))
        return self.name(name)

    def text(self, text: str) -> Verbatim:
        """A string literal."""
        rng, session = self.rng, self.session
        quote = '"' if not session.ansi_quotes and rng.random() < 0.2 else "'"
        if session.no_backslash_escapes:
            return Verbatim(quote + text.replace(quote, quote * 2) + quote)
        escaped = text.replace("\\", "\\\\")
        if rng.random() < 0.3:
            return Verbatim(quote + escaped.replace(quote, "\\" + quote).replace("\n", "\\n") + quote)
        return Verbatim(quote + escaped.replace(quote, quote * 2) + quote)

    def optional_clauses(self, clauses: Sequence[Words], separator: str = ",") -> Words:
        """The clauses as a list, in which one may be in an executable comment.

        The first is never in one, so that the statement is complete also where the server reads a comment.
        """
        words: Words = []
        for place, clause in enumerate(clauses):
            if place and separator:
                clause = [separator, *clause]
            words += self.in_comment(clause) if place and self.rng.random() < 0.08 else clause
        return words

    def in_comment(self, words: Words) -> Words:
        """The words in an executable comment, unless they contain a comment."""
        if any("/*" in word or "*/" in word for word in words):
            return words
        maker = "M" if self.mariadb and self.rng.random() < 0.3 else ""
        return [Verbatim(f"/*{maker}!{self.rng.choice(self.versions)}"), *words, Verbatim("*/")]

    def statement(self, words: Words) -> str:
        """The text of a statement."""
        rng = self.rng
        lower, gaps, inside = rng.random() < 0.4, rng.random() < 0.25, False
        text: list[str] = []
        for word in words:
            for part in [word] if isinstance(word, Verbatim) else word.split():
                if text:
                    text.append(self._gap(inside) if gaps else " ")
                inside = part.startswith(("/*!", "/*M!")) or (inside and part != "*/")
                text.append(part.lower() if lower and not isinstance(part, Verbatim) else part)
        if rng.random() < 0.05:
            text.insert(0, rng.choice(_COMMENTS) + " ")
        if rng.random() < 0.05:
            text.append(" " + rng.choice(_COMMENTS))
        return "".join(text)

    def _gap(self, inside: bool) -> str:
        """Space; `inside` an executable comment rarely with a comment, which servers log in a broken form."""
        gap = self.rng.choice(_SPACES)
        if self.rng.random() < (0.003 if inside else 0.15):
            gap += self.rng.choice(_COMMENTS) + self.rng.choice(_SPACES)
        return gap


def _may_stand_bare(name: str) -> bool:
    return bool(_BARE.match(name)) and not _NUMBER_LIKE.match(name) and name.lower() not in _RESERVED


class Phrases:
    """What makers of words have in common: choices, and a spelling."""

    def __init__(self, rng: Random, dialect: Dialect, spelling: Spelling) -> None:
        self.rng = rng
        self.dialect = dialect
        self.spelling = spelling

    def one_of(self, *forms: T) -> T:
        """One of the forms."""
        return self.rng.choice(forms)

    def maybe(self, probability: float, words: list[T]) -> list[T]:
        """The words, or none."""
        return words if self.rng.random() < probability else []

    def if_mariadb(self, *version: int, words: Words, probability: float = 0.15) -> Words:
        """The words now and then, on MariaDB from this version on."""
        return words if self.dialect.mariadb_since(*version) and self.rng.random() < probability else []

    def name(self, name: str) -> Verbatim:
        """A name as it is spelled here."""
        return self.spelling.name(name)

    def column(self, name: str) -> Verbatim:
        """The name of a column that is there."""
        return self.spelling.name_in_any_case(name)

    def table(self, name: TableName) -> Words:
        """A table's name, with its database or without."""
        shown, session = self.name(name.table), self.spelling.session
        if name.database == session.database and self.rng.random() < 0.7:
            return [shown]
        if shown[0].isdigit():
            shown = Verbatim(f"`{name.table}`")
        return [Verbatim(self.name(name.database) + self.one_of(".", ".", ".", " . ") + shown)]
