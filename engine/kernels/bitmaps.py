"""Bitmaps in events: one bit per column, the lowest bit of each byte first."""

from __future__ import annotations

import numpy as np

from engine.kernels.kernel import Bytes, kernel

_BITS = np.array([byte.bit_count() for byte in range(256)])
"""Number of set bits per byte value."""


@kernel
def count_bits(data: Bytes, at: int, columns: int) -> int:
    """The number of set bits in the bitmap of `columns` columns at `at`."""
    count = np.int64(0)
    for offset in range(at, at + (columns >> 3)):
        count += _BITS[data[offset]]
    if columns & 7:
        count += _BITS[data[at + (columns >> 3)] & ((1 << (columns & 7)) - 1)]
    return int(count)
