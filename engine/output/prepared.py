"""The XA transactions that are prepared at a commit: whether they are rolled back is not known yet.

Each commit lists all of them, so that a run which continues after it knows which rows an XA ROLLBACK undoes.
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
