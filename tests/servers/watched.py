"""A child process that does not outlive us, however we die, nor does its folder.

A watchdog beside it reads from a pipe that only we hold open. After a line, it ends; when the pipe closes
without one we have died, and it kills the process and removes the folder.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

WATCHDOG = 'read -r line || { kill -KILL "$0"; rm -rf "$1"; }'
END_SECONDS = 60


class WatchedProcess:
    """Started at once; its output goes to the end of the file `log`."""

    def __init__(self, command: Sequence[str], folder: Path, log: Path) -> None:
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
        self.pid = self._process.pid
        self._watchdog = subprocess.Popen(
            ["sh", "-c", WATCHDOG, str(self.pid), str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    @property
    def status(self) -> int | None:
        """The exit status as subprocess gives it, None while the process runs."""
        return self._process.poll()

    def end(self, how: signal.Signals) -> None:
        """Send the signal, if the process still runs, and wait; one that will not go is killed."""
        self._process.send_signal(how)
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._watchdog.communicate(b"ended\n")
