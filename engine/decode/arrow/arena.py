"""Memory that the arrays of a result are built in, one buffer behind another, where the sink will read them.

A codec takes room for a buffer and fills it before anybody takes the next one, so whoever cannot tell
beforehand how many bytes it needs opens more than enough and keeps what it filled. What an array then is are
numbers: rows, nulls, and where its buffers stand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from engine.kernels.kernel import Bytes, Int32s
from engine.kernels.memory import PADDING

ALIGNMENT = 8
"""Of every buffer, as Arrow's own writer has it."""
Built = TypeVar("Built")


class ArenaFull(Exception):
    """A buffer of `size` bytes does not fit any more."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size = size


@dataclass(frozen=True, slots=True)
class ArrayParts:
    """An Arrow array in a room, in the order in which its schema is walked: parents before their children."""

    nodes: tuple[int, ...]
    """For each array its length and its number of nulls."""
    buffers: tuple[int, ...]
    """For each buffer where it starts, counted from the room's `base`, and its bytes; 0 and 0 for none."""


NO_BUFFER = (0, 0)


class Arena:
    """A number of bytes to hand out; `memory` starts at a multiple of `ALIGNMENT`."""

    def __init__(self, memory: Bytes) -> None:
        self.memory = memory[: len(memory) // ALIGNMENT * ALIGNMENT]
        self.base = 0
        """What the places of buffers are counted from: where a message's body starts."""
        self.end = 0
        """Where the next buffer starts, counted from the beginning of the memory."""

    def open(self, size: int) -> Bytes:
        """The next `size` bytes, uninitialised, and `PADDING` more; `keep` follows. Raises `ArenaFull`."""
        end = self.end + size + PADDING
        if end > len(self.memory):
            raise ArenaFull(size)
        return self.memory[self.end : end]

    def open_rest(self, most: int) -> Bytes:
        """All the bytes that there are, `most` at most, the last `PADDING` of them not to be kept."""
        end = min(len(self.memory), self.end + most + PADDING)
        if end < self.end + PADDING:
            raise ArenaFull(PADDING)
        return self.memory[self.end : end]

    def keep(self, size: int) -> tuple[int, int]:
        """Keep the first `size` bytes of what was opened; the buffer that they are."""
        start = self.end
        self.end = start + (size + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
        return start - self.base, size

    def take_offsets(self, rows: int) -> tuple[tuple[int, int], Int32s]:
        """A buffer for the offsets of `rows` variable values, to be filled. Raises `ArenaFull`."""
        size = 4 * (rows + 1)
        values = self.open(size)[:size].view(np.int32)
        return self.keep(size), values

    def put(self, content: Bytes) -> tuple[int, int]:
        """A buffer with that content. Raises `ArenaFull`."""
        size = len(content)
        self.open(size)[:size] = content
        return self.keep(size)


def in_own_room(size: int, build: Callable[[Arena], Built]) -> Built:
    """What `build` makes in memory of its own, of `size` bytes or as much more as it needs."""
    while True:
        try:
            return build(Arena(np.empty(size, np.uint8)))
        except ArenaFull as full:
            size = 2 * size + full.size
