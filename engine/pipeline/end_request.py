"""What asks a run to end before its source does: a signal to the command, or another thread of it.

While the processes of a run exist, a request is only noted, so that the run ends in order and what is
finished is committed. At other times a signal raises an exception in the main thread, as `stop_signals` says.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import FrameType
from typing import Protocol

from engine.pipeline.stop_signals import STOP_SIGNALS


class EndRequest(Protocol):
    """Says whether an orderly end is asked for; once it is, it stays so."""

    def is_asked(self) -> bool:
        """Whether it is; called often."""

    def wait(self, seconds: float) -> bool:
        """Wait so long, or until it is asked for; returns whether it is."""

    def noted(self) -> AbstractContextManager[None]:
        """A context in which a request interrupts nothing: `is_asked` is to be called."""


class SignalledEnd:
    """SIGINT or SIGTERM asks for it, or `asks` once it returns true. For the main thread."""

    def __init__(self, asks: Callable[[], bool] = lambda: False) -> None:
        self._asks = asks
        self._is_signalled = False

    def is_asked(self) -> bool:
        return self._is_signalled or self._asks()

    def wait(self, seconds: float) -> bool:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
        try:
            if signal.sigtimedwait(STOP_SIGNALS, seconds) is not None:
                self._is_signalled = True
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return self.is_asked()

    @contextmanager
    def noted(self) -> Iterator[None]:
        previous = {number: signal.signal(number, self._note) for number in STOP_SIGNALS}
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._is_signalled = True


class RequestedEnd:
    """Another thread asks for it, with `ask`."""

    def __init__(self) -> None:
        self._asked = threading.Event()

    def ask(self) -> None:
        """Ask for an orderly end."""
        self._asked.set()

    def is_asked(self) -> bool:
        return self._asked.is_set()

    def wait(self, seconds: float) -> bool:
        return self._asked.wait(seconds)

    def noted(self) -> AbstractContextManager[None]:
        return nullcontext()
