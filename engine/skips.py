"""Going past corrupt events (`--on-corrupt skip`), from the command's side.

A corrupt event ends a run, with everything before it committed. The next run starts from there as always, and
is told which events to skip: its network process drops each with its transaction, and the feed records that.
"""

from __future__ import annotations

from engine.messages import Corruption
from engine.progress import Display
from engine.supervisor import Outcome


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
        if not self._wanted or met is None or outcome.stopped:
            return False
        if any((place.file, place.position) == (met.file, met.position) for place in self.places):
            return False
        self._display.warn(f"{outcome.error}; skipping it")
        self.places += (met,)
        return True
