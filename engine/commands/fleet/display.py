"""The progress of a fleet on standard error: a table of its sources on a terminal, elsewhere a line of sums.

Warnings are plain text, or lines of the log if one is wanted; they appear above the table.
"""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from typing import TextIO

from engine.commands.fleet.source_state import SourceState
from engine.commands.run_log import RunLog
from engine.commands.text_table import text_table
from engine.config.amounts import shown_seconds
from engine.errors import printable
from engine.pipeline.observer import Happening, Observer

_TABLE_SECONDS = 1.0
_PLAIN_SECONDS = 10.0
_LOGGED_SECONDS = 60.0
_HEAD = ("source", "state", "lag", "rows", "commits", "last error")
_NUMBERS = ("lag", "rows", "commits")
_CLEAR_BELOW = "\x1b[J"


class FleetDisplay(Observer):
    """Shows the states of sources, and what happens to them."""

    def __init__(self, stream: TextIO | None = None, log: RunLog | None = None) -> None:
        self._stream = stream or (sys.stderr if log is None else log.stream)
        self._log = log
        self._lock = threading.Lock()
        self._table: list[str] = []
        self._shows_table = self._stream.isatty()
        self._seconds = _PLAIN_SECONDS if log is None else _LOGGED_SECONDS
        if self._shows_table:
            self._seconds = _TABLE_SECONDS
        self._due = time.monotonic()

    def happened(self, happening: Happening) -> None:
        with self._lock:
            self._erase()
            if self._log is not None:
                self._log.write(happening)
            elif happening.level in ("warning", "error"):
                print(f"binlog-engine: {happening.level}: {printable(happening.message)}", file=self._stream)
            self._draw()

    def show(self, states: Sequence[SourceState]) -> None:
        """Show how the sources are, if it is time to."""
        if time.monotonic() < self._due:
            return
        self._due = time.monotonic() + self._seconds
        if self._shows_table:
            with self._lock:
                self._erase()
                self._table = _fitting(state_lines(states, time.time()))
                self._draw()
        elif self._log is None:
            print(_summary(states), file=self._stream, flush=True)
        else:
            totals = {"rows": sum(state.rows for state in states), **_stages(states)}
            self._log.write(Happening("info", "progress", _summary(states), totals))

    def _erase(self) -> None:
        if self._table:
            self._stream.write(f"\x1b[{len(self._table)}A{_CLEAR_BELOW}")

    def _draw(self) -> None:
        self._stream.writelines(f"{line}\n" for line in self._table)
        self._stream.flush()


def state_lines(states: Sequence[SourceState], now: float) -> list[str]:
    """A table with a line per source."""
    rows = [
        (
            state.name,
            state.stage,
            shown_lag(state.lag(now)),
            f"{state.rows:,}",
            f"{state.commits:,}",
            state.error or "",
        )
        for state in states
    ]
    return text_table(_HEAD, rows, _NUMBERS)


def shown_lag(seconds: float | None) -> str:
    """Such as `0 s` or `2.5 hours`; empty if it is not known."""
    return "" if seconds is None else f"{seconds:.0f} s" if seconds < 60 else shown_seconds(seconds)


def _fitting(lines: Sequence[str]) -> list[str]:
    """As much as the terminal has room for: a line that is wrapped could not be erased."""
    size = shutil.get_terminal_size()
    return [printable(line)[: size.columns - 1] for line in lines[: max(1, size.lines - 1)]]


def _stages(states: Sequence[SourceState]) -> dict[str, int]:
    return dict(sorted(Counter(state.stage for state in states).items()))


def _summary(states: Sequence[SourceState]) -> str:
    stages = ", ".join(f"{count} {stage}" for stage, count in _stages(states).items())
    rows, commits = sum(state.rows for state in states), sum(state.commits for state in states)
    return f"{len(states)} sources ({stages}): {rows:,} rows, {commits:,} commits"
