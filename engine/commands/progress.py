"""What a person sees while a long command works: a bar on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

from tqdm import tqdm

from engine.errors import EngineError
from engine.pipeline.messages import NetworkProgress, SinkProgress, Totals
from engine.pipeline.supervisor import Outcome

_PLAIN_SECONDS = 10.0


class Display:
    """Shows progress reports and warnings on a stream (standard error)."""

    def __init__(self, stream: TextIO = sys.stderr) -> None:
        self._stream = stream
        self._bar: tqdm[Any] | None = None
        self._network: NetworkProgress | None = None
        self._totals = Totals()
        self._plain_due = time.monotonic() + _PLAIN_SECONDS

    def warn(self, sentence: str) -> None:
        """Something that a user should know, but that stops nothing."""
        print(f"binlog-engine: warning: {sentence}", file=self._stream)

    def progress(self, progress: NetworkProgress | SinkProgress) -> None:
        """Show how far the run is after a report of progress."""
        if isinstance(progress, NetworkProgress):
            self._network = progress
        else:
            self._totals = progress.totals
        if self._stream.isatty():
            self._show_bar()
        elif time.monotonic() >= self._plain_due:
            self._plain_due = time.monotonic() + _PLAIN_SECONDS
            print(self._line(), file=self._stream, flush=True)

    def close(self) -> None:
        """Leave the terminal tidy."""
        if self._bar is not None:
            self._bar.close()

    def _show_bar(self) -> None:
        if self._bar is None:
            self._bar = tqdm(file=self._stream, unit="B", unit_scale=True, dynamic_ncols=True)
        self._bar.total = None if self._network is None else self._network.total
        self._bar.n = 0 if self._network is None else self._network.received
        self._bar.set_description_str(self._line(), refresh=True)

    def _line(self) -> str:
        line = f"{self._totals.rows:,} rows, {self._totals.commits:,} commits"
        # In a dump by GTID the server names the file, a moment later.
        if self._network is not None and self._network.file:
            line += f", at {self._network.file}:{self._network.position}"
        return line


def summary(outcome: Outcome, *, verbose: bool) -> str:
    """How a run ended, in a line; with `verbose`, a line per process with its memory and processor time."""
    totals = outcome.totals
    position = totals.get("position") or {}
    where = f", up to {position['file']}:{position['position']}" if position else ""
    lines = [
        f"{totals.get('rows', 0):,} rows of {totals.get('transactions', 0):,} transactions in "
        f"{totals.get('commits', 0):,} commits, {outcome.seconds:.2f} s{where}"
    ]
    if skipped := totals.get("skipped_corrupt_events"):
        lines.append(f"{skipped:,} corrupt events skipped, recorded in the events feed")
    if verbose:
        lines += [
            f"  {name}: {usage.peak_memory / 1e6:.0f} MB at most, "
            f"{usage.cpu_milliseconds / 1000:.2f} s of processor time"
            for name, usage in sorted(outcome.processes.items())
        ]
    return "\n".join(lines)


def require_writable(report: Path) -> None:
    """Raise `EngineError` before a run whose report could not be written; creates the file."""
    with _report_errors(report):
        report.open("ab").close()


def write_report(outcome: Outcome, path: Path) -> None:
    """How a run ended, in full, as a JSON object. Raises `EngineError` where the file cannot be written."""
    with _report_errors(path):
        path.write_text(json.dumps(asdict(outcome), indent=1) + "\n", "utf-8")


@contextlib.contextmanager
def _report_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise EngineError(
            f"the report {path} cannot be written: {error.strerror}; give another file"
        ) from None
