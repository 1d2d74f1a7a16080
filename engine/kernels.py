"""What every compiled kernel shares: how kernels are compiled, and little-endian reads.

Kernels are numba functions without Python objects, compiled once and cached on disk. They never trust a
length: whoever calls a read below has checked that the bytes are there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import int64
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]

kernel: Callable[..., Any] = numba.njit(cache=True, nogil=True, error_model="numpy")
"""Decorator: compile to machine code on first use, keep the code on disk for the next process."""


@kernel
def read_u16(data: Bytes, at: int) -> int:
    """Two bytes, little-endian, as a signed 64-bit number."""
    return int64(data[at]) | (int64(data[at + 1]) << 8)


@kernel
def read_u24(data: Bytes, at: int) -> int:
    """Three bytes, little-endian, as a signed 64-bit number."""
    return int64(data[at]) | (int64(data[at + 1]) << 8) | (int64(data[at + 2]) << 16)


@kernel
def read_u32(data: Bytes, at: int) -> int:
    """Four bytes, little-endian, as a signed 64-bit number."""
    return read_u16(data, at) | (read_u16(data, at + 2) << 16)


@kernel
def read_u48(data: Bytes, at: int) -> int:
    """Six bytes, little-endian, as a signed 64-bit number."""
    return read_u32(data, at) | (read_u16(data, at + 4) << 32)


@kernel
def read_u64(data: Bytes, at: int) -> int:
    """Eight bytes, little-endian, as a signed 64-bit number (the top bit becomes the sign)."""
    return read_u32(data, at) | (read_u32(data, at + 4) << 32)


@kernel
def copy_within(data: Bytes, source: int, target: int, size: int) -> None:
    """Move `size` bytes towards the front of the same array; the ranges may overlap (target < source)."""
    for i in range(size):
        data[target + i] = data[source + i]
