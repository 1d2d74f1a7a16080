"""The character set of a column's text: from the catalog's name, or from the collation's id."""

from __future__ import annotations

from engine.binlog.collations import WIDTH, canonical, charset_of_collation, collation_name
from engine.binlog.column import Column

_NEWEST = "utf8mb4"
"""The character set of unknown collation ids, since new collations are added to it."""


def collation_charset(collation: int) -> str:
    """The name of the character set that a collation id belongs to; utf8mb4 for an unknown id."""
    name = collation_name(collation, "mariadb")
    return (name and charset_of_collation(name)) or _NEWEST


def same_charset(charset: str, collation: int) -> bool:
    """Whether the collation with that id is one of the character set."""
    return collation_charset(collation) == canonical(charset)


def widest_character(charset: str) -> int:
    """The largest number of bytes of a character; 1 for an unknown character set."""
    return WIDTH.get(canonical(charset), 1)


def charset_of(column: Column) -> str | None:
    """The canonical name of the column's character set; None if unknown."""
    if column.charset is not None:
        return canonical(column.charset)
    return None if column.collation is None else collation_charset(column.collation)
