"""How a source of a fleet is: what its observer has seen so far, as an immutable record."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any, Literal

from engine.commands.status import FRESH_SECONDS
from engine.dataclass import dataclass
from engine.output.caught_up import later
from engine.pipeline.observer import Happening, Observer
from engine.pipeline.outcome import Outcome
from engine.pipeline.plan import RunPlan
from engine.pipeline.reports import DumpStarted, Ended, Report, SinkProgress, Totals

Stage = Literal["starting", "running", "waiting", "ended"]
RETRIES = ("retry", "source_failed")
"""The happenings after which a source waits for its next attempt."""


@dataclass(frozen=True, slots=True)
class SourceState:
    """A source, as of one moment."""

    name: str
    out: str
    stage: Stage = "starting"
    """`running` from the moment when the server is asked for its binlog; `waiting` for the next attempt;
    `ended` when it has drained its server (`stop_at_end`) or was asked to end."""
    error: str | None = None
    """Why it is not running; None if it is, or was not tried yet."""
    retry_us: int | None = None
    """When it is tried again, µs since the epoch, while it waits."""
    processes: Mapping[str, int] = field(default_factory=dict)
    """Process ids by role."""
    commits: int = 0
    """Of this fleet's process, as are the rows."""
    rows: int = 0
    complete_until: float = 0.0
    """Seconds since the epoch: every change until then is committed; 0 if not known."""

    def lag(self, now: float) -> float | None:
        """Seconds since the oldest change that may be missing, 0 if there is none; None if not known."""
        if not self.complete_until:
            return None
        age = max(0.0, now - self.complete_until)
        return 0.0 if self.stage == "running" and age < FRESH_SECONDS else age


class StateKeeper(Observer):
    """Keeps the state of a source; `state` may be read by any thread."""

    def __init__(self, name: str, out: str) -> None:
        self._lock = threading.Lock()
        self.state = SourceState(name, out)
        self._before = Totals()
        self._totals = Totals()

    def ended(self) -> None:
        """The source is not followed any more."""
        self._set(stage="ended", processes={})

    def run_started(self, plan: RunPlan) -> None:
        self._set(stage="starting", retry_us=None, processes={})

    def process_started(self, name: str, pid: int) -> None:
        self._set(processes={**self.state.processes, name: pid})

    def reported(self, report: Report) -> None:
        match report.body:
            case DumpStarted():
                self._set(stage="running", error=None)
            case SinkProgress() as progress:
                self._totals = progress.totals
                sums = self._before + self._totals
                until = max(float(progress.committed_timestamp), progress.caught_up_us / 1_000_000)
                self._set(
                    commits=sums.commits,
                    rows=sums.rows,
                    complete_until=later(self.state.complete_until, until),
                )
            case Ended():
                left = {name: pid for name, pid in self.state.processes.items() if name != report.process}
                self._set(processes=left)

    def run_ended(self, outcome: Outcome) -> None:
        self._before, self._totals = self._before + self._totals, Totals()
        self._set(stage="starting", error=outcome.error, processes={})

    def happened(self, happening: Happening) -> None:
        if happening.name in RETRIES:
            pause = happening.values.get("pause_seconds")
            seconds = pause if isinstance(pause, float) else 0.0
            due = int((time.time() + seconds) * 1_000_000)
            self._set(stage="waiting", error=happening.message, retry_us=due)

    def _set(self, **values: Any) -> None:
        # Warnings come from several threads.
        with self._lock:
            self.state = replace(self.state, **values)
