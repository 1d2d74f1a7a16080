"""The progress of a run on standard error: a bar on a terminal, elsewhere a line every few seconds.

Warnings and lines are plain text, or lines of the log if one is wanted.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TextIO

from engine.commands.run_log import RunLog
from engine.dataclass import dataclass
from engine.errors import printable
from engine.pipeline.observer import Happening, Observer
from engine.pipeline.reports import NetworkProgress, Report, SinkProgress, SnapshotProgress, Totals

if TYPE_CHECKING:
    from tqdm import tqdm

_PLAIN_SECONDS = 10.0
_LOGGED_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class SnapshotPace:
    """How far snapshots are, and how fast."""

    since: float
    """When the first progress came; a monotonic clock in seconds."""
    rows_then: int
    progress: SnapshotProgress

    def line(self, now: float) -> str:
        """Tables, rows, rate and the time left, as far as the server's estimates go."""
        snapshot = self.progress
        expected = max(snapshot.rows, snapshot.expected_rows)
        ended = snapshot.done + snapshot.failed
        line = f"snapshot {ended} of {snapshot.tables} tables, {snapshot.rows:,} of about {expected:,} rows"
        if snapshot.waits_because is not None:
            return f"{line}, waiting because {snapshot.waits_because}"
        rate = (snapshot.rows - self.rows_then) / max(now - self.since, 1e-3)
        if rate < 1:
            return line
        return f"{line}, {rate:,.0f} rows/s, {(expected - snapshot.rows) / rate:,.0f} s left"


class Display(Observer):
    """Shows progress reports and warnings on a stream (standard error), or the latter in a log."""

    def __init__(self, stream: TextIO = sys.stderr, log: RunLog | None = None) -> None:
        self._stream = stream
        self._log = log
        self._bar: tqdm[Any] | None = None
        self._network: NetworkProgress | None = None
        self._totals = Totals()
        self._snapshot: SnapshotPace | None = None
        self._line_due = time.monotonic() + self._line_seconds

    def happened(self, happening: Happening) -> None:
        if self._log is not None:
            self._log.write(happening)
        elif happening.level == "warning":
            print(f"binlog-engine: warning: {printable(happening.message)}", file=self._stream)

    def reported(self, report: Report) -> None:
        match report.body:
            case NetworkProgress() as network:
                self._network = network
            case SnapshotProgress() as snapshot:
                now = time.monotonic()
                self._snapshot = self._snapshot or SnapshotPace(now, snapshot.rows, snapshot)
                self._snapshot = replace(self._snapshot, progress=snapshot)
            case SinkProgress(totals=totals):
                self._totals = totals
            case _:
                return
        if self._stream.isatty():
            self._show_bar()
        elif time.monotonic() >= self._line_due:
            self._line_due = time.monotonic() + self._line_seconds
            self._write_line()

    def close(self) -> None:
        """Close the bar."""
        if self._bar is not None:
            self._bar.close()

    @property
    def _line_seconds(self) -> float:
        return _PLAIN_SECONDS if self._log is None else _LOGGED_SECONDS

    def _write_line(self) -> None:
        if self._log is None:
            print(self._line(), file=self._stream, flush=True)
        else:
            totals = {"rows": self._totals.rows, "commits": self._totals.commits}
            self._log.write(Happening("info", "progress", self._line(), totals))

    def _show_bar(self) -> None:
        if self._bar is None:
            # Imported late, since a command without a terminal starts faster.
            from tqdm import tqdm

            self._bar = tqdm(file=self._stream, unit="B", unit_scale=True, dynamic_ncols=True)
        self._bar.total = None if self._network is None else self._network.total
        self._bar.n = 0 if self._network is None else self._network.received
        self._bar.set_description_str(self._line(), refresh=True)

    def _line(self) -> str:
        line = f"{self._totals.rows:,} rows, {self._totals.commits:,} commits"
        # A start by GTID has no file until the server names it.
        if self._network is not None and self._network.file:
            line += f", at {self._network.file}:{self._network.position}"
        if self._snapshot is not None and not self._snapshot.progress.finished:
            line += f", {self._snapshot.line(time.monotonic())}"
        return printable(line)
