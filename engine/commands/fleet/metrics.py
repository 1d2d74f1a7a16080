"""The metrics of a fleet: those of `run` with the label `source`, and some of each source's state."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from engine.commands.fleet.source_state import SourceState
from engine.monitoring.metrics import METRICS, PREFIX
from engine.monitoring.monitor import Monitor

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


def exposition(
    sources: Sequence[SourceState], monitors: Mapping[str, Monitor], accept: str
) -> tuple[bytes, str]:
    """The metrics in the format that an `Accept` header asks for, and the media type."""
    encode, media_type = choose_encoder(accept)
    return encode(_Collected(sources, monitors)), media_type


class _Collected(Collector):
    """What the library encodes."""

    def __init__(self, sources: Sequence[SourceState], monitors: Mapping[str, Monitor]) -> None:
        self._sources = sources
        self._monitors = monitors

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
