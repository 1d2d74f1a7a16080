"""SIGINT and SIGTERM in the command's own process, from its first moment on: both ask for an orderly end.

While the command reads its modules and arguments, a signal is only noted. Then it raises `KeyboardInterrupt`
or `Terminated`, so that whatever waits gives up and folders are removed on the way out; a run replaces that
by handlers of its own, which let it commit what is finished. Further signals change nothing.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)

_noted: list[int] = []


class Terminated(KeyboardInterrupt):
    """SIGTERM asks for the end; raised in the main thread, wherever that is."""


def note_stop_signals() -> None:
    """Keep signals until `stop_signals_raised`; after it, they change nothing."""
    for number in STOP_SIGNALS:
        signal.signal(number, _note)


@contextmanager
def stop_signals_raised() -> Iterator[None]:
    """The first signal, which may have come before, raises `KeyboardInterrupt` or `Terminated` inside."""
    previous = {number: signal.signal(number, _raise) for number in STOP_SIGNALS}
    try:
        if _noted:
            _raise(_noted[0], None)
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _note(number: int, frame: FrameType | None) -> None:
    _noted.append(number)


def _raise(number: int, frame: FrameType | None) -> NoReturn:
    note_stop_signals()
    raise KeyboardInterrupt if number == signal.SIGINT else Terminated
