"""What a statement declares of columns, keys and tables, as plain values: as written, before any default.

CREATE TABLE and the clauses of ALTER TABLE declare in the same way.
"""

from __future__ import annotations

from typing import Literal

from engine.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Default:
    """The value after DEFAULT."""

    kind: Literal["null", "string", "number", "bits", "computed"]
    text: str = ""
    """Content of a string, or a number or literal as written; empty for the other kinds."""
    introduced: bool = False
    """A string with a character set before it, as in `_latin1'x'`."""


@dataclass(frozen=True, slots=True)
class TypeClause:
    """A column's type as written, with synonyms replaced by the type's own name."""

    name: str
    """In lower case: `int`, `varchar`, `geometrycollection`."""
    lengths: tuple[int, ...] = ()
    """The numbers in parentheses."""
    members: tuple[str, ...] = ()
    """Of ENUM and SET."""
    members_as_bytes: bool = False
    """Some members are hexadecimal literals, whose bytes are in the column's character set."""
    unsigned: bool = False
    zerofill: bool = False
    charset: str | None = None
    """Canonical name (`engine.binlog.collations`), or its `DEFAULT`, as wherever a statement names one."""
    short_charset: bool = False
    """The character set is written as ASCII or UNICODE."""
    collation: str | None = None
    binary: bool = False
    """The attribute BINARY: the binary collation of the column's character set."""
    compressed: bool = False
    number: bool = False
    """Written as NUMBER, which without lengths is DOUBLE in MariaDB's Oracle mode."""


@dataclass(frozen=True, slots=True)
class ColumnClause:
    """A column as CREATE TABLE and ALTER TABLE declare it."""

    name: str
    type: TypeClause
    nullable: bool | None = None
    """None if neither NULL nor NOT NULL is written."""
    default: Default | None = None
    on_update: bool = False
    auto_increment: bool = False
    primary: bool = False
    unique: bool = False
    visible: bool = True
    generated: Literal["virtual", "stored"] | None = None
    row_version: Literal["start", "end"] | None = None
    """GENERATED ALWAYS AS ROW START or ROW END."""
    versioned: bool = False
    """WITH SYSTEM VERSIONING."""


@dataclass(frozen=True, slots=True)
class KeyPart:
    """A column of a key; `length`: of its prefix, in characters for text; None for the whole column."""

    column: str
    length: int | None = None


@dataclass(frozen=True, slots=True)
class Key:
    """A primary or unique key. Others do not change any definition."""

    primary: bool
    parts: tuple[KeyPart, ...]
    hashed: bool = False
    """USING HASH."""
    if_not_exists: bool = False
    name: str | None = None
    without_overlaps: bool = False
    """The key ends with the table's application-time period."""


@dataclass(frozen=True, slots=True)
class Period:
    """PERIOD FOR: the columns of its start and end."""

    of_system: bool
    """PERIOD FOR SYSTEM_TIME."""
    start: str
    end: str
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class TableOptions:
    """The options of a table that its definition depends on."""

    charset: str | None = None
    collation: str | None = None
    engine: str | None = None
    """In lower case."""
