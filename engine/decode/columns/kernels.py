"""What the kernels of all families share: unaligned reads and copies, and the buffers of an Arrow array.

A kernel is compiled for exactly one signature, when it is first needed, and cached on disk: compile time is
paid once per machine, and a process pays only for the families that its tables use. Cells are at least as
wide as their codec says and lie inside the batch (the row walk has checked), so a kernel may read up to
eight bytes that end where a cell's bytes end, wherever the batch has eight bytes before that point.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from engine.bounds import CHECKS_BOUNDS, check_range
from engine.decode.room import NO_BUFFER, PADDING, ArrayParts, Room, RoomFull
from engine.errors import EngineError
from engine.kernel_cache import keep_compiled
from engine.kernels import Bytes, Int32s

DATA = types.Array(types.uint8, 1, "C", readonly=True)
"""The batch; also every other byte array that a kernel only reads."""
CELLS = types.Array(types.int32, 1, "C", readonly=True)
OUT = types.uint8[::1]
"""Bytes of an Arrow buffer to be filled."""
OFFSETS = types.int32[::1]

_BYTE = ir.IntType(8)
_WORD = ir.IntType(64)
VECTOR_SIZE = 32
VECTOR = ir.VectorType(_BYTE, VECTOR_SIZE)
"""What is copied, or looked at, at once."""
_WORTH_A_CALL = 256
"""Bytes from which on memcpy is faster than a loop over vectors."""


class Kernel:
    """A numba function with one signature, compiled (or read from numba's cache) at its first call."""

    every: list[Kernel] = []  # noqa: RUF012 a registry on purpose

    def __init__(self, function: Callable[..., Any], signature: types.Type) -> None:
        self._function = function
        self._signature = signature
        self._compiled: Callable[..., Any] | None = None
        self.__doc__ = function.__doc__
        Kernel.every.append(self)

    @property
    def is_compiled(self) -> bool:
        """Whether there is code, compiled or out of the cache."""
        return self._compiled is not None

    def compile(self) -> Callable[..., Any]:
        """The compiled function."""
        if self._compiled is None:
            keep_compiled(self._function)
            self._compiled = numba.njit(self._signature, cache=True, nogil=True)(self._function)
        return self._compiled

    def __call__(self, *arguments: Any) -> Any:
        return (self._compiled or self.compile())(*arguments)


def kernel(result: types.Type, *arguments: types.Type) -> Callable[[Callable[..., Any]], Kernel]:
    """Decorator: a `Kernel` that returns `result` for `arguments`."""
    return lambda function: Kernel(function, result(*arguments))


# Helpers take the address of an array and not the array: numba counts references to arrays at every call that
# it does not inline, which costs more than most of what they do.


@intrinsic
def address_of(typing_context: Any, array: Any) -> Any:
    """Where a byte array's content starts in memory, as int64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        content = context.make_array(signature.args[0])(context, builder, arguments[0])
        address = builder.ptrtoint(content.data, _WORD)
        if not CHECKS_BOUNDS:
            return address
        # The address of both, which `_pointer` looks up.
        place_and_size = cgutils.alloca_once(builder, _WORD, size=2)
        builder.store(address, place_and_size)
        size = builder.mul(content.nitems, content.itemsize)
        builder.store(size, builder.gep(place_and_size, [_WORD(1)]))
        return builder.ptrtoint(place_and_size, _WORD)

    return types.int64(array), generate


def _pointer(context: Any, builder: Any, item: Any, address: Any, offset: Any, size: Any = None) -> Any:
    """A pointer to `size` bytes (those of `item` unless given) at `offset` from `address`."""
    if CHECKS_BOUNDS:
        place_and_size = builder.inttoptr(address, _WORD.as_pointer())
        length = builder.load(builder.gep(place_and_size, [_WORD(1)]))
        check_range(context, builder, offset, size or _WORD(item.width // 8), length)
        address = builder.load(place_and_size)
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


def load_vector(context: Any, builder: Any, address: Any, offset: Any) -> Any:
    """Emit code that reads a `VECTOR` at `offset` from `address`: for intrinsics."""
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
def _copy_vector(typing_context: Any, to: Any, to_offset: Any, start: Any, offset: Any) -> Any:
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
        _copy_vector(to, to_offset, start, offset)
    else:
        # Several at once: how many of them there are to be is what a processor cannot predict.
        for first in range(0, size, PADDING):
            for at in range(first, first + PADDING, VECTOR_SIZE):
                _copy_vector(to, to_offset + at, start, offset + at)


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
    """The same with the most significant byte first."""
    if start + size >= 8:
        above = np.uint64(64 - 8 * size)
        return swap_bytes(load_word(data, start + size - 8)) << above >> above
    number = np.uint64(0)
    for index in range(size):
        number = number << np.uint64(8) | np.uint64(load_byte(data, start + index))
    return number


@kernel(types.void, CELLS, OUT)
def _fill_validity(cells: Any, bitmap: Any) -> None:
    size = cells.size
    for byte in range((size + 7) >> 3):
        bits = 0
        for bit in range(min(8, size - 8 * byte)):
            bits |= (cells[8 * byte + bit] >= 0) << bit
        bitmap[byte] = bits


def validity(room: Room, cells: Int32s, nulls: int) -> tuple[int, int]:
    """The validity bitmap of an array with `nulls` nulls: a bit per cell, set where there is a value."""
    if not nulls:
        return NO_BUFFER
    size = (cells.size + 7) // 8
    _fill_validity(cells, room.open(size))
    return room.keep(size)


def fixed(room: Room, cells: Int32s, size: int, nulls: int) -> ArrayParts:
    """An array of fixed-size values (of `size` bytes each), which the room was opened for last."""
    values = room.keep(cells.size * size)
    return ArrayParts((cells.size, nulls), (*validity(room, cells, nulls), *values))


def variable(room: Room, cells: Int32s, offsets: tuple[int, int], size: int, nulls: int) -> ArrayParts:
    """A string or binary array: `offsets` stand there, for `size` bytes of content the room was opened last.

    `EngineError` for more content than Arrow can hold.
    """
    check_content_size(size)
    content = room.keep(size)
    return ArrayParts((cells.size, nulls), (*validity(room, cells, nulls), *offsets, *content))


def texts(room: Room, cells: Int32s, values: Sequence[bytes]) -> ArrayParts:
    """A string or binary array of values that are there already, one per cell."""
    content = b"".join(values)
    check_content_size(len(content))
    place, offsets = room.take_offsets(cells.size)
    offsets[0] = 0
    offsets[1:] = np.cumsum([len(value) for value in values])
    room.open(len(content))[: len(content)] = np.frombuffer(content, np.uint8)
    return variable(room, cells, place, len(content), count_nulls(cells))


@kernel(types.int64, CELLS)
def count_nulls(cells: Any) -> Any:
    """How many cells have no value."""
    nulls = 0
    for index in range(cells.size):
        nulls += cells[index] < 0
    return nulls


@kernel(types.int64, DATA, CELLS, types.int64, OFFSETS)
def content_offsets(data: Any, cells: Any, prefix: int, offsets: Any) -> Any:
    """Fill `offsets` from the length prefixes (of `prefix` bytes); the total of all lengths."""
    batch = address_of(data)
    total = np.int64(0)
    offsets[0] = 0
    for index in range(cells.size):
        cell = np.int64(cells[index])
        if cell >= 0:
            total += np.int64(little_endian(batch, cell, prefix))
        offsets[index + 1] = total
    return total


SIZE_AND_NULLS = types.UniTuple(types.int64, 2)
"""What a kernel returns that puts content behind one another: its bytes, and how many cells have none."""
FULL = -1
"""In place of the size: the content does not fit."""


@kernel(SIZE_AND_NULLS, DATA, CELLS, types.int64, types.int64, OFFSETS, OUT)
def copy_content(data: Any, cells: Any, prefix: int, skipped: int, offsets: Any, out: Any) -> Any:
    """Copy each cell's content without its first `skipped` bytes; `SIZE_AND_NULLS`."""
    batch, content = address_of(data), address_of(out)
    room = out.size - PADDING
    nulls = 0
    to = np.int64(0)
    offsets[0] = 0
    for index in range(cells.size):
        cell = np.int64(cells[index])
        if cell < 0:
            nulls += 1
        else:
            size = max(np.int64(0), np.int64(little_endian(batch, cell, prefix)) - skipped)
            if size > room - to:
                return FULL, nulls
            copy_padded(content, to, batch, cell + prefix + skipped, size, data.size)
            to += size
        offsets[index + 1] = to
    return to, nulls


def refuse_content(data: Bytes, cells: Int32s, prefix: int, room: Room) -> NoReturn:
    """What to do about content that did not fit: `EngineError` if Arrow cannot hold it, else `RoomFull`."""
    size = content_offsets(data, cells, prefix, np.empty(cells.size + 1, np.int32))
    check_content_size(size)
    raise RoomFull(size)


LARGEST_CONTENT = 2**31 - 1
"""Bytes that Arrow's 32 bit offsets can address."""


def check_content_size(size: int) -> None:
    """`EngineError` for more bytes of content than an Arrow array holds."""
    if size > LARGEST_CONTENT:
        raise EngineError(
            f"its values in one batch take {size} bytes, where an Arrow array holds at most "
            f"{LARGEST_CONTENT}: leave the table out with --exclude-tables"
        )


def open_content(room: Room) -> Bytes:
    """All the room that content can take."""
    return room.open_rest(LARGEST_CONTENT)
