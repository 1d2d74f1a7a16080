"""The monitoring of one command, beside the supervisor: what gathers its figures, and the HTTP server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from engine.config.output_place import OutputPlace
from engine.monitoring.answers import monitor_answer
from engine.monitoring.gathering import Gatherer
from engine.monitoring.monitor import Monitor
from engine.monitoring.server import served
from engine.pipeline.observer import Observer


@contextmanager
def monitored(http: str, out: OutputPlace, run: str, listener: Observer) -> Iterator[Monitor]:
    """Serve what is known of a command that writes to `out` at the address `http`, until the block ends.

    `run`: the id in the log. `listener` learns of what happens here. Raises `EngineError` if the address is
    not valid or cannot be used.
    """
    monitor = Monitor(out, run, listener)
    with (
        served(http, partial(monitor_answer, monitor), listener, "metrics and status page"),
        Gatherer() as gatherer,
        gatherer.gathering(monitor),
    ):
        yield monitor
