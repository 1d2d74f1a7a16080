"""How long to wait for an object store that does not answer, and whom to warn meanwhile.

A command gives up soon, so that a wrong address is noticed. A run that has begun waits for as long as it
takes: meanwhile the server keeps the binlog. A process has a patience for all stores, and each store may have
one of its own, since a fleet follows many servers in one process. The pauses grow, and are different each
time, so that many engines do not come back at the same moment.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable

from engine.dataclass import dataclass

_FIRST_PAUSE = 0.2
_LONGEST_PAUSE = 15.0
_FIRST_WARNING = 5.0
"""Seconds without an answer before the first warning; the next ones come after twice as long each."""
COMMAND_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Patience:
    """How long requests wait."""

    seconds: float = math.inf
    warn: Callable[[str], None] = lambda _: None
    """Is given a sentence from time to time, in any thread."""


_of_process = Patience(COMMAND_SECONDS)


def set_process_patience(patience: Patience) -> None:
    """From now on, this process waits like that for stores without a patience of their own."""
    global _of_process
    _of_process = patience


class Waiting:
    """The time that one operation has waited so far."""

    def __init__(self, of_store: Callable[[], Patience | None]) -> None:
        """`of_store`: the store's own patience at present, if it has one."""
        self._of_store = of_store
        self._begun = time.monotonic()
        self._pause = _FIRST_PAUSE
        self._warn_after = _FIRST_WARNING

    def again(self, sentence: str) -> bool:
        """After a failure: wait and return True, or False if it has taken too long.

        `sentence`: what failed, for the warning.
        """
        patience = self._of_store() or _of_process
        waited = time.monotonic() - self._begun
        if waited >= patience.seconds:
            return False
        if waited >= self._warn_after:
            self._warn_after = 2 * waited
            patience.warn(f"{sentence}; waiting for it since {waited:.0f} s")
        # Never longer than what is left, so that a shorter time that is set meanwhile counts soon.
        time.sleep(min(self._pause * random.uniform(0.5, 1.0), max(0.05, patience.seconds - waited)))
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)
        return True
