"""The progress of compiling kernels: a bar on a terminal, a line every few seconds elsewhere.

numba reports the start and the end of each compilation; at each the compiled kernels are counted. If all code
comes from the cache, nothing is shown.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from numba.core import event

_PLAIN_SECONDS = 5.0
_NAME = "binlog-engine: compiling kernels"


class _Display(event.Listener):  # type: ignore[misc]
    """Shows the count at the beginning and the end of each compilation."""

    def __init__(self, count: Callable[[], tuple[int, int]], stream: TextIO) -> None:
        self._count = count
        self._stream = stream
        self._started = time.monotonic()
        self._plain_due = 0.0
        self._total = 0
        """0 until the first compilation."""
        self._bar: Any = None

    def on_start(self, event: event.Event) -> None:
        """Called by numba."""
        self._show()

    def on_end(self, event: event.Event) -> None:
        """Called by numba."""
        self._show()

    def finish(self) -> None:
        """Show that all kernels are compiled, if anything was shown before."""
        if self._bar is not None:
            self._bar.n = self._total
            self._bar.refresh()
        elif self._total:
            self._line(self._total)

    def close(self) -> None:
        """Close the bar."""
        if self._bar is not None:
            self._bar.close()

    def _show(self) -> None:
        compiled, total = self._count()
        if not self._total:
            self._total = total
            print(f"{_NAME}, once per version", file=self._stream, flush=True)
            if self._stream.isatty():
                self._bar = _bar(total, self._stream)
        if self._bar is not None:
            self._bar.n = compiled
            self._bar.refresh()
        elif time.monotonic() >= self._plain_due:
            self._plain_due = time.monotonic() + _PLAIN_SECONDS
            self._line(compiled)

    def _line(self, compiled: int) -> None:
        seconds = time.monotonic() - self._started
        print(f"{_NAME}: {compiled} of {self._total}, {seconds:.0f} s", file=self._stream, flush=True)


def _bar(total: int, stream: TextIO) -> Any:
    # Imported here, since most starts do not compile.
    from tqdm import tqdm

    class Bar(tqdm):  # type: ignore[misc]
        # No thread: child processes are forked from this one.
        monitor_interval = 0

    Bar.set_lock(threading.RLock())
    return Bar(file=stream, total=total, desc=_NAME, unit="kernel", dynamic_ncols=True)


@contextmanager
def compile_progress(count: Callable[[], tuple[int, int]], stream: TextIO | None = None) -> Iterator[None]:
    """Show progress on `stream` (standard error) while the block compiles kernels.

    `count` returns the number of compiled kernels and of all kernels; they are equal after the block.
    """
    display = _Display(count, stream or sys.stderr)
    try:
        with event.install_listener("numba:compile", display):
            yield
        display.finish()
    finally:
        display.close()
