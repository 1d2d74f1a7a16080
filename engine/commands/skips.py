"""Damaged bytes in a binlog, from the command's side: read once more, or skipped (`--on-corrupt skip`).

Damage ends a run, with everything before it committed, and the next run starts from there as always. What a
server sent may have been damaged on the way, so it is read once more. Damage that stays ends the command,
unless it is to be skipped: then the next run is given the events to skip, its network process drops each with
its transaction, and the events feed records that.
"""

from __future__ import annotations

from engine.commands.progress import Display
from engine.pipeline.messages import Corruption
from engine.pipeline.supervisor import Outcome

_Place = tuple[str, int]
"""Binlog file, and position in it."""


class Rereads:
    """The places at which a server's binlog came damaged: each is worth one more try."""

    def __init__(self) -> None:
        self._places: set[_Place] = set()

    def take(self, outcome: Outcome) -> bool:
        """Whether a run that ended so met damage at a place where there was none before."""
        if outcome.corruption is None or _place(outcome.corruption) in self._places:
            return False
        self._places.add(_place(outcome.corruption))
        return True


class Skips:
    """The corrupt events that this command has met; `wanted`: whether it is to go past them."""

    def __init__(self, wanted: bool, display: Display) -> None:
        self._wanted = wanted
        self._display = display
        self.places: tuple[Corruption, ...] = ()

    def take(self, outcome: Outcome) -> bool:
        """Whether a run that ended so is to be started again, to go past what it met.

        A place that comes a second time was not skipped, and would not be the third time either.
        """
        met = outcome.corruption
        if not self._wanted or met is None or not met.skippable or outcome.stopped:
            return False
        if _place(met) in map(_place, self.places):
            return False
        self._display.warn(f"{outcome.error}; skipping it")
        self.places += (met,)
        return True


def _place(corruption: Corruption) -> _Place:
    return corruption.file, corruption.position
