"""The progress of a run on standard error: a bar on a terminal, elsewhere a plain line every few seconds."""

from __future__ import annotations

import sys
import time
from typing import Any, TextIO

from tqdm import tqdm

from engine.pipeline.messages import Report

_PLAIN_SECONDS = 10.0


class Display:
    """Shows progress reports and warnings on a stream (standard error)."""

    def __init__(self, stream: TextIO = sys.stderr) -> None:
        self._stream = stream
        self._bar: tqdm[Any] | None = None
        self._network: dict[str, Any] = {}
        self._sink: dict[str, Any] = {}
        self._plain_due = time.monotonic() + _PLAIN_SECONDS

    def warn(self, sentence: str) -> None:
        """Show a warning, which ends nothing."""
        print(f"binlog-engine: warning: {sentence}", file=self._stream)

    def progress(self, report: Report) -> None:
        """Show the progress that a process reports."""
        if report.process == "network":
            self._network = report.body
        elif report.process == "sink":
            self._sink = report.body
        else:
            return
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
        self._bar.total = self._network.get("total")
        self._bar.n = self._network.get("received", 0)
        self._bar.set_description_str(self._line(), refresh=True)

    def _line(self) -> str:
        line = f"{self._sink.get('rows', 0):,} rows, {self._sink.get('commits', 0):,} commits"
        # A start by GTID has no file until the server names it.
        if file := self._network.get("file"):
            line += f", at {file}:{self._network['position']}"
        return line
