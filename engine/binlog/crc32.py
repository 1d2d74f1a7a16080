"""A kernel for the CRC-32 of the binlog, which is zlib's.

On x86-64, carry-less multiplication folds 64 bytes per step ("Fast CRC Computation Using PCLMULQDQ", Intel
2009); the last 16 bytes, and all bytes on other processors, use sixteen tables at once. A slower method would
make checking an event as expensive as decoding it.
"""

from __future__ import annotations

import platform
from typing import Any

import llvmlite.binding
import numpy as np
from llvmlite import ir
from numba import types, uint32, uint64
from numba.extending import intrinsic
from numpy.typing import NDArray

from engine.kernels.kernel import Bytes, kernel, load_word

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


@intrinsic
def _fold(typing_context: Any, low: Any, high: Any, by_low: Any, by_high: Any, low2: Any, high2: Any) -> Any:
    """(low, high) moved forwards by the distance of the `by` pair, plus (low2, high2)."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pair = ir.VectorType(ir.IntType(64), 2)
        multiply = builder.module.declare_intrinsic(
            "llvm.x86.pclmulqdq", (), ir.FunctionType(pair, [pair, pair, ir.IntType(8)])
        )

        def vector(a: Any, b: Any) -> Any:
            half = builder.insert_element(ir.Constant(pair, ir.Undefined), a, ir.Constant(ir.IntType(32), 0))
            return builder.insert_element(half, b, ir.Constant(ir.IntType(32), 1))

        value, by, addend = (vector(*arguments[i : i + 2]) for i in (0, 2, 4))
        lower = builder.call(multiply, [value, by, ir.Constant(ir.IntType(8), 0x00)])
        upper = builder.call(multiply, [value, by, ir.Constant(ir.IntType(8), 0x11)])
        folded = builder.xor(builder.xor(lower, upper), addend)
        halves = [builder.extract_element(folded, ir.Constant(ir.IntType(32), i)) for i in (0, 1)]
        return context.make_tuple(builder, signature.return_type, halves)

    return types.UniTuple(types.uint64, 2)(low, high, by_low, by_high, low2, high2), generate


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
        while at + 64 <= end:
            a0, a1 = _fold(a0, a1, _BY_64[0], _BY_64[1], load_word(data, at), load_word(data, at + 8))
            b0, b1 = _fold(b0, b1, _BY_64[0], _BY_64[1], load_word(data, at + 16), load_word(data, at + 24))
            c0, c1 = _fold(c0, c1, _BY_64[0], _BY_64[1], load_word(data, at + 32), load_word(data, at + 40))
            d0, d1 = _fold(d0, d1, _BY_64[0], _BY_64[1], load_word(data, at + 48), load_word(data, at + 56))
            at += 64
        a0, a1 = _fold(a0, a1, _BY_16[0], _BY_16[1], b0, b1)
        a0, a1 = _fold(a0, a1, _BY_16[0], _BY_16[1], c0, c1)
        b0, b1 = d0, d1
    a0, a1 = _fold(a0, a1, _BY_16[0], _BY_16[1], b0, b1)
    while at < end:
        a0, a1 = _fold(a0, a1, _BY_16[0], _BY_16[1], load_word(data, at), load_word(data, at + 8))
        at += 16
    return a0, a1


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
