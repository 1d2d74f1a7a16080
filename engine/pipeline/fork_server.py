"""The fork server: the process that child processes are forked from, after it has imported what they need.

This module imports few others, so that the fork server starts before the command imports its own modules.
Several threads may start processes and watch them, each its own.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from typing import Any

from engine.errors import EngineError
from engine.pipeline.import_path import same_engine
from engine.pipeline.parent_death import COMMAND_PROCESS
from engine.pipeline.private_folder import private_folder
from engine.pipeline.stop_signals import signals_blocked

LOST = (
    "the process that all others are forked from is gone (out of memory?): start the engine again, it "
    "continues from its last commit"
)
EXIT_CODE_LOST = 255
"""The exit code that multiprocessing reports for a child if the fork server, which knows it, is gone."""

_PRELOADED = [
    "engine.pipeline.fork_server_life",
    "engine.pipeline.without_pandas",
    "engine.commands.fork_server_preload",
]
_OPEN_FILES = 65536
"""The soft limit of file descriptors, as far as the hard one allows it. The usual one, 1024, is for programs
that call `select`; a fleet of 60 sources needs more."""
_LONGEST_SOCKET_PATH = 107
_SOCKET_NAME_BYTES = 32
"""Bytes that the private folder's and a socket's name add to the folder for temporary files."""

_lock = threading.RLock()
"""Held to start a process and to read an exit code: multiprocessing reads those of all processes when one is
started, and of two threads that read the same one, the second would take the fork server for lost."""


class ForkedProcess:
    """A process that was forked from the fork server."""

    def __init__(self, process: BaseProcess) -> None:
        self._process = process
        assert process.pid is not None
        self.pid = process.pid
        self.sentinel = int(process.sentinel)
        """Becomes readable when the process has exited."""

    @property
    def exitcode(self) -> int | None:
        """None while it runs; `EXIT_CODE_LOST` if the fork server is gone."""
        with _lock:
            return self._process.exitcode

    def is_alive(self) -> bool:
        """Whether it runs."""
        return self.exitcode is None

    def terminate(self) -> None:
        """Send SIGTERM, if it runs."""
        with _lock:
            self._process.terminate()

    def kill(self) -> None:
        """Send SIGKILL, if it runs."""
        with _lock:
            self._process.kill()

    def join(self) -> None:
        """Wait until it has exited."""
        wait([self.sentinel])
        with _lock:
            self._process.join()


def start_fork_server() -> None:
    """Start the fork server unless it runs; it imports its modules in parallel with the caller.

    Raises `EngineError` if there is no folder for sockets, or its name is too long.
    """
    _allow_open_files()
    multiprocessing.get_context("forkserver").set_forkserver_preload(_PRELOADED)
    with _environment({**same_engine(), COMMAND_PROCESS: str(os.getpid())}):
        # Started first, because starting it unblocks SIGINT and SIGTERM.
        with signals_blocked():
            resource_tracker.ensure_running()
        # A signal that raised an exception here would leave files in the private folder.
        with signals_blocked():
            _check_folder()
            private_folder()
            forkserver.ensure_running()


def _allow_open_files() -> None:
    """Raise the limit of this process, which those that it starts inherit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= soft < _OPEN_FILES:
        allowed = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(_OPEN_FILES, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))


def _check_folder() -> None:
    try:
        folder = tempfile.gettempdir()
    except OSError:
        raise EngineError(
            "there is no folder for temporary files that this user can write to: set TMPDIR to one"
        ) from None
    longest = _LONGEST_SOCKET_PATH - _SOCKET_NAME_BYTES
    if len(os.fsencode(folder)) > longest:
        raise EngineError(
            f"the name of the folder for temporary files, {folder}, is too long for sockets in it: set "
            f"TMPDIR to one of at most {longest} bytes, such as /tmp"
        )


def start_process(function: Callable[..., object], arguments: tuple[Any, ...], name: str) -> ForkedProcess:
    """Fork a process for a function call from the fork server, after that has imported everything.

    Raises `EngineError` if the fork server is gone.
    """
    with _lock:
        start_fork_server()
        context = multiprocessing.get_context("forkserver")
        process = context.Process(target=function, args=arguments, name=name, daemon=True)
        try:
            process.start()
        except (EOFError, ConnectionError):
            raise EngineError(LOST) from None
        return ForkedProcess(process)


def wait_for_fork_server() -> None:
    """Wait until the fork server has imported everything. Raises `EngineError` if it is gone."""
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
