"""Large files that were committed a while ago leave the page cache; the last ones stay, for readers.

What is in the page cache are record batches too small to be written past it, and what readers fetched.
Left to itself the kernel keeps all of it until memory is used up. Until then every page of a long load is a
new one, which a virtual machine may first have to get from its host, and then everything else on the machine
has lost its place in the cache.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from contextlib import suppress
from pathlib import Path

_KEPT_BYTES = 2 << 30
"""So much of what a reader may still want stays."""
_LARGE_FILE = 16 << 20
"""Smaller ones are left to the kernel: they are not worth a call each, nor being remembered."""


class CachedFiles:
    """The large files that were committed last; they must be on disk already."""

    def __init__(self) -> None:
        self._files: deque[tuple[Path, int]] = deque()
        self._bytes = 0

    def add(self, path: Path, size: int) -> None:
        """One more, for which the oldest may have to leave."""
        if size < _LARGE_FILE:
            return
        self._files.append((path, size))
        self._bytes += size
        while self._bytes > _KEPT_BYTES:
            oldest, size = self._files.popleft()
            self._bytes -= size
            # It may have been vacuumed, and nothing but speed depends on it.
            with suppress(OSError):
                _let_go(oldest)


def _let_go(path: Path) -> None:
    if sys.platform == "linux":
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)
