"""How fast readers receive rows: a limit of rows or bytes in a second, and the rests of the back-off."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from engine.snapshot.back_off import BackOff


class Rate:
    """A limit for several threads together; None sets none.

    What was received too early is waited for afterwards, so no reader has to know the size of a read ahead.
    """

    def __init__(
        self,
        rows: int | None = None,
        bytes_: int | None = None,
        back_off: BackOff | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rows = rows
        self._bytes = bytes_
        self._back_off = back_off
        self._clock = clock
        self._lock = threading.Lock()
        self._free_at = clock()

    def spend(self, rows: int, bytes_: int, took: float = 0.0) -> float:
        """Note what was received in `took` seconds; returns for how many the caller is to wait."""
        rest = self._back_off.rest(took) if self._back_off else 0.0
        seconds = max(
            rows / self._rows if self._rows else 0.0,
            bytes_ / self._bytes if self._bytes else 0.0,
        )
        with self._lock:
            now = self._clock()
            self._free_at = max(self._free_at, now) + seconds
            return max(rest, self._free_at - now if seconds else 0.0)
