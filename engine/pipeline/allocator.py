"""Configures the C library's allocator to keep freed memory for the next batch.

By default it returns large freed blocks to the operating system's kernel, which clears every page when the
memory is allocated again. Decoders would pay for that at every batch, since they allocate the same sizes.
"""

from __future__ import annotations

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Parameters of `mallopt` in glibc's malloc.h; other C libraries do not have this function."""
_KEPT_BYTES = 64 << 20
_LARGEST_KEPT = 32 << 20
"""Blocks from this size on are always returned; this is glibc's maximum."""


def keep_freed_memory() -> None:
    """Let this process keep up to `_KEPT_BYTES` of freed memory."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
        mallopt(_MMAP_THRESHOLD, _LARGEST_KEPT)
