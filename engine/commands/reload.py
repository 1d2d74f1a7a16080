"""SIGHUP: a run reads its configuration again, without an end of the command.

The run ends in an orderly way, and the next one continues after its last commit with the new settings, as
after a lost connection. If they are not valid, it continues with those from before. On a terminal, SIGHUP
means that the terminal is gone, and ends the command as usual.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType
from typing import Generic, TypeVar

from engine.errors import EngineError
from engine.pipeline.observer import Observer

Settings = TypeVar("Settings")


class Reload(Generic[Settings]):
    """A context in which SIGHUP is noted; `read` returns the new settings, or raises `EngineError`."""

    def __init__(self, read: Callable[[], Settings], observer: Observer) -> None:
        self._read = read
        self._observer = observer
        self._noted = False

    def __enter__(self) -> Reload[Settings]:
        self._before = signal.signal(signal.SIGHUP, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGHUP, self._before)

    def is_asked(self) -> bool:
        """Whether the present run is to end."""
        return self._noted

    def take(self, present: Settings) -> Settings:
        """The settings for the next run."""
        self._noted = False
        try:
            new = self._read()
        except EngineError as error:
            self._observer.warn("reload_refused", f"{error}; the settings stay as they were")
            return present
        self._observer.inform("reloaded", "the configuration was read again")
        return new

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._noted = True
