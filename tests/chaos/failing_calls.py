"""System calls of an engine that fail or write less than they were told to, and a wall clock that is off.

`failing_calls.c` is compiled once and loaded into the engine's processes (LD_PRELOAD), where it takes the
place of functions of the C library. What it does there is in a file that all of them have mapped. Only calls
on files of the output are struck. Without a C compiler, or on another system than Linux, none of this can be
done.
"""

from __future__ import annotations

import mmap
import struct
import tempfile
import time
from collections.abc import Mapping
from enum import IntEnum, IntFlag
from pathlib import Path
from typing import Self

from tests.support.preload import compiled

_SOURCE = Path(__file__).with_name("failing_calls.c")
_FIELD = struct.Struct("=q")
_CALLS, _HARM, _PASSED, _LEFT, _CLOCK_NS = range(5)
"""The fields of the control file, in their order."""


class Calls(IntFlag):
    """Which calls."""

    WRITE = 1
    SYNC_FILE = 2
    SYNC_FOLDER = 4
    RENAME = 8
    OPEN = 16
    TRUNCATE = 32


class Harm(IntEnum):
    """What becomes of them."""

    ERROR = 1
    """They fail with EIO. What an fsync was to make durable is lost then, and the next fsync succeeds."""
    SHORT = 2
    """About half is written."""


class FailingCalls:
    """Those of the processes that are started with `environment`, on files below the folder `below`."""

    def __init__(self, below: Path) -> None:
        self._below = below
        # Not in the output's file system, which may be full.
        self._control = tempfile.NamedTemporaryFile()  # noqa: SIM115
        self._control.truncate(mmap.PAGESIZE)
        self._memory = mmap.mmap(self._control.fileno(), mmap.PAGESIZE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._memory.close()
        self._control.close()

    @property
    def environment(self) -> Mapping[str, str]:
        """What a process has to be started with."""
        return {
            "LD_PRELOAD": str(compiled(_SOURCE)),
            "FAILING_CALLS_CONTROL": self._control.name,
            "FAILING_CALLS_FOLDER": str(self._below),
        }

    def arm(self, calls: Calls, harm: Harm, *, passed: int = 0, times: int = 1) -> None:
        """Of the next such calls of all processes, leave `passed` alone and strike `times`."""
        self.disarm()
        for field, value in ((_HARM, harm), (_PASSED, passed), (_LEFT, times), (_CALLS, calls)):
            self._set(field, value)

    def disarm(self) -> None:
        """Strike no more calls."""
        self._set(_CALLS, 0)
        self._set(_LEFT, 0)

    @property
    def left(self) -> int:
        """How many calls are still to be struck."""
        return max(0, self._get(_LEFT))

    def step_clock(self, seconds: int) -> None:
        """Set the wall clock forward, or back where `seconds` is negative."""
        self._set(_CLOCK_NS, self._get(_CLOCK_NS) + seconds * 1_000_000_000)

    def now(self) -> float:
        """What the wall clock of those processes says, in seconds since the epoch."""
        return time.time() + self._get(_CLOCK_NS) / 1_000_000_000

    def _get(self, field: int) -> int:
        value: int = _FIELD.unpack_from(self._memory, field * _FIELD.size)[0]
        return value

    def _set(self, field: int, value: int) -> None:
        _FIELD.pack_into(self._memory, field * _FIELD.size, value)
