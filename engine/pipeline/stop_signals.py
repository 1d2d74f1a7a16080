"""SIGINT and SIGTERM in the command's process, from its start on: both ask for an orderly end.

While the command line is parsed, a signal is only recorded. After that, a signal raises
`KeyboardInterrupt` or `Terminated`, which ends waits and removes folders; while the command's modules are
imported, it waits until they are. A run installs its own handlers instead, which commit what is finished.
All but the first signal are ignored.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
SENT_TO_ALL = (*STOP_SIGNALS, signal.SIGHUP)
"""What terminals and service managers may send to all processes of a command, where only one is to react."""

_noted: list[int] = []


class Terminated(KeyboardInterrupt):
    """SIGTERM was received; raised in the main thread at any instruction."""


def note_stop_signals() -> None:
    """Record signals for `stop_signals_raised`; signals after its end are ignored."""
    for number in STOP_SIGNALS:
        signal.signal(number, _note)


@contextmanager
def stop_signals_raised() -> Iterator[None]:
    """The first signal, recorded or new, raises `KeyboardInterrupt` or `Terminated` inside the block."""
    previous = {number: signal.signal(number, _raise) for number in STOP_SIGNALS}
    try:
        if _noted:
            _raise(_noted[0], None)
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@contextmanager
def signals_blocked() -> Iterator[None]:
    """Block SIGINT, SIGTERM and SIGHUP in this thread, and in threads and processes that are started inside.

    Such threads leave them to the main thread, so that its waits see every one.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SENT_TO_ALL)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _note(number: int, frame: FrameType | None) -> None:
    _noted.append(number)


def _raise(number: int, frame: FrameType | None) -> NoReturn:
    note_stop_signals()
    raise KeyboardInterrupt if number == signal.SIGINT else Terminated
