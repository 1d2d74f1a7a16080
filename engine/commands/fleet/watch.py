"""What a fleet answers over HTTP: probes, metrics with the label `source`, and the states of all as JSON."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from engine.commands.fleet.source_state import SourceState
from engine.monitoring.metrics import METRICS, PREFIX
from engine.monitoring.monitor import Monitor
from engine.monitoring.server import Answer, MonitoringServer, Paths, parse_address, probe_answer
from engine.pipeline.observer import Observer
from engine.pipeline.stop_signals import signals_blocked
from engine.records import json_text

_SILENCE_SECONDS = 10.0
"""How long the main thread of the fleet may not come round."""


class FleetWatch:
    """The states of all sources, as the main thread has shown them last."""

    def __init__(self) -> None:
        self.sources: tuple[SourceState, ...] = ()
        self.monitors: Mapping[str, Monitor] = {}
        self._shown = time.monotonic()

    def show(self, sources: tuple[SourceState, ...], monitors: Mapping[str, Monitor]) -> None:
        """Called by the main thread each time it comes round."""
        self.sources = sources
        self.monitors = monitors
        self._shown = time.monotonic()

    def not_alive(self) -> list[str]:
        """Why the fleet has to be started again; empty if it need not be."""
        silent = time.monotonic() - self._shown
        return [f"the fleet has not answered for {silent:.0f} s"] if silent > _SILENCE_SECONDS else []

    def not_ready(self) -> list[str]:
        """Why sources are not followed at the moment."""
        if not self.sources:
            return ["the fleet is starting"]
        return self.not_alive() + [
            f"{source.name} is {source.stage}{f': {source.error}' if source.error else ''}"
            for source in self.sources
            if source.stage != "running"
        ]


@contextmanager
def served(http: str | None, watch: FleetWatch, listener: Observer) -> Iterator[None]:
    """Answer at the address `http`, if there is one, until the block ends. Raises `EngineError`."""
    if http is None:
        yield
        return
    with MonitoringServer(*parse_address(http), watch, _PATHS) as server:
        thread = threading.Thread(target=server.serve_forever, name="http", daemon=True)
        with signals_blocked():
            thread.start()
        listener.inform("http", f"metrics at {server.url}metrics", url=server.url)
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


_METRICS: tuple[tuple[str, Literal["gauge", "counter"], str, Callable[[SourceState], float | None]], ...] = (
    ("ready", "gauge", "1 if the source is followed, else 0", lambda state: state.stage == "running"),
    (
        "lag_seconds",
        "gauge",
        "No change that is older is missing in the output; 0 while the server says that none is missing",
        lambda state: state.lag(time.time()),
    ),
    ("rows", "counter", "Rows committed by this command", lambda state: state.rows),
    ("commits", "counter", "Commits of this command", lambda state: state.commits),
    ("processes", "gauge", "Processes of the source, shared decoders included", lambda s: len(s.processes)),
)
"""Name, kind, meaning and value of a source's state; the names of `run` where the meaning is the same."""
_OWN_NAMES = frozenset(name for name, *_ in _METRICS)


class _Collected(Collector):
    """What the library encodes."""

    def __init__(self, watch: FleetWatch) -> None:
        self._sources = watch.sources
        self._monitors = watch.monitors

    def collect(self) -> Iterator[Metric]:
        for name, kind, text, value_of in _METRICS:
            make = {"gauge": GaugeMetricFamily, "counter": CounterMetricFamily}[kind]
            family = make(PREFIX + name, text, labels=("source",))
            for source in self._sources:
                value = value_of(source)
                if value is not None:
                    family.add_metric((source.name,), value)
            yield family
        figures = {name: monitor.figures() for name, monitor in self._monitors.items()}
        yield from (row.family_of_sources(figures) for row in METRICS if row.name not in _OWN_NAMES)


def _metrics(watch: FleetWatch, accept: str) -> Answer:
    encode, media_type = choose_encoder(accept)
    return Answer(encode(_Collected(watch)), media_type)


_PATHS: Paths = {
    "/metrics": _metrics,
    "/livez": lambda watch, accept: probe_answer(watch.not_alive()),
    "/readyz": lambda watch, accept: probe_answer(watch.not_ready()),
    "/status.json": lambda watch, accept: Answer(json_text({"sources": watch.sources}), "application/json"),
}
