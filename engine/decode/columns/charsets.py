"""Which character set a column's text is in: from the catalog's name, or from the collation's id."""

from __future__ import annotations

from engine.decode.columns.base import Column

BINARY = "binary"
"""The character set of bytes that are no text."""

_COLLATIONS = {8: "latin1", 63: BINARY}


def charset_of(column: Column) -> str | None:
    """The name of the column's character set in lower case; null where nobody told it."""
    if column.charset is not None:
        return column.charset.lower()
    if column.collation is None:
        return None
    return _COLLATIONS.get(column.collation, "utf8mb4")
