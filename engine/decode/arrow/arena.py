"""An arena: it hands out the memory of a record batch's buffers, one after the other.

Python reserves a buffer, fills it and keeps it before the next buffer is reserved; kernels build in the
memory itself, from the arena's end on. The resulting array is described by numbers: its rows, its nulls, and
the offsets and sizes of its buffers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np

from engine.kernels.kernel import Bytes, Int32s
from engine.kernels.memory import PADDING

ALIGNMENT = 8
"""Of every buffer, in bytes; Arrow's own writer uses the same."""
SMALL_ROOM = 1 << 16
"""What a message may need in bytes besides the buffer for which there was no room."""
Built = TypeVar("Built")


class ArenaFull(Exception):
    """The arena has no space left for a buffer of `size` bytes."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size = size


class ArrayParts(NamedTuple):
    """An Arrow array in an arena, depth first as in its schema: parents before their children."""

    nodes: tuple[int, ...]
    """For each array its length and its number of nulls."""
    buffers: tuple[int, ...]
    """For each buffer its offset from the arena's `base` and its size in bytes; 0 and 0 if there is none."""


NO_BUFFER = (0, 0)


class Arena:
    """Hands out `memory`, which starts at a multiple of `ALIGNMENT`."""

    def __init__(self, memory: Bytes) -> None:
        self.memory = memory[: len(memory) // ALIGNMENT * ALIGNMENT]
        self.base = 0
        """The offset from which those of buffers count: the start of a message's body."""
        self.end = 0
        """The offset of the next buffer, counted from the start of the memory."""

    def reserve(self, size: int) -> Bytes:
        """The next `size` bytes, uninitialised, and `PADDING` more; call `keep` next. Raises `ArenaFull`."""
        end = self.end + size + PADDING
        if end > len(self.memory):
            raise ArenaFull(size)
        return self.memory[self.end : end]

    def keep(self, size: int) -> tuple[int, int]:
        """Keep the first `size` reserved bytes as a buffer; its offset from `base` and its size."""
        start = self.end
        self.end = start + (size + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
        return start - self.base, size

    def allocate_offsets(self, rows: int) -> tuple[tuple[int, int], Int32s]:
        """A buffer for the offsets of `rows` variable values, and the array to fill. Raises `ArenaFull`."""
        size = 4 * (rows + 1)
        values = self.reserve(size)[:size].view(np.int32)
        return self.keep(size), values

    def append(self, content: Bytes) -> tuple[int, int]:
        """A buffer with a copy of that content. Raises `ArenaFull`."""
        size = len(content)
        self.reserve(size)[:size] = content
        return self.keep(size)


def in_own_arena(size: int, build: Callable[[Arena], Built]) -> Built:
    """What `build` returns for a new arena of `size` bytes; retried with a larger one as often as needed."""
    while True:
        try:
            return build(Arena(np.empty(size, np.uint8)))
        except ArenaFull as full:
            size = 2 * size + full.size
