"""How a run ended: its error, if it had one, and what it did until then."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from engine.dataclass import dataclass
from engine.pipeline.messages import Corruption, Failure
from engine.pipeline.reports import Usage

_COUNTED = ("commits", "rows", "bytes", "transactions", "dropped_rows", "skipped_corrupt_events")
"""The totals that add up over the runs of a command."""


@dataclass(slots=True)
class Outcome:
    """How a run ended."""

    error: str | None = None
    retryable: bool = False
    """The cause of the error may pass: the same run, started again, may succeed."""
    unproven: bool = False
    """As in `Failure`."""
    stopped: bool = False
    """An orderly end was asked for (`EndRequest`)."""
    corruption: Corruption | None = None
    """The corrupt event that the error is about, if it is about one."""
    traceback: str | None = None
    totals: dict[str, Any] = field(default_factory=dict)
    """Of the sink's last progress: its `Totals` by name, `commit`, `position`, `last_timestamp`; or empty."""
    processes: dict[str, Usage] = field(default_factory=dict)
    """By the name of the process."""
    snapshot: dict[str, Any] = field(default_factory=dict)
    """The last `SnapshotProgress` by name; empty without a snapshot process."""
    seconds: float = 0.0
    """From the dump command (or the first byte of a file) to the last commit on disk, or to the error; 0
    if that command was not sent."""

    def fail(self, failure: Failure) -> None:
        """Take the error of a failure."""
        self.error = failure.message
        self.retryable = failure.retryable
        self.unproven = failure.unproven
        self.corruption = failure.corruption

    def add(self, before: Outcome) -> Outcome:
        """Add the totals of the command's runs `before` this one; returns itself."""
        self.seconds += before.seconds
        for name, used in before.processes.items():
            # The supervisor is the command itself, the same process in all its runs.
            if name not in self.processes:
                self.processes[name] = used
            elif name != "supervisor":
                self.processes[name] = used.add(self.processes[name])
        sums = {
            name: before.totals[name] + self.totals.get(name, 0) for name in _COUNTED if name in before.totals
        }
        self.totals = before.totals | self.totals | sums
        return self
