"""Memory that the processes of a run share, so that bulk bytes are handed on instead of copied.

One memory file holds a number of *slots*, each with room for a batch and for the result that it decodes to.
The network process hands them out: it receives straight into a free slot, the slot's number travels with the
batch and its result through ZeroMQ, and the sink's acknowledgement brings it back. So messages alone tell who
may touch a slot, and nothing in the memory itself does. Whatever finds no slot free, or does not fit into
one, goes as frames of its message.
"""

from __future__ import annotations

import mmap
import sys
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from engine.errors import EngineError
from engine.pipeline.slot_file import BATCH_ROOM, RESULT_ROOM, SLOT_BYTES, SlotFile

Bytes = NDArray[np.uint8]
_USUAL_BATCH, _USUAL_RESULT = 2 << 20, 3 << 20
"""Bytes of a slot that are used as soon as there is much to do."""
_MADV_POPULATE_WRITE = 23
"""Linux since 5.14; older ones refuse it."""


class Slots:
    """The slots, mapped into this process; without a file there are none."""

    def __init__(self, file: SlotFile | None = None) -> None:
        self.count = file.count if file else 0
        self._mapped = mmap.mmap(file.descriptor, file.count * SLOT_BYTES) if file else None
        self._memory = np.frombuffer(self._mapped or b"", np.uint8)

    def make_ready(self, slot: int) -> None:
        """Have the kernel hand out the memory that most batches need, which it would do page by page."""
        if self._mapped is not None and sys.platform == "linux":
            with suppress(OSError):
                for offset, size in ((0, _USUAL_BATCH), (BATCH_ROOM, _USUAL_RESULT)):
                    self._mapped.madvise(_MADV_POPULATE_WRITE, slot * SLOT_BYTES + offset, size)

    def batch(self, slot: int, size: int = BATCH_ROOM) -> Bytes:
        """The first bytes of a slot's room for a batch. Raises `EngineError` for what cannot be."""
        return self._part(slot, 0, BATCH_ROOM, 0, size)

    def result(self, slot: int, start: int = 0, size: int = RESULT_ROOM) -> Bytes:
        """Bytes of a slot's room for a result. Raises `EngineError` for what cannot be."""
        return self._part(slot, BATCH_ROOM, RESULT_ROOM, start, size)

    def _part(self, slot: int, offset: int, room: int, start: int, size: int) -> Bytes:
        if not (0 <= slot < self.count and 0 <= start <= start + size <= room):
            raise EngineError(
                f"a message names bytes {start} to {start + size} of slot {slot}, which there are not: "
                "this is a bug, please report it"
            )
        begin = slot * SLOT_BYTES + offset + start
        return self._memory[begin : begin + size]


class SlotPool:
    """Lends room for bytes: slots as long as there are any, memory of this process otherwise."""

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self._free = list(range(slots.count))

    def lend(self, size: int) -> tuple[Bytes, int | None]:
        """Room for `size` bytes, and the number of the slot that it is in, or null."""
        if not self._free or size > BATCH_ROOM:
            return np.empty(size, np.uint8), None
        # The one that came back last: the processor's cache may still hold some of it.
        slot = self._free.pop()
        return self._slots.batch(slot, size), slot

    @property
    def exhausted(self) -> bool:
        """There are slots, and all of them are lent."""
        return self._slots.count > 0 and not self._free

    def take_back(self, slot: int | None) -> None:
        """Nobody uses the slot any more; nothing to do where it is none."""
        if slot is not None:
            self._free.append(slot)
