"""Corrupt events in a binlog, from the command's side: read a second time, or skipped (`--on-corrupt skip`).

A corrupt event ends a run; everything before it is committed, and the next run continues from there. What a
server sent may have been damaged on the way, so it is read a second time. If the event is still corrupt, the
command ends with an error, or the next run is given the events to skip: its network process drops each with
its whole transaction, and the events feed records that.
"""

from __future__ import annotations

from engine.pipeline.messages import Corruption
from engine.pipeline.observer import Observer
from engine.pipeline.outcome import Outcome

_BinlogPosition = tuple[str, int]
"""Binlog file, and position in it."""


class CorruptEventRereads:
    """The positions at which a server's binlog was corrupt: each is read a second time."""

    def __init__(self) -> None:
        self._positions: set[_BinlogPosition] = set()

    def take(self, outcome: Outcome) -> bool:
        """Whether a run with this outcome found a corrupt event at a new position."""
        if outcome.corruption is None or _position(outcome.corruption) in self._positions:
            return False
        self._positions.add(_position(outcome.corruption))
        return True


class CorruptEventSkips:
    """The corrupt events that this command skips; none unless `wanted`."""

    def __init__(self, wanted: bool, observer: Observer) -> None:
        self._wanted = wanted
        self._observer = observer
        self.events: tuple[Corruption, ...] = ()

    def take(self, outcome: Outcome) -> bool:
        """Whether a run with this outcome is to be started again, to skip the corrupt event that ended it.

        An event that ends a second run could not be skipped, and is not tried a third time.
        """
        met = outcome.corruption
        if not self._wanted or met is None or not met.skippable or outcome.stopped:
            return False
        if _position(met) in map(_position, self.events):
            return False
        self._observer.warn(
            "corrupt_event", f"{outcome.error}; skipping it", file=met.file, position=met.position
        )
        self.events += (met,)
        return True


def _position(corruption: Corruption) -> _BinlogPosition:
    return corruption.file, corruption.position
