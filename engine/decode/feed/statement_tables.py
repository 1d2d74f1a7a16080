"""What the events feed says of a statement that changed table definitions or emptied tables.

The network process has followed the statement and sends its effect with the batch; here it becomes a part of
the entry's JSON.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from engine.schema.changes import LONGEST_STATEMENT, SchemaChange


class StatementChanges:
    """The changes that are statements of a batch, to be found by their events; without data manipulation."""

    def __init__(self, changes: Iterable[SchemaChange]) -> None:
        self._changes = {
            (change.position.position, change.statement): change
            for change in changes
            if change.source == "statement"
        }

    def find(self, position: int, statement: str | None) -> SchemaChange | None:
        """The change of the event at this position with this statement; None if there is none.

        The position is not enough: all events of a compressed transaction have the same.
        """
        if not self._changes or statement is None:
            return None
        return self._changes.get((position, statement[:LONGEST_STATEMENT]))


def concerned_tables(change: SchemaChange) -> list[dict[str, Any]]:
    """The tables that a statement concerns, as the entry's `tables`.

    Those with a new definition, or none any more, have its number; the others were only emptied or changed.
    """
    versions = {table.name: {"version": table.version} for table in change.tables}
    names = dict.fromkeys((*versions, *change.emptied, *change.rewritten))
    return [{"database": name.database, "table": name.table, **versions.get(name, {})} for name in names]
