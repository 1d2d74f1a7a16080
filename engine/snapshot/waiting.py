"""Waiting for a server: until it has what the stream has, or until a table may be read."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from engine.errors import EngineError
from engine.snapshot.sessions import Readers

Found = TypeVar("Found")

_PAUSE_SECONDS = 0.001
_LONGEST_PAUSE_SECONDS = 0.2
_LONGEST_WAIT_SECONDS = 300


class NotThere(EngineError):
    """The server to read from lacks transactions for too long."""

    retryable = True


class TableBusy(EngineError):
    """Transactions that do not end keep a table from being read or locked: to be tried again later."""


def wait_until(attempt: Callable[[], Found | None], readers: Readers) -> Found:
    """The result of the first attempt that has one.

    The stream is ahead of its own server only for moments; another server may lag.
    """
    pause = _PAUSE_SECONDS
    deadline = time.monotonic() + _LONGEST_WAIT_SECONDS
    while not (found := attempt()):
        readers.check()
        if time.monotonic() > deadline:
            raise NotThere(
                f"{readers.rows.endpoint} lacks what {readers.source.endpoint} had {_LONGEST_WAIT_SECONDS} "
                "seconds ago, so rows cannot be read there: it lags, or is not its replica"
            )
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
    return found
