"""Has the operating system's kernel kill this process when its parent ends, so that none is left running.

For processes without state to save, which may be busy or stuck when the parent ends. Linux only.
"""

from __future__ import annotations

import ctypes
import signal
import sys

COMMAND_PROCESS = "BINLOG_ENGINE_COMMAND_PROCESS"
"""The environment variable with the process id of the command, for the fork server."""

_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Kill this process when its parent ends; no effect if it has already ended."""
    _send_at_parent_death(signal.SIGKILL)


def outlive_parent() -> None:
    """Undo `die_with_parent`."""
    _send_at_parent_death(0)


def _send_at_parent_death(number: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, number)
