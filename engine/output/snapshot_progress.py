"""How far snapshots are, in the commit log: the requests, and for each of their tables the ranges of its key.

A commit contains what changed with it, so that rows of a snapshot and the fact that they are there become
durable together; a summary contains what is in force. A range ends at a key, given as SQL literals that the
engine puts into the next query, since only the server can compare keys.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

from engine.dataclass import dataclass
from engine.schema.changes import TableName

Key = tuple[str, ...]
"""A key as SQL literals, one for each of its columns."""


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The keys after `after` up to and including `until`; None for no limit."""

    after: Key | None = None
    until: Key | None = None
    only: tuple[Key, ...] = ()
    """If there are any: these keys and no others."""


EVERYTHING = KeyRange()


@dataclass(frozen=True, slots=True)
class SnapshotRequest:
    """Tables that a user wants to have read."""

    id: str
    """Unique in an output."""
    time_us: int
    """When it was made, µs since the epoch."""
    tables: tuple[str, ...]
    """Patterns, as in `engine.config.table_filter`."""
    excluded: tuple[str, ...] = ()
    """Patterns of tables that are not to be read."""
    where: str | None = None
    """An SQL condition that limits the rows; None for all rows."""


TableState = Literal["waiting", "running", "done", "failed", "cancelled"]
_ENDED = frozenset({"done", "failed", "cancelled"})


@dataclass(frozen=True, slots=True)
class TableSnapshot:
    """How far the snapshot of one table is."""

    database: str
    table: str
    request: str
    """The id of the request that it belongs to."""
    state: TableState
    rows: int = 0
    """Read and committed so far."""
    expected_rows: int | None = None
    """The server's estimate; None if it has none."""
    left: tuple[KeyRange, ...] = (EVERYTHING,)
    """The ranges that are still to be read, in the order of the key."""
    key: tuple[str, ...] = ()
    """The columns of the ranges' keys; empty for a table without a key, which is read as a whole."""
    key_order: tuple[str, ...] = ()
    """What their order depends on (`TableSource.key_order`): ranges mean nothing in another one."""
    moved: tuple[Key, ...] = ()
    """Keys of rows that are still to be read, after `left`: a partial row image gave them these keys."""
    reason: str | None = None
    """Why it failed, in one sentence; None otherwise."""

    @property
    def name(self) -> TableName:
        """The table."""
        return TableName(self.database, self.table)

    @property
    def ended(self) -> bool:
        """Whether nothing more will be read."""
        return self.state in _ENDED

    def divided(self, part: KeyRange) -> TableSnapshot:
        """With `part` as a range of its own; it must begin where a range in `left` begins."""
        left: list[KeyRange] = []
        for each in self.left:
            if each.after == part.after and each != part:
                left += [part, KeyRange(part.until, each.until)]
            else:
                left.append(each)
        return replace(self, left=tuple(left))

    def without(self, read: KeyRange) -> TableSnapshot:
        """After one of the ranges in `left` was read."""
        left = tuple(each for each in self.left if each != read)
        return replace(self, left=left).with_moved(self.moved)

    def with_moved(self, keys: Iterable[Key]) -> TableSnapshot:
        """With these rows as the moved ones."""
        moved = tuple(keys)
        state: TableState = "running" if self.left or moved else "done"
        return replace(self, moved=moved, state=self.state if self.ended else state)


@dataclass(frozen=True, slots=True)
class SnapshotChange:
    """What a commit changes in the state of snapshots."""

    requests: tuple[SnapshotRequest, ...] = ()
    """New ones."""
    tables: tuple[TableSnapshot, ...] = ()
    """In place of the same tables' earlier ones."""
    ended: tuple[str, ...] = ()
    """Ids of requests of which every table has ended."""


NO_CHANGE = SnapshotChange()


@dataclass(frozen=True, slots=True)
class SnapshotState:
    """The state of all snapshots: the requests that have not ended, and the latest snapshot of each table."""

    requests: tuple[SnapshotRequest, ...] = ()
    """In the order in which they were made."""
    tables: tuple[TableSnapshot, ...] = ()

    def after(self, change: SnapshotChange) -> SnapshotState:
        """The state after a change."""
        if change == NO_CHANGE:
            return self
        requests = [each for each in (*self.requests, *change.requests) if each.id not in change.ended]
        tables = {table.name: table for table in (*self.tables, *change.tables)}
        return SnapshotState(tuple(requests), tuple(tables.values()))

    def of_request(self, request: SnapshotRequest) -> tuple[TableSnapshot, ...]:
        """The tables of a request, as far as they are known."""
        return tuple(table for table in self.tables if table.request == request.id)


NO_SNAPSHOTS = SnapshotState()
