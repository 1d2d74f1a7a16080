"""The server process that child processes are forked from: it imports, once, what all of them need.

A module of its own that imports next to nothing, so that the server can begin before the command has read
its own modules.
"""

from __future__ import annotations

import multiprocessing
from multiprocessing import forkserver

_PRELOADED = ["engine.without_pandas", "engine.preload"]


def start_fork_server() -> None:
    """Start it; it imports while the caller goes on."""
    multiprocessing.get_context("forkserver").set_forkserver_preload(_PRELOADED)
    forkserver.ensure_running()
