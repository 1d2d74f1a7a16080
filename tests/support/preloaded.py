"""Runs of the command that begin with its modules and kernels loaded.

A start takes two Python processes that import hundreds of modules, and one of them loads all compiled
kernels: a second or more of processor time, which is most of what a short run costs, and tests start
thousands of runs. So each process of tests has a *launcher* (`tests/support/launcher.py`), which does it once
and forks the commands. Tests of what happens until the imports are done start the command as users do.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import select
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support import launcher

SWITCH = "BINLOG_ENGINE_PRELOADED"
"""The environment variable that, set to 0, has every run start as users start it."""

_READ_AT_START = re.compile(r"LD_|MALLOC_|PYTHON|NUMBA_|XDG_CACHE_HOME$|HOME$|BINLOG_ENGINE_CHECK_BOUNDS$")
"""Environment variables that are read before the imports are done."""
_ENVIRONMENT = dict(os.environ)
"""The launcher's: this process's before any test has changed it."""
_LONGEST_REPORT = 64
_NO_EXIT_CODE = b"-9"
"""Instead of a report that does not come: its sender was killed."""


def can_be_preloaded(command: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Whether a launcher can run it: a script, with no option for Python but -P, in an environment that is
    the launcher's own as far as that is read before the imports are done.

    `command` is without its arguments.
    """
    return (
        tuple(command[:-1]) in ((), (sys.executable, "-P"))
        and environment.get(SWITCH) != "0"
        and _read_at_start(environment) == _read_at_start(_ENVIRONMENT)
    )


class PreloadedProcess:
    """A command in a session of its own, forked by the launcher; used as `subprocess.Popen` is."""

    def __init__(
        self,
        script: str,
        arguments: Sequence[str],
        folder: Path | None,
        environment: Mapping[str, str],
        outputs: tuple[int, int],
    ) -> None:
        """`outputs`: the descriptors of its standard output and standard error."""
        self.returncode: int | None = None
        """Its exit code, negative for the signal that killed it, once `poll` or `wait` has seen its end."""
        request = launcher.Request(script, [*arguments], str(folder or Path.cwd()), {**environment})
        self._reports, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            socket.send_fds(_launcher().control, [request.pack()], [theirs.fileno(), *outputs])
        self.pid = self._report()

    def poll(self) -> int | None:
        """Its exit code, if it has ended."""
        if self.returncode is None and self._has_report(0):
            self.returncode = self._report()
            self._reports.close()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, once it has ended. Raises `TimeoutError` after `timeout` seconds."""
        if self.returncode is None and not self._has_report(timeout):
            raise TimeoutError(f"the command did not end in {timeout} s")
        status = self.poll()
        assert status is not None
        return status

    def send_signal(self, number: int) -> None:
        """Send a signal, if it runs."""
        if self.poll() is None:
            # It may end between the two.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def _has_report(self, seconds: float | None) -> bool:
        return bool(select.select([self._reports], [], [], seconds)[0])

    def _report(self) -> int:
        return int(self._reports.recv(_LONGEST_REPORT) or _NO_EXIT_CODE)


def _read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if _READ_AT_START.match(name)}


class _Launcher:
    """A launcher, and the connection to it; it ends when the connection is closed."""

    def __init__(self) -> None:
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", launcher.__file__, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env=_ENVIRONMENT,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )


@functools.cache
def _launcher() -> _Launcher:
    """This process's launcher, started by the first call."""
    return _Launcher()
