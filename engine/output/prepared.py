"""The XA transactions that are prepared at a commit, and those that were rolled back afterwards.

Each commit lists all that are prepared, so that a run which continues after it knows what an XA ROLLBACK
undoes. The commit with the rows that undo a transaction lists where these and its own are, for readers that
want changes instead of tables.
"""

from __future__ import annotations

from engine.binlog.position import BinlogPosition
from engine.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class XaRollback:
    """The statement that has rolled back a prepared transaction."""

    position: BinlogPosition
    """Of its event."""
    gtid: str | None
    commit_timestamp: int
    """µs since the epoch."""


@dataclass(frozen=True, slots=True)
class PreparedTransaction:
    """A transaction whose rows are in the output, up to its XA PREPARE."""

    xid: str
    """As in `engine.binlog.xids`."""
    commit: int
    """The number of the commit that has its rows."""
    first_seq: int
    """All entries of the output from `first_seq` to `last_seq` are the transaction's."""
    last_seq: int
    rolled_back: XaRollback | None = None
    """Set if the rows are still to be undone."""


@dataclass(frozen=True, slots=True)
class UndoneTransaction:
    """A transaction that was rolled back after it was prepared, and whose rows are undone."""

    first_seq: int
    """All entries from `first_seq` to `last_seq` are the transaction's."""
    last_seq: int
    first_undoing_seq: int
    """All from here to `last_undoing_seq` undo them; none if that is smaller."""
    last_undoing_seq: int
