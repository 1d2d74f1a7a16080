"""How long this process waits for an object store that does not answer, and to whom it says so.

A command gives up soon, so that a wrong address is noticed. A run that has begun waits for as long as it
takes: meanwhile the server keeps the binlog. The pauses grow, and are different each time, so that many
engines do not come back at the same moment.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

_FIRST_PAUSE = 0.2
_LONGEST_PAUSE = 15.0
_FIRST_WARNING = 5.0
"""Seconds without an answer before the first warning; the next ones come after twice as long each."""
COMMAND_SECONDS = 20.0


@dataclass(slots=True)
class _Policy:
    seconds: float = COMMAND_SECONDS
    warn: Callable[[str], None] = lambda _: None


_policy = _Policy()


def wait_for_store(warn: Callable[[str], None] = lambda _: None, seconds: float = math.inf) -> None:
    """From now on, this process waits for so many seconds, and gives `warn` a sentence now and then.

    `warn` may be called in any thread.
    """
    _policy.seconds, _policy.warn = seconds, warn


class Waiting:
    """The time that one operation has waited so far."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._pause = _FIRST_PAUSE
        self._warn_after = _FIRST_WARNING

    def again(self, sentence: str) -> bool:
        """After a failure: wait and return True, or False if it has taken too long.

        `sentence`: what failed, for the warning.
        """
        waited = time.monotonic() - self._begun
        if waited >= _policy.seconds:
            return False
        if waited >= self._warn_after:
            self._warn_after = 2 * waited
            _policy.warn(f"{sentence}; waiting for it since {waited:.0f} s")
        # Never longer than what is left, so that a shorter time that is set meanwhile counts soon.
        time.sleep(min(self._pause * random.uniform(0.5, 1.0), max(0.05, _policy.seconds - waited)))
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)
        return True
