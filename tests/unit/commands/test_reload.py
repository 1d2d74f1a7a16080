"""Settings that are read again: at a signal, and only if they are valid."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest

from engine.commands.reload import Reload
from engine.errors import EngineError
from engine.pipeline.observer import Happening, Observer


class Listener(Observer):
    def __init__(self) -> None:
        self.heard: list[tuple[str, str]] = []

    def happened(self, happening: Happening) -> None:
        self.heard.append((happening.level, happening.name))


def invalid() -> int:
    raise EngineError("tables wants a list")


@pytest.mark.parametrize(
    ("read", "settings", "heard"),
    [(lambda: 2, 2, ("info", "reloaded")), (invalid, 1, ("warning", "reload_refused"))],
)
def test_a_signal(read: Callable[[], int], settings: int, heard: tuple[str, str]) -> None:
    listener = Listener()
    before = signal.getsignal(signal.SIGHUP)
    with Reload(read, listener) as reload:
        assert not reload.is_asked()
        os.kill(os.getpid(), signal.SIGHUP)
        assert reload.is_asked()
        assert reload.take(1) == settings
        assert not reload.is_asked()
    assert listener.heard == [heard]
    assert signal.getsignal(signal.SIGHUP) == before
