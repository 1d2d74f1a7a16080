"""Memory for the rows of chunks that wait in the sink, used again for later chunks.

A copy begins at the same place within a page as what it is a copy of, so that its body can be written with
direct I/O like that of a message in a slot. New memory for each copy would take as long again as copying:
the operating system clears each page when it is first touched.
"""

from __future__ import annotations

import mmap

import numpy as np
from numpy.typing import NDArray

from engine.output.direct_io import DIRECT_PAGE
from engine.pipeline.message import Frame

_UNIT = 1 << 20
"""The sizes of blocks are multiples of this."""
_MOST_FREE = 64 << 20
"""Bytes of blocks that are kept for later copies."""
Block = NDArray[np.uint8]


class Copied:
    """A copy of a frame; `content` is valid until it is given back."""

    __slots__ = ("block", "content")

    def __init__(self, block: Block, content: memoryview) -> None:
        self.block = block
        self.content = content


class PartMemory:
    """Blocks of memory for copies; not for several threads."""

    def __init__(self) -> None:
        self._free: list[Block] = []
        self._free_bytes = 0

    def copy(self, frame: Frame) -> Copied:
        """A writable copy of a frame."""
        source = np.frombuffer(frame, np.uint8)
        start = source.ctypes.data % DIRECT_PAGE
        block = self._block(start + len(source))
        block[start : start + len(source)] = source
        return Copied(block, block[start : start + len(source)].data)

    def give_back(self, copied: Copied) -> None:
        """The copy is not used any more."""
        if self._free_bytes + len(copied.block) <= _MOST_FREE:
            self._free.append(copied.block)
            self._free_bytes += len(copied.block)

    def clear(self) -> None:
        """Return what is free to the operating system."""
        self._free.clear()
        self._free_bytes = 0

    def _block(self, size: int) -> Block:
        """The block that was given back last of those that are large enough; a new one if there is none."""
        for index in range(len(self._free) - 1, -1, -1):
            if len(self._free[index]) >= size:
                block = self._free.pop(index)
                self._free_bytes -= len(block)
                return block
        return np.frombuffer(mmap.mmap(-1, -(-size // _UNIT) * _UNIT), np.uint8)
