"""Copies of rows that wait in the sink: their content, their place within a page, and what is used again."""

from __future__ import annotations

import mmap

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.output.direct_io import DIRECT_PAGE
from engine.sink.part_memory import PartMemory


def address(content: memoryview) -> int:
    return int(np.frombuffer(content, np.uint8).ctypes.data)


@given(st.lists(st.tuples(st.integers(0, 2 * DIRECT_PAGE), st.integers(1, 3_000_000)), max_size=6))
def test_copies_have_the_content_and_the_place_within_a_page(sizes: list[tuple[int, int]]) -> None:
    memory = PartMemory()
    source = mmap.mmap(-1, 4_000_000)
    frames = [memoryview(source)[start : start + size] for start, size in sizes]
    copies = []
    for number, frame in enumerate(frames):
        frame[0], frame[-1] = number, number + 1
        copies.append(memory.copy(frame))
        assert copies[-1].content == frame
        assert address(copies[-1].content) % DIRECT_PAGE == address(frame) % DIRECT_PAGE
    for number, (copied, frame) in enumerate(zip(copies, frames, strict=True)):
        assert (copied.content[0] == number or len(frame) == 1) and copied.content[-1] == number + 1
        assert not copied.content.readonly


def test_what_was_given_back_is_used_again_if_it_is_large_enough() -> None:
    memory = PartMemory()
    small, large = memory.copy(bytes(1000)), memory.copy(bytes(3 << 20))
    memory.give_back(large)
    memory.give_back(small)
    assert memory.copy(bytes(2 << 20)).block is large.block
    assert memory.copy(bytes(2 << 20)).block is not large.block
    assert memory.copy(bytes(10)).block is small.block


def test_little_is_kept() -> None:
    memory = PartMemory()
    copies = [memory.copy(bytes(20 << 20)) for _ in range(4)]
    for copied in copies:
        memory.give_back(copied)
    again = [memory.copy(bytes(20 << 20)).block for _ in range(4)]
    # A block is slightly larger than what it has room for.
    assert sum(any(block is copied.block for copied in copies) for block in again) == 3
    memory.clear()
    assert all(memory.copy(bytes(1000)).block is not copied.block for copied in copies)
