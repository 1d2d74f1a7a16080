"""A cache of folders that are slow to make: unpacked servers and initialised data folders.

A folder is built beside its final name and renamed when complete, so what is in the cache is complete. A
lock file lets two processes ask for the same folder at once: one builds, the other waits and finds it made.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path


class UnavailableError(Exception):
    """A server or a file cannot be had on this machine; the message is one sentence that says why."""


def cache_folder() -> Path:
    """The folder under the user's cache that holds everything this package downloads or initialises."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "binlog-engine" / "servers"


def cached(name: str, build: Callable[[Path], None]) -> Path:
    """Return the cache's folder `name`; if it is not there, `build(folder)` fills an empty one first.

    Raises whatever `build` raises; nothing is then kept.
    """
    complete = cache_folder() / name
    if complete.exists():
        return complete
    complete.parent.mkdir(parents=True, exist_ok=True)
    partial = complete.with_name(f".{name}.partial")
    with complete.with_name(f".{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if complete.exists():
            return complete
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        try:
            build(partial)
            partial.rename(complete)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    return complete
