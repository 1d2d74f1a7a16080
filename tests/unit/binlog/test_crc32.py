"""The CRC-32 kernel against zlib's, with and without carry-less multiplication, and of 16 bytes at once."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.binlog.crc32 import crc32
from engine.kernels.baseline import baseline
from tests import PROJECT

PATTERN = bytes((i * 37 + i // 251) & 0xFF for i in range(4096))


def checksum(data: bytes, start: int, end: int) -> int:
    # Exactly as large as it is, so that a word read beyond its end would be another array's.
    return int(crc32(np.frombuffer(data, np.uint8), start, end))


@given(st.binary(max_size=400), st.integers(0, 64), st.integers(0, 64))
def test_equals_zlib(content: bytes, before: int, after: int) -> None:
    data = bytes(before) + content + b"\xff" * after
    assert checksum(data, before, before + len(content)) == zlib.crc32(content)


def test_every_length_up_to_where_all_steps_have_repeated() -> None:
    for start in (3, 16, 21):
        for size in range(600):
            expected = zlib.crc32(PATTERN[start : start + size])
            assert checksum(PATTERN, start, start + size) == expected, (start, size)


def test_long_input() -> None:
    data = PATTERN * 1000
    for end in (len(data), len(data) - 1, len(data) - 63):
        assert checksum(data, 1, end) == zlib.crc32(data[1:end])
        assert checksum(data, 17, end) == zlib.crc32(data[17:end])


EVERY_SIZE = """
import platform, sys, zlib
import numba, numpy as np
platform.machine = lambda: sys.argv[1]
import engine.binlog.crc32 as module
assert module._MULTIPLIES == (sys.argv[1] == "x86_64")
data = bytes(range(256)) * 3
for end in range(17, 600):
    assert int(module.crc32(np.frombuffer(data, np.uint8), 16, end)) == zlib.crc32(data[16:end]), end
"""


def run_every_size(machine: str, cache: Path, **environment: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", EVERY_SIZE, machine],
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache), **environment},
        cwd=PROJECT,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr


def test_machines_without_carry_less_multiplication(tmp_path: Path) -> None:
    run_every_size("another", tmp_path)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="others do not multiply")
def test_code_for_processors_that_multiply_16_bytes_at_once(tmp_path: Path) -> None:
    """The kernels of wheels, whatever this processor has."""
    least = baseline()
    assert least is not None
    run_every_size("x86_64", tmp_path, NUMBA_CPU_NAME=least.name, NUMBA_CPU_FEATURES=least.flags)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="others do not multiply")
def test_checked_reads(tmp_path: Path) -> None:
    run_every_size("x86_64", tmp_path, BINLOG_ENGINE_CHECK_BOUNDS="1")
