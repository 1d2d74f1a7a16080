"""How a display, a log and a monitor learn what a command does.

The supervisor calls an `Observer` for each run, process and report, the command for everything else that a
person may want to know. The methods are called in the thread of the run, except `happened`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from engine.dataclass import dataclass
from engine.pipeline.outcome import Outcome
from engine.pipeline.plan import RunPlan
from engine.pipeline.reports import Report

Level = Literal["debug", "info", "warning", "error"]


@dataclass(frozen=True, slots=True)
class Happening:
    """Something that happened, for a line of a log."""

    level: Level
    name: str
    """The kind of happening, such as `retry`; always the same word for the same kind."""
    message: str
    """One sentence for a person; contains no secret."""
    values: Mapping[str, object] = field(default_factory=dict)
    """What the sentence is about, for programs: plain values by name."""


class Observer:
    """Does nothing; subclasses override what they want to know."""

    def run_started(self, plan: RunPlan) -> None:
        """The processes of a run are about to be started."""

    def process_started(self, name: str, pid: int) -> None:
        """A process of the run was started."""

    def reported(self, report: Report) -> None:
        """A process sent a report."""

    def run_ended(self, outcome: Outcome) -> None:
        """All processes of the run have ended."""

    def happened(self, happening: Happening) -> None:
        """Something happened; may be called from any thread."""

    def warn(self, name: str, message: str, **values: object) -> None:
        """Something happened that ends nothing, but may need attention."""
        self.happened(Happening("warning", name, message, values))

    def inform(self, name: str, message: str, **values: object) -> None:
        """Something happened as it should."""
        self.happened(Happening("info", name, message, values))


class Observers(Observer):
    """Passes everything on to several observers."""

    def __init__(self, *observers: Observer) -> None:
        self._observers = observers

    def run_started(self, plan: RunPlan) -> None:
        for observer in self._observers:
            observer.run_started(plan)

    def process_started(self, name: str, pid: int) -> None:
        for observer in self._observers:
            observer.process_started(name, pid)

    def reported(self, report: Report) -> None:
        for observer in self._observers:
            observer.reported(report)

    def run_ended(self, outcome: Outcome) -> None:
        for observer in self._observers:
            observer.run_ended(outcome)

    def happened(self, happening: Happening) -> None:
        for observer in self._observers:
            observer.happened(happening)
