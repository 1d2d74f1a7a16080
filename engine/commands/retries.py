"""How long to wait before the next try: growing pauses with jitter, until a limit without success."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
"""Seconds."""


class Retries:
    """The pauses of one stretch of failures; `limit` in seconds from the first failure of a stretch."""

    def __init__(self, limit: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit
        self._clock = clock
        self._failing_since: float | None = None
        self._pause = FIRST_PAUSE

    def succeeded(self) -> None:
        """Things worked for a while: the next failure starts a new stretch."""
        self._failing_since = None
        self._pause = FIRST_PAUSE

    def next_pause(self) -> float | None:
        """Seconds to wait before the next try, null when it is time to give up."""
        now = self._clock()
        if self._failing_since is None:
            self._failing_since = now
        if now - self._failing_since >= self._limit:
            return None
        # Jitter, so that many engines do not come back to a server in the same moment.
        pause = self._pause * random.uniform(0.5, 1.0)
        self._pause = min(LONGEST_PAUSE, 2 * self._pause)
        return pause
