"""When the source last had nothing more than the output: a small file beside the commit log, for `status`.

An idle source brings no commits, so the log alone cannot tell an engine that is up to date from one that
hangs. The file may be missing or old after a crash, and nothing but the lag that is shown depends on it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from engine.output.files import FILE_MODE, TEMPORARY_SUFFIX, writing

CAUGHT_UP_FILE = "_caught_up.json"
_KEY = "time_us"


def write_caught_up(out: Path, moment_us: int) -> None:
    """Note that at that moment (our clock, µs since the epoch) all that the source had was committed.

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
    """The moment last noted; null if there is none."""
    try:
        moment = json.loads((out / CAUGHT_UP_FILE).read_bytes())[_KEY]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return moment if type(moment) is int and moment > 0 else None
