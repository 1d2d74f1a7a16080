"""A kernel for the CRC-32 of the binlog, which is zlib's.

On x86-64, carry-less multiplication folds 64 bytes per step ("Fast CRC Computation Using PCLMULQDQ", Intel
2009), in vectors of 32 bytes if the processor can; the last 16 bytes, and all bytes on other processors, use
sixteen tables at once. A slower method would make checking an event as expensive as decoding it.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from typing import Any

import llvmlite.binding
import numpy as np
from llvmlite import ir
from numba import types, uint32, uint64
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from engine.kernels.bounds import CHECKS_BOUNDS, check_range
from engine.kernels.kernel import Bytes, kernel, load_word

_WORD = ir.IntType(64)

_SLICES = 16
_POLYNOMIAL = 0xEDB88320
"""In reflected bit order, as everything here."""

# x^(512+64), x^512, x^(128+64) and x^128 modulo the polynomial, as in the paper's section on reflected data:
# multiplying the two halves of 16 bytes by a pair moves them 64 or 16 bytes forwards.
_BY_64 = (np.uint64(0x0154442BD4), np.uint64(0x01C6E41596))
_BY_16 = (np.uint64(0x01751997D0), np.uint64(0x00CCAA009E))


def _make_tables() -> NDArray[np.uint32]:
    tables = np.zeros((_SLICES, 256), np.uint32)
    for byte in range(256):
        remainder = byte
        for _ in range(8):
            remainder = (remainder >> 1) ^ (_POLYNOMIAL if remainder & 1 else 0)
        tables[0, byte] = remainder
    for s in range(1, _SLICES):
        previous = tables[s - 1]
        tables[s] = (previous >> np.uint32(8)) ^ tables[0, previous & np.uint32(0xFF)]
    return tables


_TABLES = _make_tables()
_MULTIPLIES = platform.machine() == "x86_64" and llvmlite.binding.get_host_cpu_features().get("pclmul", False)


def _words(numbers: list[int], count: int) -> NDArray[np.uint64]:
    """Numbers as `count` words of 64 bits each, the lowest word first."""
    return np.array([[n >> 64 * word & (1 << 64) - 1 for word in range(count)] for n in numbers], np.uint64)


_KEPT = _words([(1 << 128) - (1 << 8 * (16 - over)) for over in range(16)], 2)
"""By the number of content bytes at the end of a block: a mask of these bytes."""
_INVERTED = _words([0xFFFFFFFF << 8 * (16 - over) for over in range(16)], 3)
"""By the same number: a mask of the first four content bytes in the block and the one after it."""


@kernel
def _step_16(low: int, high: int) -> int:
    """The remainder of 16 bytes, given as two words."""
    tables = _TABLES
    crc = uint32(0)
    for i in range(8):
        crc ^= tables[15 - i, (low >> uint64(8 * i)) & uint64(0xFF)]
        crc ^= tables[7 - i, (high >> uint64(8 * i)) & uint64(0xFF)]
    return crc


def _vector(builder: Any, words: Sequence[Any]) -> Any:
    """Generate code that combines words into a vector."""
    vector = ir.Constant(ir.VectorType(_WORD, len(words)), ir.Undefined)
    for index, word in enumerate(words):
        vector = builder.insert_element(vector, word, ir.Constant(ir.IntType(32), index))
    return vector


def _elements(builder: Any, vector: Any) -> list[Any]:
    """Generate code that divides a vector into its words."""
    return [
        builder.extract_element(vector, ir.Constant(ir.IntType(32), index))
        for index in range(vector.type.count)
    ]


def _moved(builder: Any, value: Any, by: tuple[np.uint64, np.uint64]) -> Any:
    """Generate code that moves each 16 bytes of a vector forwards by the distance of the `by` pair."""
    pairs = value.type.count // 2
    operand, number = value.type, ir.IntType(8)
    multiply = builder.module.declare_intrinsic(
        "llvm.x86.pclmulqdq" + (f".{128 * pairs}" if pairs > 1 else ""),
        (),
        ir.FunctionType(operand, [operand, operand, number]),
    )
    factors = ir.Constant(operand, [int(factor) for factor in by] * pairs)
    lower, upper = (builder.call(multiply, [value, factors, number(halves)]) for halves in (0x00, 0x11))
    return builder.xor(lower, upper)


@intrinsic
def _fold(typing_context: Any, low: Any, high: Any, low2: Any, high2: Any) -> Any:
    """(low, high) moved forwards by 16 bytes, plus (low2, high2)."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        value, addend = _vector(builder, arguments[:2]), _vector(builder, arguments[2:])
        folded = builder.xor(_moved(builder, value, _BY_16), addend)
        return context.make_tuple(builder, signature.return_type, _elements(builder, folded))

    return types.UniTuple(types.uint64, 2)(low, high, low2, high2), generate


@intrinsic
def _fold_lines(typing_context: Any, data: Any, start: Any, end: Any, line: Any) -> Any:
    """`line`, the 64 or 16 bytes before `start`, folded into the last such line of data[start:end].

    The loop is generated here, since vectors cannot be variables of a kernel: moving words to vectors and
    back at each step would take as long as multiplying them.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        _, start, end, line = arguments
        words = cgutils.unpack_tuple(builder, line)
        line_bytes, by = 8 * len(words), _BY_64 if len(words) == 8 else _BY_16
        # What the kernel is compiled for, which may have less than the processor of this process.
        is_wide = "+vpclmulqdq" in context.codegen().magic_tuple()[2].split(",")
        size = min(4 if is_wide else 2, len(words))
        vectors = [
            cgutils.alloca_once_value(builder, _vector(builder, words[first : first + size]))
            for first in range(0, len(words), size)
        ]
        stop = builder.sub(end, _WORD(line_bytes - 1))
        with cgutils.for_range_slice(builder, start, stop, _WORD(line_bytes)) as (at, _):
            if CHECKS_BOUNDS:
                check_range(context, builder, at, _WORD(line_bytes), array.nitems)
            content = builder.bitcast(builder.gep(array.data, [at]), vectors[0].type)
            for index, vector in enumerate(vectors):
                addend = builder.load(builder.gep(content, [_WORD(index)]), align=1)
                builder.store(builder.xor(_moved(builder, builder.load(vector), by), addend), vector)
        folded = [word for vector in vectors for word in _elements(builder, builder.load(vector))]
        return context.make_tuple(builder, signature.return_type, folded)

    return line(data, types.int64, types.int64, line), generate


@kernel
def _fold_blocks(data: Bytes, start: int, end: int) -> tuple[int, int]:
    """data[start:end], at least 32 bytes with 16 before them, folded into 16; the first four are inverted.

    The first block is filled up with zero bytes at its start, which do not change the CRC.
    """
    over = (end - start) & 15
    at = start + over
    a0 = load_word(data, at - 16) & _KEPT[over, 0] ^ _INVERTED[over, 0]
    a1 = load_word(data, at - 8) & _KEPT[over, 1] ^ _INVERTED[over, 1]
    b0, b1 = load_word(data, at) ^ _INVERTED[over, 2], load_word(data, at + 8)
    at += 16
    if end - at >= 96:
        c0, c1 = load_word(data, at), load_word(data, at + 8)
        d0, d1 = load_word(data, at + 16), load_word(data, at + 24)
        at += 32
        a0, a1, b0, b1, c0, c1, d0, d1 = _fold_lines(data, at, end, (a0, a1, b0, b1, c0, c1, d0, d1))
        at += (end - at) & -64
        a0, a1 = _fold(a0, a1, b0, b1)
        a0, a1 = _fold(a0, a1, c0, c1)
        b0, b1 = d0, d1
    a0, a1 = _fold(a0, a1, b0, b1)
    return _fold_lines(data, at, end, (a0, a1))


@kernel
def crc32(data: Bytes, start: int, end: int) -> int:
    """CRC-32 of data[start:end]; the caller has checked the bounds."""
    crc = uint32(0xFFFFFFFF)
    at = start
    if _MULTIPLIES and start >= 16 and end - start >= 32:
        low, high = _fold_blocks(data, start, end)
        return _step_16(low, high) ^ uint32(0xFFFFFFFF)
    while at + 16 <= end:
        crc = _step_16(load_word(data, at) ^ uint64(crc), load_word(data, at + 8))
        at += 16
    while at < end:
        crc = (crc >> uint32(8)) ^ _TABLES[0, (crc ^ uint32(data[at])) & uint32(0xFF)]
        at += 1
    return crc ^ uint32(0xFFFFFFFF)
