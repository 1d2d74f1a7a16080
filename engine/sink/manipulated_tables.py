"""When the tables that data manipulation statements change without row events are to be read again.

At once, and then not too often: such statements may come all the time, and their table would be read all the
time. After each request for a table, the next one waits, twice as long as the one before it. No IO.
"""

from __future__ import annotations

from collections.abc import Iterable

from engine.dataclass import dataclass
from engine.schema.changes import TableName

FIRST_WAIT, LONGEST_WAIT = 60.0, 86_400.0
"""Seconds."""


@dataclass(slots=True)
class _Request:
    """The last request for a table."""

    time: float
    wait: float
    """Seconds until another one may follow."""
    has_changed: bool = False
    """The table was changed since, so that another request is to follow."""


class ManipulatedTables:
    """Those of one run. Times are those of a monotonic clock, in seconds."""

    def __init__(self) -> None:
        self._requests: dict[TableName, _Request] = {}

    def changed(self, names: Iterable[TableName], now: float) -> None:
        """Statements have changed these tables."""
        for name in names:
            known = self._requests.get(name)
            if known is None:
                self._requests[name] = _Request(now, 0.0, has_changed=True)
            else:
                known.has_changed = True

    def due(self, now: float) -> tuple[TableName, ...]:
        """The tables that are to be requested now; the caller does so."""
        due: list[TableName] = []
        for name, each in [*self._requests.items()]:
            if each.has_changed and each.time + each.wait <= now:
                due.append(name)
                self._requests[name] = _Request(now, min(2 * each.wait or FIRST_WAIT, LONGEST_WAIT))
            elif not each.has_changed and each.time + LONGEST_WAIT <= now:
                del self._requests[name]
        return tuple(due)
