"""The C library's allocator, told not to give memory back that the next batch needs again.

By default it returns large freed blocks to the kernel, which has to clear every page of them when they come
back: one batch after the other, for processes that allocate the same sizes all the time.
"""

from __future__ import annotations

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Parameters of `mallopt` in glibc's malloc.h; other C libraries have no such function."""
_KEPT_BYTES = 64 << 20
_LARGEST_KEPT = 32 << 20
"""Blocks from this size on are given back always; more, glibc does not take."""


def keep_freed_memory() -> None:
    """Have this process keep some tens of megabytes that it has freed."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
        mallopt(_MMAP_THRESHOLD, _LARGEST_KEPT)
