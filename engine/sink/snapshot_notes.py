"""What the next commit says of snapshots, collected like its rows."""

from __future__ import annotations

from engine.output.snapshot_progress import SnapshotChange, SnapshotRequest, TableSnapshot
from engine.schema.changes import TableName


class SnapshotNotes:
    """New requests, tables with their latest state, and requests that ended."""

    def __init__(self) -> None:
        self._requests: list[SnapshotRequest] = []
        self._tables: dict[TableName, TableSnapshot] = {}
        self._ended: list[str] = []

    def __bool__(self) -> bool:
        """Whether there is anything to commit."""
        return bool(self._requests or self._tables or self._ended)

    def add(self, change: SnapshotChange) -> None:
        """Add a change, which replaces earlier states of its tables."""
        self._requests += change.requests
        self._tables.update((table.name, table) for table in change.tables)
        self._ended += change.ended

    def seal(self) -> SnapshotChange:
        """What to commit, which is not kept here any longer."""
        sealed = SnapshotChange(tuple(self._requests), tuple(self._tables.values()), tuple(self._ended))
        self._requests.clear()
        self._tables.clear()
        self._ended.clear()
        return sealed
