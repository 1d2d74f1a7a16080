"""The schema changes for the next batch.

A table that statements change again and again is named once in a batch, however many statements there were:
what they mean holds for the batch as a whole. Where a batch ends before a transaction that is open, its
statements count for the batch that contains them, too.
"""

from __future__ import annotations

from engine.binlog.position import BinlogPosition
from engine.schema.changes import SchemaChange, TableName


class PendingChanges:
    """Those since the last batch."""

    def __init__(self) -> None:
        self._changes: list[SchemaChange] = []
        self._manipulated: dict[TableName, SchemaChange] = {}
        """Table → the last statement that changed its rows."""

    def note(self, change: SchemaChange) -> None:
        """Add a change."""
        if change.source == "data manipulation":
            is_known = all(name in self._manipulated for name in change.rewritten)
            self._manipulated |= dict.fromkeys(change.rewritten, change)
            if is_known:
                return
        elif change.source == "statement":
            # Marks end, or move to other names. It has ended the transaction of the statements before it.
            self._manipulated.clear()
        self._changes.append(change)

    def take(self, reached: BinlogPosition) -> tuple[SchemaChange, ...]:
        """Those for a batch that ends at that position, in order."""
        taken, self._changes = tuple(self._changes), []
        last, self._manipulated = self._manipulated.values(), {}
        for change in dict.fromkeys(change for change in last if reached <= change.position):
            self.note(change)
        return taken
