"""Unaligned loads, stores and copies at an address, for kernels.

A kernel gets the address of an array once (`address_of`) and accesses offsets from it. The caller has
checked every offset; with BINLOG_ENGINE_CHECK_BOUNDS=1 each access is checked as well (`bounds`).
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from engine.kernels.bounds import CHECKS_BOUNDS, check_range

PADDING = 128
"""Bytes that kernels may write past the end of a buffer: whole vectors are faster than an exact end."""
_BYTE = ir.IntType(8)

_WORD = ir.IntType(64)

VECTOR_SIZE = 32

VECTOR = ir.VectorType(_BYTE, VECTOR_SIZE)
"""What is copied or compared in one step."""

_WORTH_A_CALL = 256
"""Number of bytes from which memcpy is faster than a loop over vectors."""


@intrinsic
def address_of(typing_context: Any, array: Any) -> Any:
    """The memory address of a byte array's first byte, as int64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        content = context.make_array(signature.args[0])(context, builder, arguments[0])
        address = builder.ptrtoint(content.data, _WORD)
        if not CHECKS_BOUNDS:
            return address
        # The address of a pair of address and length, which `_pointer` reads.
        address_and_size = cgutils.alloca_once(builder, _WORD, size=2)
        builder.store(address, address_and_size)
        size = builder.mul(content.nitems, content.itemsize)
        builder.store(size, builder.gep(address_and_size, [_WORD(1)]))
        return builder.ptrtoint(address_and_size, _WORD)

    return types.int64(array), generate


@intrinsic
def _void_pointer(typing_context: Any, address: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], _BYTE.as_pointer())

    return types.voidptr(types.int64), generate


@numba.njit(inline="always")
def bytes_at(address: int, size: int) -> Any:
    """The `size` bytes at an address as an array, which does not keep their memory."""
    return numba.carray(_void_pointer(address), size, np.uint8)


def _pointer(context: Any, builder: Any, item: Any, address: Any, offset: Any, size: Any = None) -> Any:
    """A pointer to `size` bytes (those of `item` unless given) at `offset` from `address`."""
    if CHECKS_BOUNDS:
        address_and_size = builder.inttoptr(address, _WORD.as_pointer())
        length = builder.load(builder.gep(address_and_size, [_WORD(1)]))
        check_range(context, builder, offset, size or _WORD(item.width // 8), length)
        address = builder.load(address_and_size)
    return builder.inttoptr(builder.add(address, offset), item.as_pointer())


@intrinsic
def load_byte(typing_context: Any, address: Any, offset: Any) -> Any:
    """The byte at `offset` from `address`, as int64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.zext(builder.load(_pointer(context, builder, _BYTE, *arguments)), _WORD)

    return types.int64(types.int64, types.int64), generate


@intrinsic
def load_word(typing_context: Any, address: Any, offset: Any) -> Any:
    """The eight bytes at `offset` from `address`, little-endian, as uint64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(_pointer(context, builder, _WORD, *arguments), align=1)

    return types.uint64(types.int64, types.int64), generate


@intrinsic
def _prefetch(typing_context: Any, address: Any, offset: Any) -> Any:
    """Have the processor fetch the cache line at `offset` from `address`; reading it is not an access."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address, offset = arguments
        if not CHECKS_BOUNDS:
            pointer = builder.inttoptr(builder.add(address, offset), _BYTE.as_pointer())
            number = ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [pointer.type, number, number, number])
            function = builder.module.declare_intrinsic("llvm.prefetch", [pointer.type], kind)
            # For reading, into all levels of the cache, as data.
            builder.call(function, [pointer, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


_CACHE_LINE = 64


@numba.njit(inline="always")
def prefetch(address: int, start: int, end: int) -> None:
    """Have the processor fetch the bytes from `start` to `end` into its cache while it does something
    else."""
    for at in range(start, end, _CACHE_LINE):
        _prefetch(address, at)


def load_vector(context: Any, builder: Any, address: Any, offset: Any) -> Any:
    """Emit code that reads a `VECTOR` at `offset` from `address`; used by intrinsics."""
    pointer = _pointer(context, builder, VECTOR, address, offset, _WORD(VECTOR.count))
    return builder.load(pointer, align=1)


@intrinsic
def store_byte(typing_context: Any, address: Any, offset: Any, byte: Any) -> Any:
    """Write the lowest byte of int64 `byte` at `offset` from `address`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte = builder.trunc(arguments[2], _BYTE)
        builder.store(byte, _pointer(context, builder, _BYTE, *arguments[:2]))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


@intrinsic
def store_word(typing_context: Any, address: Any, offset: Any, word: Any) -> Any:
    """Write uint64 `word` as eight little-endian bytes at `offset` from `address`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store(arguments[2], _pointer(context, builder, _WORD, *arguments[:2]), align=1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.uint64), generate


@intrinsic
def copy(typing_context: Any, to: Any, to_offset: Any, start: Any, offset: Any, size: Any) -> Any:
    """memcpy: `size` bytes from `offset` from `start` to `to_offset` from `to`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        to, to_offset, start, offset, size = arguments
        target = _pointer(context, builder, _BYTE, to, to_offset, size)
        source = _pointer(context, builder, _BYTE, start, offset, size)
        cgutils.raw_memcpy(builder, target, source, size, 1)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 5), generate


@intrinsic
def copy_vector(typing_context: Any, to: Any, to_offset: Any, start: Any, offset: Any) -> Any:
    """Copy 32 bytes."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        to, to_offset, start, offset = arguments
        vector = load_vector(context, builder, start, offset)
        pointer = _pointer(context, builder, VECTOR, to, to_offset, _WORD(VECTOR.count))
        builder.store(vector, pointer, align=1)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 4), generate


@numba.njit(inline="always")
def copy_padded(to: int, to_offset: int, start: int, offset: int, size: int, end: int) -> None:
    """`copy`, faster for short content: writes up to `PADDING` bytes more, reads as many (before `end`)."""
    if size > _WORTH_A_CALL or offset + size + PADDING > end:
        copy(to, to_offset, start, offset, size)
    elif size <= VECTOR_SIZE:
        copy_vector(to, to_offset, start, offset)
    else:
        # In groups of several vectors, since the processor mispredicts a loop whose length varies.
        for first in range(0, size, PADDING):
            for at in range(first, first + PADDING, VECTOR_SIZE):
                copy_vector(to, to_offset + at, start, offset + at)


@intrinsic
def swap_bytes(typing_context: Any, word: Any) -> Any:
    """`word` with its eight bytes in reverse order."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bswap(arguments[0])

    return types.uint64(types.uint64), generate


@numba.njit(inline="always")
def little_endian(data: int, start: int, size: int) -> Any:
    """The unsigned number in `size` (1 to 8) bytes at `start` of the batch at address `data`, as uint64."""
    if start + size >= 8:
        return load_word(data, start + size - 8) >> np.uint64(64 - 8 * size)
    number = np.uint64(0)
    for index in range(size):
        number |= np.uint64(load_byte(data, start + index)) << np.uint64(8 * index)
    return number


@numba.njit(inline="always")
def big_endian(data: int, start: int, size: int) -> Any:
    """`little_endian`, but with the most significant byte first."""
    if start + size >= 8:
        above = np.uint64(64 - 8 * size)
        return swap_bytes(load_word(data, start + size - 8)) << above >> above
    number = np.uint64(0)
    for index in range(size):
        number = number << np.uint64(8) | np.uint64(load_byte(data, start + index))
    return number
