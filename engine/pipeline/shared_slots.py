"""Memory that the processes of a run share, so that batches and results are not copied between them.

One memory file contains a number of *slots*, each with room for a batch and for the result of decoding it.
The network process receives directly into a free slot; the slot's number is sent with the batch and its
result through ZeroMQ, and the sink's acknowledgement returns it. Only the messages determine which process
may access a slot; the memory itself contains no state. A batch or result without a free slot, or too large
for one, is sent as frames of its message.
"""

from __future__ import annotations

import mmap
import sys
from collections.abc import Iterable
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from engine.errors import EngineError
from engine.pipeline.slot_file import BATCH_ROOM, RESULT_ROOM, SLOT_BYTES, SlotFile

Bytes = NDArray[np.uint8]
_USUAL_BATCH, _USUAL_RESULT = 2 << 20, 3 << 20
"""Bytes of a slot that a batch and a result use under load."""
_MADV_POPULATE_WRITE = 23
"""Linux since 5.14; older versions return an error."""


class Slots:
    """The slots, mapped into this process; none without a file."""

    def __init__(self, file: SlotFile | None = None) -> None:
        self.count = file.count if file else 0
        self._mapped = mmap.mmap(file.descriptor, file.count * SLOT_BYTES) if file else None
        self._memory = np.frombuffer(self._mapped or b"", np.uint8)

    def make_ready(self, slot: int) -> None:
        """Allocate at once the memory that most batches need, which the kernel would do page by page."""
        if self._mapped is not None and sys.platform == "linux":
            with suppress(OSError):
                for offset, size in ((0, _USUAL_BATCH), (BATCH_ROOM, _USUAL_RESULT)):
                    self._mapped.madvise(_MADV_POPULATE_WRITE, slot * SLOT_BYTES + offset, size)

    def batch(self, slot: int, size: int = BATCH_ROOM) -> Bytes:
        """The first bytes of a slot's room for a batch. Raises `EngineError` for an invalid slot or size."""
        return self._part(slot, 0, BATCH_ROOM, 0, size)

    def result(self, slot: int, start: int = 0, size: int = RESULT_ROOM) -> Bytes:
        """Bytes of a slot's room for a result. Raises `EngineError` for an invalid slot or range."""
        return self._part(slot, BATCH_ROOM, RESULT_ROOM, start, size)

    def _part(self, slot: int, offset: int, room: int, start: int, size: int) -> Bytes:
        if not (0 <= slot < self.count and 0 <= start <= start + size <= room):
            raise EngineError(
                f"a message names bytes {start} to {start + size} of slot {slot}, which do not exist: "
                "this is a bug, please report it"
            )
        begin = slot * SLOT_BYTES + offset + start
        return self._memory[begin : begin + size]


class SlotPool:
    """Lends memory for batches: a slot if one is free, memory of this process otherwise."""

    def __init__(self, slots: Slots, numbers: Iterable[int] = ()) -> None:
        """`numbers`: the slots to lend."""
        self._slots = slots
        self._free = list(numbers)
        self._has_slots = bool(self._free)

    def lend(self, size: int) -> tuple[Bytes, int | None]:
        """Memory for `size` bytes, and the number of the slot that it is in, or None."""
        if not self._free or size > BATCH_ROOM:
            return np.empty(size, np.uint8), None
        # The slot that was returned last: the processor's cache may still contain some of it.
        slot = self._free.pop()
        return self._slots.batch(slot, size), slot

    @property
    def exhausted(self) -> bool:
        """Whether there are slots, and all of them are lent."""
        return self._has_slots and not self._free

    def take_back(self, slot: int | None) -> None:
        """Make a slot that is no longer used free again; None is ignored."""
        if slot is not None:
            self._free.append(slot)
