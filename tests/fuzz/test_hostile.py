"""Damaged binlogs never crash, hang or mislead the engine: the result is valid, or a located error.

Each batch of cases runs in a process of its own, so that a crash fails one test but ends no others: once with
kernels as users run them, once with kernels that check every access to memory. `make fuzz` runs for longer.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.kernels.bounds import CHECKS_BOUNDS
from tests import PROJECT
from tests.fuzz.hostile import load

SECONDS = 240
"""Most for a batch of cases."""
SECONDS_TO_COMPILE = 900
"""Most for all kernels with checks, which a fresh clone does not have: minutes on a machine that is busy."""


def run(arguments: list[str], checked: bool, seconds: float = SECONDS) -> subprocess.CompletedProcess[str]:
    """Python in a process of its own, which may take that long."""
    root = PROJECT
    environment = {
        **os.environ,
        "PYTHONPATH": str(root),
        "BINLOG_ENGINE_CHECK_BOUNDS": "1" if checked else "0",
    }
    return subprocess.run(
        [sys.executable, *arguments],
        env=environment,
        cwd=root,
        capture_output=True,
        text=True,
        timeout=seconds,
    )


@pytest.mark.timeout(SECONDS_TO_COMPILE + SECONDS + 60)
@pytest.mark.parametrize("checked", [False, True], ids=["as users run them", "checked"])
def test_damaged_binlogs(tmp_path: Path, checked: bool) -> None:
    compiled = run(["-m", "engine.commands.compile_kernels"], checked, SECONDS_TO_COMPILE)
    assert compiled.returncode == 0, compiled.stderr
    state = tmp_path / "case"
    # With checks, kernels take several times as long.
    cases = "100" if checked else "400"
    ended = run(["-m", "tests.fuzz.hostile", "--cases", cases, "--state", str(state)], checked)
    if ended.returncode:
        case = f"{load(state).description}, saved as {state}" if state.exists() else "before the first case"
        pytest.fail(f"exit code {ended.returncode} at {case}\n{ended.stderr}")


def test_damaged_binlogs_that_coverage_chooses(tmp_path: Path) -> None:
    state = tmp_path / "case"
    ended = run(["-m", "tests.fuzz.guided", "--seconds", "3", "--state", str(state)], checked=False)
    assert ended.returncode == 0, f"{ended.stderr}\n{state.exists() and load(state).description}"
    assert " kept: " in ended.stderr


OUT_OF_BOUNDS = """
import numpy as np
from numba import types
from engine.kernels.memory import address_of, copy, load_word, store_byte
from engine.kernels.typed import DATA, OUT, kernel
from engine.kernels.kernel import load_word as load_word_of, kernel as plain_kernel, read_u32

@kernel(types.uint64, DATA, types.int64)
def load(data, at):
    return load_word(address_of(data), at)

@kernel(types.void, OUT, types.int64)
def store(data, at):
    store_byte(address_of(data), at, 1)

@kernel(types.void, OUT, types.int64)
def move(data, size):
    copy(address_of(data), 0, address_of(data), 8, size)

@plain_kernel
def load_of(data, at):
    return load_word_of(data, at)

data = np.zeros(16, np.uint8)
for kernel, last in ((load, 8), (store, 15), (move, 8), (load_of, 8), (read_u32, 12)):
    kernel(data, last)
    for at in (last + 1, *([-1] if kernel is not read_u32 else [])):
        try:
            kernel(data, at)
        except IndexError:
            continue
        raise SystemExit(f"{kernel} left its array at {at}, unnoticed")
"""


def test_checked_kernels_notice_that_they_leave_an_array(tmp_path: Path) -> None:
    """Otherwise the test above would show nothing."""
    script = tmp_path / "leaves_arrays.py"
    script.write_text(OUT_OF_BOUNDS)
    ended = run([str(script)], checked=True)
    assert ended.returncode == 0, ended.stderr


def test_users_get_kernels_without_checks() -> None:
    assert not CHECKS_BOUNDS
