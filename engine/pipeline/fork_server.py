"""The server process that child processes are forked from: it imports, once, what all of them need.

A module of its own that imports next to nothing, so that the server can begin before the command has read
its own modules.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from multiprocessing import forkserver, resource_tracker
from multiprocessing.process import BaseProcess
from typing import Any

from engine.errors import EngineError
from engine.pipeline.import_path import same_engine
from engine.pipeline.parent_death import COMMAND_PROCESS
from engine.pipeline.private_folder import private_folder
from engine.pipeline.stop_signals import STOP_SIGNALS

LOST = (
    "the process that all others are forked from is gone (out of memory?): start the engine again, it goes "
    "on from its last commit"
)
EXIT_CODE_LOST = 255
"""What multiprocessing gives as a child's exit code when the fork server is gone, which alone knows it."""

_PRELOADED = [
    "engine.pipeline.fork_server_life",
    "engine.pipeline.without_pandas",
    "engine.commands.fork_server_preload",
]
_LONGEST_SOCKET_PATH = 107
_SOCKET_NAME_BYTES = 32
"""What a folder for sockets, and a name in it, add to the folder for temporary files."""


def start_fork_server() -> None:
    """Start it, unless it runs; it imports while the caller goes on.

    Raises `EngineError` where sockets have no room.
    """
    multiprocessing.get_context("forkserver").set_forkserver_preload(_PRELOADED)
    with _environment({**same_engine(), COMMAND_PROCESS: str(os.getpid())}):
        # It goes first, because starting it unblocks the signals.
        resource_tracker.ensure_running()
        # A signal that raised an exception here would leave files behind.
        with _blocked(STOP_SIGNALS):
            _check_room()
            private_folder()
            forkserver.ensure_running()


def _check_room() -> None:
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


def start_process(function: Callable[..., object], arguments: tuple[Any, ...], name: str) -> BaseProcess:
    """Have the fork server fork a process for a function call, once it has imported everything.

    Raises `EngineError` where the fork server is gone.
    """
    start_fork_server()
    context = multiprocessing.get_context("forkserver")
    process = context.Process(target=function, args=arguments, name=name, daemon=True)
    try:
        process.start()
    except (EOFError, ConnectionError):
        raise EngineError(LOST) from None
    return process


def wait_for_fork_server() -> None:
    """Wait until it has imported everything. Raises `EngineError` where it is gone."""
    start_process(int, (), "nothing")


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _blocked(signals: tuple[signal.Signals, ...]) -> Iterator[None]:
    """The signals wait, and start out blocked in a process that is started inside."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
