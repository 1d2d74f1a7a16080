"""The progress of a run on standard error: a bar on a terminal, elsewhere a plain line every few seconds."""

from __future__ import annotations

import sys
import time
from typing import Any, TextIO

from tqdm import tqdm

from engine.pipeline.messages import NetworkProgress, SinkProgress, Totals

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
        """Show a warning, which ends nothing."""
        print(f"binlog-engine: warning: {sentence}", file=self._stream)

    def progress(self, progress: NetworkProgress | SinkProgress) -> None:
        """Show the progress that a process reports."""
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
        """Close the bar."""
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
        # A start by GTID has no file until the server names it.
        if self._network is not None and self._network.file:
            line += f", at {self._network.file}:{self._network.position}"
        return line
