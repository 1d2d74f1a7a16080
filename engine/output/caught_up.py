"""The time at which the output last contained everything of the source: a small file for `status`.

An idle source causes no commits, so the commit log alone does not show whether an engine is up to date or
hangs. The file may be missing or old after a crash; only the lag that `status` shows depends on it.
"""

from __future__ import annotations

import json
import time

from engine.output.files import OutputError, writing
from engine.output.storage import OutputPlace, storage_of

CAUGHT_UP_FILE = "_caught_up.json"
_KEY = "time_us"


def later(before: float, until: float) -> float:
    """The later of two times up to which an output has everything, in seconds since the epoch.

    If `before` is still to come, this machine's clock was set back since, and `until` counts.
    """
    return until if before > time.time() else max(before, until)


def write_caught_up(out: OutputPlace, moment_us: int) -> None:
    """Record that at `moment_us` (this machine's clock, µs since the epoch) everything was committed.

    Only for the holder of the lock. Raises `OutputError`.
    """
    with writing(out / CAUGHT_UP_FILE):
        storage_of(out).note(CAUGHT_UP_FILE, json.dumps({_KEY: moment_us}).encode())


def read_caught_up(out: OutputPlace) -> int | None:
    """The last recorded time in µs since the epoch; None if there is none."""
    try:
        moment = json.loads(storage_of(out).read(CAUGHT_UP_FILE))[_KEY]
    except (OutputError, OSError, ValueError, KeyError, TypeError):
        return None
    return moment if type(moment) is int and moment > 0 else None
