"""Slows the readers of a snapshot down while the stream or a watched replica falls behind.

Readers rest after each batch, for a multiple of the time that it took. The multiple doubles when a change
of the stream was late, and falls slowly while none is, so reading settles where the stream just keeps up.
While a replica lags, nothing is read at all, since its lag shows the effect of less reading much later.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from engine.dataclass import dataclass

_LEAST_REST = 0.25
_MOST_REST = 16.0
"""Multiples of the time that a batch took: a snapshot always goes on, whatever makes the stream slow."""
_RECOVERY = 0.95
"""What a commit in time leaves of the multiple."""
_USUAL_INTERVALS = 1.5
"""Commits in this many intervals are in time, if the user sets no limit."""
_COMMIT_SECONDS = 0.1
"""What a commit may take in any case."""
_LEAST_REPLICA_LAG = 1.0
"""Servers give the lag of replicas in whole seconds."""


@dataclass(frozen=True, slots=True)
class LagLimits:
    """Beyond how many seconds the readers slow down."""

    stream: float
    """From a change's arrival to its commit, and from its place in the binlog to its arrival."""
    replica: float

    @classmethod
    def of(cls, max_lag: float | None, commit_interval: float) -> LagLimits:
        """`max_lag`: what the user wants; None for a little more than the stream has without a snapshot."""
        if max_lag is None:
            max_lag = max(_USUAL_INTERVALS * commit_interval, commit_interval + _COMMIT_SECONDS)
        return cls(max_lag, max(max_lag, _LEAST_REPLICA_LAG))


class BackOff:
    """How long readers rest; its methods may be called by any thread."""

    def __init__(self, limits: LagLimits, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._lock = threading.Lock()
        self._multiple = 0.0
        self._settled_at = clock()
        self._lagging: dict[str, str] = {}

    @property
    def reason(self) -> str | None:
        """Why nothing is read at the moment, as part of a sentence; None while readers may read."""
        with self._lock:
            return next(iter(self._lagging.values()), None)

    def rest(self, seconds: float) -> float:
        """For how many seconds a reader is to rest after a batch that took so many."""
        return self._multiple * seconds

    def stream_lag(self, seconds: float) -> None:
        """A change of the stream was so late."""
        with self._lock:
            now, limit = self._clock(), self._limits.stream
            if seconds <= limit:
                shorter = self._multiple * _RECOVERY
                self._multiple = shorter if shorter >= _LEAST_REST / 2 else 0.0
            elif now >= self._settled_at:
                self._multiple = min(max(2 * self._multiple, _LEAST_REST), _MOST_REST)
                # Changes that are late by now do not show yet what longer rests do.
                self._settled_at = now + limit

    def replica_lag(self, replica: str, seconds: float | None) -> None:
        """A replica lags so much; None if it does not replicate, or does not answer."""
        with self._lock:
            self._lagging.pop(replica, None)
            if seconds is None:
                self._lagging[replica] = f"{replica} does not replicate"
            elif seconds > self._limits.replica:
                self._lagging[replica] = f"{replica} lags {seconds:,.0f} s"
