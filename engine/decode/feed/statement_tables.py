"""What the events feed says of a statement that changed table definitions or emptied tables.

The network process has followed the statement and sends its effect with the batch; here it becomes a part of
the entry's JSON.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from engine.schema.changes import SchemaChange


def statements_by_position(changes: Iterable[SchemaChange]) -> dict[int, SchemaChange]:
    """The changes that are statements of one binlog file, by the position of their event."""
    return {change.position.position: change for change in changes if change.source == "statement"}


def concerned_tables(change: SchemaChange) -> list[dict[str, Any]]:
    """The tables that a statement concerns, as the entry's `tables`.

    Those with a new definition, or none any more, have its number; the others were only emptied or changed.
    """
    versions = {table.name: {"version": table.version} for table in change.tables}
    names = dict.fromkeys((*versions, *change.emptied, *change.rewritten))
    return [{"database": name.database, "table": name.table, **versions.get(name, {})} for name in names]
