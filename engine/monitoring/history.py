"""The figures of the last hour, for plots and rates: a sample every ten seconds, at most 361."""

from __future__ import annotations

from collections import deque
from dataclasses import asdict, fields

from engine.dataclass import dataclass
from engine.monitoring.figures import Figures

SAMPLE_SECONDS = 10.0
HISTORY_SECONDS = 3600.0
RATE_SECONDS = 600.0
"""Over how long the present rate of a value is taken."""
_SHORTEST_RATE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Sample:
    """Some figures at one moment; None for what was not known."""

    time: float
    rows: int
    bytes: int
    transactions: int
    received_bytes: int
    commits: int
    waited_seconds: float
    lag_seconds: float | None
    behind_bytes: int | None
    headroom_seconds: float | None
    resident_bytes: int
    disk_free_bytes: int | None

    @classmethod
    def of(cls, figures: Figures) -> Sample:
        """The sample of these figures."""
        return cls(
            time=figures.now,
            rows=figures.totals.rows,
            bytes=figures.totals.bytes,
            transactions=figures.totals.transactions,
            received_bytes=figures.received_bytes,
            commits=sum(figures.commit_seconds.counts),
            waited_seconds=figures.waited_seconds,
            lag_seconds=figures.lag_seconds,
            behind_bytes=figures.server.behind_bytes,
            headroom_seconds=figures.server.headroom_seconds,
            resident_bytes=figures.resident_bytes,
            disk_free_bytes=figures.output.disk_free_bytes,
        )


class History:
    """The samples of the last hour, the oldest first."""

    def __init__(self) -> None:
        self._samples: deque[Sample] = deque(maxlen=int(HISTORY_SECONDS / SAMPLE_SECONDS) + 1)

    def add(self, sample: Sample) -> None:
        """Add the newest sample."""
        # The clock was set back: rates would count the time from these on, and plots go back and forth.
        while self._samples and self._samples[-1].time >= sample.time:
            self._samples.pop()
        self._samples.append(sample)

    def columns(self) -> dict[str, list[float | None]]:
        """Each value's course, by name."""
        samples = [asdict(sample) for sample in self._samples.copy()]
        return {field.name: [sample[field.name] for sample in samples] for field in fields(Sample)}

    def rate(self, name: str, seconds: float = RATE_SECONDS) -> float | None:
        """By how much a value grows in a second at present, over the last `seconds`, at least 30.

        None if it was not known for long enough.
        """
        known = [
            (sample.time, value)
            for sample in self._samples.copy()
            if (value := getattr(sample, name)) is not None
        ]
        recent = [entry for entry in known if entry[0] >= known[-1][0] - seconds]
        if not recent or recent[-1][0] - recent[0][0] < _SHORTEST_RATE_SECONDS:
            return None
        (begun, first), (ended, last) = recent[0], recent[-1]
        return (last - first) / (ended - begun)
