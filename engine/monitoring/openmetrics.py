"""The figures as OpenMetrics, or as Prometheus's older text format: what `/metrics` answers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from prometheus_client.core import HistogramMetricFamily, InfoMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from engine.monitoring.figures import Figures
from engine.monitoring.metrics import METRICS, PREFIX
from engine.pipeline.durations import BOUNDS

COMMIT_SECONDS = PREFIX + "commit_seconds"
COMMIT_SECONDS_HELP = "Time from the first flush of a commit's files until the commit is on disk"
INFO = PREFIX.removesuffix("_")
INFO_HELP = "Version, id of this run in the log, output folder and server"


def exposition(figures: Figures, accept: str) -> tuple[bytes, str]:
    """The metrics as text or OpenMetrics, as an `Accept` header asks for, and the media type."""
    encode, media_type = choose_encoder(accept)
    return encode(_Collected(figures)), media_type


class _Collected(Collector):
    """What the library encodes."""

    def __init__(self, figures: Figures) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Metric]:
        figures = self._figures
        info = {"version": figures.version, "run": figures.run, "out": figures.out, "server": figures.source}
        yield InfoMetricFamily(INFO, INFO_HELP, value=info)
        yield from (row.family(figures) for row in METRICS)
        bounds = [*map(str, BOUNDS), "+Inf"]
        buckets = list(zip(bounds, accumulate(figures.commit_seconds.counts), strict=True))
        yield HistogramMetricFamily(
            COMMIT_SECONDS, COMMIT_SECONDS_HELP, buckets=buckets, sum_value=figures.commit_seconds.seconds
        )
