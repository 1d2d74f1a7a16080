"""The decorators that compile kernels, and little-endian reads for them.

Kernels are numba functions without Python objects, compiled once and cached on disk. The reads below do not
check bounds: a kernel checks every length before it reads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from engine.kernels.bounds import CHECKS_BOUNDS, check_range
from engine.kernels.stored_code import keep_compiled

Bytes = NDArray[np.uint8]
Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]


EVERY_KERNEL: list[Any] = []
"""Every function that `kernel` has decorated."""


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: compile to machine code on first use, and store the code on disk for later processes."""
    compiled = _kept(function)
    EVERY_KERNEL.append(compiled)
    return compiled


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator for a function that a kernel calls once per event: compiled into every kernel that calls it.

    A call that is not inlined counts references to its arrays, which takes longer than such a function does.
    Called from Python, it is a kernel like the others.
    """
    return _kept(function, inline="always")


def _kept(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    dispatcher = numba.njit(nogil=True, error_model="numpy", **options)(function)
    keep_compiled(dispatcher)
    return dispatcher


def _loader(bits: int) -> Callable[..., Any]:
    """The code generator of an intrinsic that reads a little-endian number of `bits` bits at an offset."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        word, number = ir.IntType(64), ir.IntType(bits)
        if CHECKS_BOUNDS:
            check_range(context, builder, arguments[1], word(bits // 8), array.nitems)
        pointer = builder.gep(array.data, [arguments[1]])
        loaded = builder.load(builder.bitcast(pointer, number.as_pointer()), align=1)
        return loaded if bits == 64 else builder.zext(loaded, word)

    return generate


@intrinsic
def load_word(typing_context: Any, data: Any, offset: Any) -> Any:
    """The eight bytes at `offset` of a byte array, little-endian, as uint64; bounds are not checked."""
    return types.uint64(data, types.intp), _loader(64)


@intrinsic
def _load_8(typing_context: Any, data: Any, offset: Any) -> Any:
    return types.int64(data, types.intp), _loader(8)


@intrinsic
def _load_16(typing_context: Any, data: Any, offset: Any) -> Any:
    return types.int64(data, types.intp), _loader(16)


@intrinsic
def _load_32(typing_context: Any, data: Any, offset: Any) -> Any:
    return types.int64(data, types.intp), _loader(32)


@kernel
def read_u16(data: Bytes, at: int) -> int:
    """Two bytes, little-endian, as a signed 64-bit number."""
    return int(_load_16(data, at))


@kernel
def read_u24(data: Bytes, at: int) -> int:
    """Three bytes, little-endian, as a signed 64-bit number."""
    return int(_load_16(data, at) | (_load_8(data, at + 2) << 16))


@kernel
def read_u32(data: Bytes, at: int) -> int:
    """Four bytes, little-endian, as a signed 64-bit number."""
    return int(_load_32(data, at))


@kernel
def read_u48(data: Bytes, at: int) -> int:
    """Six bytes, little-endian, as a signed 64-bit number."""
    return int(_load_32(data, at) | (_load_16(data, at + 4) << 32))


@kernel
def read_u64(data: Bytes, at: int) -> int:
    """Eight bytes, little-endian, as a signed 64-bit number (the top bit becomes the sign)."""
    return int(_load_32(data, at) | (_load_32(data, at + 4) << 32))


@kernel
def copy_within(data: Bytes, source: int, target: int, size: int) -> None:
    """Move `size` bytes towards the front of the same array; the ranges may overlap (target < source)."""
    for i in range(size):
        data[target + i] = data[source + i]
