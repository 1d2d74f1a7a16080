"""No kernel touches memory outside of its cells' batch and its own buffers, whatever the bytes."""

from __future__ import annotations

import signal
import subprocess
import sys

from tests.fuzz.column_bounds import columns

OVERRUN = """
import ctypes
from tests.fuzz.column_bounds import guarded

array = guarded(b"abc", at_end=True)
print(ctypes.string_at(array.ctypes.data, array.size))
ctypes.string_at(array.ctypes.data, array.size + 1)
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=250)


def test_random_cells_of_every_type() -> None:
    result = run("-m", "tests.fuzz.column_bounds", "10")
    assert result.returncode == 0, result.stderr
    assert len(result.stdout.splitlines()) == 2 * len(columns())


def test_the_forbidden_pages_are_forbidden() -> None:
    result = run("-c", OVERRUN)
    assert result.returncode == -signal.SIGSEGV, result.stderr
