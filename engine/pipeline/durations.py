"""How long something took, many times: counts by duration, as a histogram of OpenMetrics has them."""

from __future__ import annotations

from bisect import bisect_left

from engine.dataclass import dataclass

BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper limits of the classes in seconds, inclusive; the last class has none."""


@dataclass(frozen=True, slots=True)
class Durations:
    """Counts per class, and the sum."""

    counts: tuple[int, ...] = (0,) * (len(BOUNDS) + 1)
    seconds: float = 0.0

    def with_one(self, seconds: float) -> Durations:
        """With one more duration."""
        counts = list(self.counts)
        counts[bisect_left(BOUNDS, seconds)] += 1
        return Durations(tuple(counts), self.seconds + seconds)

    def __add__(self, other: Durations) -> Durations:
        """Both together."""
        counts = tuple(mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True))
        return Durations(counts, self.seconds + other.seconds)


NO_DURATIONS = Durations()
