"""Removes large, older data files from the page cache; the last committed ones stay in it for readers.

The page cache contains the record batches that are too small for direct I/O, and what readers have read.
Without this module the kernel keeps all of it until memory is full. Until then every page of a long load is
newly allocated, which in a virtual machine may need memory from the host; afterwards the cached pages of all
other programs are gone.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from contextlib import suppress
from pathlib import Path

_KEPT_BYTES = 2 << 30
"""The total size of the most recent files, in bytes, that stay in the page cache."""
_LARGE_FILE = 16 << 20
"""Smaller files, in bytes, are left to the kernel: a system call for each costs more than it gains."""


class CachedFiles:
    """The large files that were committed last; their content must be on disk already."""

    def __init__(self) -> None:
        self._files: deque[tuple[Path, int]] = deque()
        self._bytes = 0

    def add(self, path: Path, size: int) -> None:
        """Add a committed file; the oldest ones beyond `_KEPT_BYTES` are removed from the page cache."""
        if size < _LARGE_FILE:
            return
        self._files.append((path, size))
        self._bytes += size
        while self._bytes > _KEPT_BYTES:
            oldest, size = self._files.popleft()
            self._bytes -= size
            # `vacuum` may have deleted the file, and only speed depends on this call.
            with suppress(OSError):
                _drop_from_page_cache(oldest)


def _drop_from_page_cache(path: Path) -> None:
    if sys.platform == "linux":
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)
