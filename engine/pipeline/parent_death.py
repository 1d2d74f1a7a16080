"""Has the kernel kill this process when the one that started it ends: none lives on unseen.

For processes that hold nothing worth saving, and may be busy, or stuck, when that happens. Linux only.
"""

from __future__ import annotations

import ctypes
import signal
import sys

COMMAND_PROCESS = "BINLOG_ENGINE_COMMAND_PROCESS"
"""The environment variable that tells the fork server the process id of its command."""

_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Begin with that; a parent that has ended before goes unnoticed."""
    _send_at_parent_death(signal.SIGKILL)


def outlive_parent() -> None:
    """End that again."""
    _send_at_parent_death(0)


def _send_at_parent_death(number: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, number)
