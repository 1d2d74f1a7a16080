"""The memory file of `shared_slots`, as the supervisor makes it and hands it to its children.

Memory that belongs to no folder and no name: it is private to those who were given its descriptor, goes with
the last of them, and is not subject to the limits that containers put on `/dev/shm`.
"""

from __future__ import annotations

import fcntl
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.reduction import DupFd
from pathlib import Path
from typing import Any

BATCH_ROOM = 16 << 20
"""Bytes of a batch that fit into a slot; most are smaller, and memory that nobody touches costs nothing."""
RESULT_ROOM = 32 << 20
"""Bytes of its result."""
SLOT_BYTES = BATCH_ROOM + RESULT_ROOM


@dataclass(frozen=True, slots=True)
class SlotFile:
    """The memory file, as it is handed to a child process when that starts (and only then)."""

    descriptor: int
    count: int
    """Slots in it."""

    @classmethod
    def create(cls, count: int) -> SlotFile:
        """A new one, which no other user can open; the caller closes its descriptor."""
        if sys.platform == "linux":
            descriptor = os.memfd_create("binlog-slots", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        else:
            descriptor, path = tempfile.mkstemp()
            Path(path).unlink()
        os.ftruncate(descriptor, count * SLOT_BYTES)
        if sys.platform == "linux":
            # Nobody who holds it can pull the memory from under the others.
            seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
            fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
        return cls(descriptor, count)

    def close(self) -> None:
        """Close the descriptor; what is mapped stays."""
        os.close(self.descriptor)

    def __reduce__(self) -> tuple[Callable[..., SlotFile], tuple[Any, ...]]:
        return _inherited, (DupFd(self.descriptor), self.count)


def _inherited(descriptor: Any, count: int) -> SlotFile:
    return SlotFile(descriptor.detach(), count)
