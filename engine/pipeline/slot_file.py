"""The memory file of `shared_slots`, which the supervisor creates and passes to its children.

The file has no name and is in no folder: only processes that inherit its descriptor can access it, it is
freed with the last of them, and the limits of containers on `/dev/shm` do not apply to it.
"""

from __future__ import annotations

import fcntl
import os
import sys
import tempfile
from collections.abc import Callable
from multiprocessing.reduction import DupFd
from pathlib import Path
from typing import Any

from engine.dataclass import dataclass

BATCH_ROOM = 16 << 20
"""Bytes of a slot for a batch; most batches are smaller, and memory that is not accessed is not allocated."""
RESULT_ROOM = 32 << 20
"""Bytes of a slot for a result."""
SLOT_BYTES = BATCH_ROOM + RESULT_ROOM


@dataclass(frozen=True, slots=True)
class SlotFile:
    """The memory file; it can be passed to a child process only when that starts."""

    descriptor: int
    count: int
    """Number of slots."""

    @classmethod
    def create(cls, count: int) -> SlotFile:
        """A new file, which no other user can open; the caller closes its descriptor."""
        if sys.platform == "linux":
            descriptor = os.memfd_create("binlog-slots", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        else:
            descriptor, path = tempfile.mkstemp()
            Path(path).unlink()
        os.ftruncate(descriptor, count * SLOT_BYTES)
        if sys.platform == "linux":
            # No process that has the descriptor can truncate the memory that the others have mapped.
            seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
            fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
        return cls(descriptor, count)

    def close(self) -> None:
        """Close the descriptor; mappings stay valid."""
        os.close(self.descriptor)

    def __reduce__(self) -> tuple[Callable[..., SlotFile], tuple[Any, ...]]:
        return _inherited, (DupFd(self.descriptor), self.count)


def _inherited(descriptor: Any, count: int) -> SlotFile:
    return SlotFile(descriptor.detach(), count)
