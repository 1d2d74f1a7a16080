"""The pauses between tries to connect: growing, with jitter, until a time limit without success."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
"""Seconds."""


class Retries:
    """The pauses between tries, from `first` to `longest` seconds.

    `limit` is in seconds from the first failure after a success.
    """

    def __init__(
        self,
        limit: float,
        clock: Callable[[], float] = time.monotonic,
        *,
        first: float = FIRST_PAUSE,
        longest: float = LONGEST_PAUSE,
    ) -> None:
        self._limit = limit
        self._clock = clock
        self._first = first
        self._longest = longest
        self._failing_since: float | None = None
        self._pause = first

    def succeeded(self) -> None:
        """Reset: the pauses and the time limit start anew at the next failure."""
        self._failing_since = None
        self._pause = self._first

    def next_pause(self) -> float | None:
        """Seconds to wait before the next try, None after the time limit."""
        now = self._clock()
        if self._failing_since is None:
            self._failing_since = now
        if now - self._failing_since >= self._limit:
            return None
        # Jitter, so that many engines do not reconnect to a server at the same moment.
        pause = self._pause * random.uniform(0.5, 1.0)
        self._pause = min(self._longest, 2 * self._pause)
        return pause
