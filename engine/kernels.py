"""What every compiled kernel shares: how kernels are compiled, and little-endian reads.

Kernels are numba functions without Python objects, compiled once and cached on disk. They never trust a
length: whoever calls a read below has checked that the bytes are there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import int64, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from engine.bounds import CHECKS_BOUNDS, check_range
from engine.kernel_cache import keep_compiled

Bytes = NDArray[np.uint8]
Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: compile to machine code on first use, keep the code on disk for the next process."""
    keep_compiled(function)
    return numba.njit(cache=True, nogil=True, error_model="numpy")(function)


@intrinsic
def load_word(typing_context: Any, data: Any, offset: Any) -> Any:
    """The eight bytes at `offset` of a byte array, little-endian, as uint64; no check of bounds."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        if CHECKS_BOUNDS:
            word = ir.IntType(64)
            check_range(context, builder, arguments[1], word(8), array.nitems)
        pointer = builder.gep(array.data, [arguments[1]])
        return builder.load(builder.bitcast(pointer, ir.IntType(64).as_pointer()), align=1)

    return types.uint64(data, types.intp), generate


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
