"""Whether bytes are UTF-8: compared with Python's decoder, at every offset in a step and across two.

What is true of a text is true of its copy, and both forms of a step are tested.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from itertools import product

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.decode.columns.text.utf8_check import STEPPED, copy_utf8, is_utf8
from engine.kernels.memory import VECTOR_SIZE, address_of
from tests import PROJECT

EDGES: tuple[int, ...] = (
    0x00,
    0x7F,
    0x80,
    0x8F,
    0x90,
    0x9F,
    0xA0,
    0xBF,
    0xC0,
    0xC1,
    0xC2,
    0xDF,
    0xE0,
    0xE1,
    0xEC,
    0xED,
    0xEE,
    0xEF,
)
EDGES += (0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF)
"""First and last bytes of every range of Unicode's table 3-7."""


@numba.njit
def _all_valid(data: np.ndarray, ends: np.ndarray) -> np.ndarray:
    text = address_of(data)
    valid = np.empty(ends.size, np.bool_)
    start = 0
    for index in range(ends.size):
        valid[index] = is_utf8(text, start, ends[index])
        start = ends[index]
    return valid


@numba.njit
def _copy_all(data: np.ndarray, ends: np.ndarray, out: np.ndarray) -> np.ndarray:
    """As `_all_valid`, while texts are copied: the shorter ones by numpy, after those around them."""
    text, to = address_of(data), address_of(out)
    valid = np.empty(ends.size, np.bool_)
    start = 0
    for index in range(ends.size):
        if ends[index] - start >= STEPPED:
            valid[index] = copy_utf8(to, start + 5, text, start, ends[index])
        else:
            valid[index] = is_utf8(text, start, ends[index])
        start = ends[index]
    start = 0
    for end in ends:
        if end - start < STEPPED:
            out[start + 5 : end + 5] = data[start:end]
        start = end
    return valid


def valid(texts: list[bytes]) -> list[bool]:
    data, ends = np.frombuffer(b"".join(texts), np.uint8), np.cumsum([len(text) for text in texts])
    copied = np.full(data.size + 10, 0xFF, np.uint8)
    checked = _all_valid(data, ends).tolist()
    assert _copy_all(data, ends, copied).tolist() == checked
    assert copied.tobytes() == b"\xff" * 5 + data.tobytes() + b"\xff" * 5
    return checked


def is_valid(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


@pytest.mark.parametrize(
    ("before", "after"),
    [(before, 40) for before in (0, 1, 2, *range(VECTOR_SIZE, VECTOR_SIZE + 4))]
    + [(before, after) for before in (VECTOR_SIZE, 2 * VECTOR_SIZE + 1) for after in range(5)],
)
def test_every_edge_of_the_table(before: int, after: int) -> None:
    """Four bytes, each at every edge: at the beginning, across two steps, in one, at the end."""
    texts = [
        b"a" * before + bytes(four) + b"a" * after for four in product(EDGES, EDGES, EDGES[::2], EDGES[1::2])
    ]
    assert valid(texts) == [is_valid(text) for text in texts]


@given(st.lists(st.text(max_size=60).map(str.encode), min_size=1, max_size=5), st.data())
def test_a_byte_that_was_changed_or_lost(texts: list[bytes], data: st.DataObject) -> None:
    changed = []
    for text in texts:
        place = data.draw(st.integers(0, len(text)))
        instead = data.draw(st.binary(max_size=2))
        changed.append(text[:place] + instead + text[place + data.draw(st.integers(0, 2)) :])
    assert valid(texts) == [True] * len(texts)
    assert valid(changed) == [is_valid(text) for text in changed]


def test_a_character_that_is_cut_off() -> None:
    """At the end of any number of bytes, and with others of its kind before it."""
    for character in ("ä", "漢", "🐬"):
        whole = character.encode()
        texts = [
            fill * count + whole[:kept]
            for fill in (b"a", whole)
            for count in range(80)
            for kept in range(1, len(whole))
        ]
        assert not any(valid(texts))


OTHER_KERNELS = {"BINLOG_ENGINE_CHECK_BOUNDS": "1"}
if platform.machine() == "x86_64":
    # The least of all: no look-ups in tables.
    OTHER_KERNELS |= {"NUMBA_CPU_NAME": "x86-64", "NUMBA_CPU_FEATURES": "+sse2"}


@pytest.mark.skipif(OTHER_KERNELS.items() <= os.environ.items(), reason="this is the other process")
def test_kernels_without_tables_and_with_checked_bounds() -> None:
    """All of the above, in another process."""
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__],
        env=os.environ | OTHER_KERNELS,
        cwd=PROJECT,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stdout
