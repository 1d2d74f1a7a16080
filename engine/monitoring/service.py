"""Monitoring as a whole, beside the supervisor: the HTTP server and two threads that gather figures.

One thread follows the commit log, the other one asks the server, which may have to wait for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from engine.config.output_place import OutputPlace
from engine.monitoring.monitor import Monitor
from engine.monitoring.server import MonitoringServer, parse_address
from engine.pipeline.observer import Observer
from engine.pipeline.stop_signals import signals_blocked

_REPEAT_SECONDS = 1.0
_END_SECONDS = 2.0


@contextmanager
def monitored(http: str, out: OutputPlace, run: str, listener: Observer) -> Iterator[Monitor]:
    """Serve what is known of a command that writes to `out` at the address `http`, until the block ends.

    `run`: the id in the log. `listener` learns of what happens here. Raises `EngineError` if the address is
    not valid or cannot be used.
    """
    monitor = Monitor(out, run, listener)
    with MonitoringServer(*parse_address(http), monitor) as server, gathered(monitor):
        thread = threading.Thread(target=server.serve_forever, name="http", daemon=True)
        with signals_blocked():
            thread.start()
        listener.inform("http", f"metrics and status page at {server.url}", url=server.url)
        try:
            yield monitor
        finally:
            server.shutdown()
            thread.join(_END_SECONDS)


@contextmanager
def gathered(monitor: Monitor) -> Iterator[None]:
    """Have the monitor follow the commit log and ask the server, until the block ends."""
    end = threading.Event()
    threads = [_repeating(monitor.sample, end, "sample"), _repeating(monitor.source.ask, end, "ask")]
    with signals_blocked():
        for thread in threads:
            thread.start()
    try:
        yield
    finally:
        end.set()
        # A thread that waits for the server of the stream, or for an object store, is left to itself.
        for thread in threads:
            thread.join(_END_SECONDS)


def _repeating(work: Callable[[], None], end: threading.Event, name: str) -> threading.Thread:
    """A thread that does the work every second; the work knows what is due."""

    def repeat() -> None:
        work()
        while not end.wait(_REPEAT_SECONDS):
            work()

    return threading.Thread(target=repeat, name=name, daemon=True)
