"""Whether bytes are UTF-8: compared with Python's decoder, at every offset in a step and across two."""

from __future__ import annotations

from itertools import product

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.decode.columns.text.utf8_check import is_utf8
from engine.kernels.memory import VECTOR_SIZE, address_of

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


def valid(texts: list[bytes]) -> list[bool]:
    return _all_valid(
        np.frombuffer(b"".join(texts), np.uint8), np.cumsum([len(text) for text in texts])
    ).tolist()


def is_valid(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


@pytest.mark.parametrize("before", [0, 2, VECTOR_SIZE, VECTOR_SIZE + 1, VECTOR_SIZE + 2, VECTOR_SIZE + 3])
def test_every_edge_of_the_table(before: int) -> None:
    """Four bytes, each at every edge, at the beginning, across two steps, and in the middle of one."""
    texts = [
        b"a" * before + bytes(four) + b"a" * 40 for four in product(EDGES[::2], EDGES, EDGES, EDGES[1::2])
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
