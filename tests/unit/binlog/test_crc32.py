"""The CRC-32 kernel against zlib's, with and without carry-less multiplication."""

from __future__ import annotations

import os
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.binlog.crc32 import crc32
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


WITH_TABLES_ALONE = """
import platform, sys, zlib
import numba, numpy as np
platform.machine = lambda: "another"
import engine.binlog.crc32 as module
assert not module._MULTIPLIES
data = bytes(range(256)) * 3
for end in range(1, 300):
    assert int(module.crc32(np.frombuffer(data, np.uint8), 1, end)) == zlib.crc32(data[1:end]), end
"""


def test_machines_without_carry_less_multiplication(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", WITH_TABLES_ALONE],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        cwd=PROJECT,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
