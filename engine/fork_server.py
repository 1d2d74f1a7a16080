"""The server process that child processes are forked from: it imports, once, what all of them need.

A module of its own that imports next to nothing, so that the server can begin before the command has read
its own modules.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from multiprocessing import forkserver

from engine.errors import EngineError

_PRELOADED = ["engine.stop_signals", "engine.without_pandas", "engine.preload"]
_LONGEST_SOCKET_PATH = 107
_SOCKET_NAME_BYTES = 32
"""What a folder for sockets, and a name in it, add to the folder for temporary files."""


def start_fork_server() -> None:
    """Start it; it imports while the caller goes on. Raises `EngineError` where sockets have no room."""
    try:
        folder = tempfile.gettempdir()
    except OSError:
        raise EngineError(
            "there is no folder for temporary files that this user may write to: set TMPDIR to one"
        ) from None
    longest = _LONGEST_SOCKET_PATH - _SOCKET_NAME_BYTES
    if len(os.fsencode(folder)) > longest:
        raise EngineError(
            f"the folder for temporary files, {folder}, has too long a name for sockets in it: set TMPDIR to "
            f"one of at most {longest} bytes, such as /tmp"
        )
    multiprocessing.get_context("forkserver").set_forkserver_preload(_PRELOADED)
    forkserver.ensure_running()
