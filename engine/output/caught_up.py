"""The time at which the output last contained everything of the source: a small file for `status`.

An idle source causes no commits, so the commit log alone does not show whether an engine is up to date or
hangs. The file may be missing or old after a crash; only the lag that `status` shows depends on it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from engine.output.files import FILE_MODE, TEMPORARY_SUFFIX, writing

CAUGHT_UP_FILE = "_caught_up.json"
_KEY = "time_us"


def write_caught_up(out: Path, moment_us: int) -> None:
    """Record that at `moment_us` (this machine's clock, µs since the epoch) everything was committed.

    Only for the holder of the lock. Raises `OutputError`.
    """
    path = out / CAUGHT_UP_FILE
    with writing(path):
        temporary = path.with_name(path.name + TEMPORARY_SUFFIX)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, FILE_MODE)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump({_KEY: moment_us}, file)
        temporary.rename(path)


def read_caught_up(out: Path) -> int | None:
    """The last recorded time in µs since the epoch; None if there is none."""
    try:
        moment = json.loads((out / CAUGHT_UP_FILE).read_bytes())[_KEY]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return moment if type(moment) is int and moment > 0 else None
