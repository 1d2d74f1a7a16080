"""Record batches as Arrow IPC messages, built directly in the memory that the sink reads.

Arrow would collect finished arrays into a batch and copy them into a message, which for a small batch takes
longer than decoding it. Here the arrays are built in the message's body, which follows metadata from a
template: Arrow generates it once for each number of arrays and buffers, and only its numbers differ from
batch to batch (rows, nulls, offsets and sizes of buffers).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from engine.decode.arrow.arena import ALIGNMENT, NO_BUFFER, Arena, ArrayParts, in_own_arena
from engine.decode.arrow.codec import Codec, Counters
from engine.decode.arrow.shape import Shape, shape_of
from engine.kernels.kernel import Bytes, Int32s, kernel, read_u64
from engine.output.change_schema import nulls
from engine.output.direct_io import DIRECT_BYTES, to_whole_pages
from engine.output.flatbuffer import field, follow, vector

_PREFIX = 8
"""Bytes before a message's metadata: the continuation marker and the metadata's length."""
_HEADER, _BODY_LENGTH = 2, 3
"""Fields of a `Message`."""
_LENGTH, _NODES, _BUFFERS = range(3)
"""Fields of a `RecordBatch`."""
_SMALL_ARENA = 1 << 12


class RecordMessage(NamedTuple):
    """A record batch in an arena."""

    content: Bytes
    rows: int
    start: int
    """Its offset in the arena's memory."""


class MessageLayout(NamedTuple):
    """The metadata of a message with the prefix before it, and where its numbers are in these bytes.

    All lengths and offsets are multiples of `ALIGNMENT`.
    """

    metadata: Bytes
    rows: int
    """The offset of the number of rows."""
    body_length: int
    """The offset of the length of the body, in bytes."""
    nodes: int
    """The offset of the first of two numbers for each node: rows and nulls."""
    buffers: int
    """The offset of the first of two numbers for each buffer: its offset in the body, and its size."""


_LAYOUTS: dict[Shape, MessageLayout] = {}
"""By shape: the metadata of a record batch does not depend on anything else in its schema."""


def message_layout(shape: Shape, schema: Callable[[], pa.Schema]) -> MessageLayout:
    """The layout of the messages of all record batches of that shape, such as those with `schema`."""
    if shape not in _LAYOUTS:
        _LAYOUTS[shape] = _layout_of(shape, schema())
    return _LAYOUTS[shape]


def _layout_of(shape: Shape, schema: pa.Schema) -> MessageLayout:
    # With one row, so that no number has its default value, which flatbuffers omit.
    row = pa.RecordBatch.from_arrays([nulls(kind, 1) for kind in schema.types], schema=schema)
    message = row.serialize().to_pybytes()
    size = _PREFIX + int.from_bytes(message[4:_PREFIX], "little")
    metadata = message[_PREFIX:size]
    table = follow(metadata, 0)
    batch = follow(metadata, field(metadata, table, _HEADER))
    nodes, node_count = vector(metadata, field(metadata, batch, _NODES))
    buffers, buffer_count = vector(metadata, field(metadata, batch, _BUFFERS))
    assert shape == (node_count, buffer_count)
    rows, body_length = field(metadata, batch, _LENGTH), field(metadata, table, _BODY_LENGTH)
    places = [_PREFIX + place for place in (rows, body_length, nodes, buffers)]
    # Flatbuffers align numbers, so a kernel can write them as words.
    assert not any(place % ALIGNMENT for place in (size, *places))
    return MessageLayout(np.frombuffer(message[:size], np.uint8), *places)


@kernel
def clear_gaps(memory: Bytes, base: int, numbers: int, count: int) -> None:
    """Clear the bytes after each buffer up to the next multiple of `ALIGNMENT`, which hold old content.

    `numbers`: the offset in `memory` of the offsets and sizes of `count` buffers, which count from `base`.
    """
    for at in range(numbers, numbers + 16 * count, 16):
        end = base + read_u64(memory, at) + read_u64(memory, at + 8)
        for gap in range(end, (end + ALIGNMENT - 1) & -ALIGNMENT):
            memory[gap] = 0


class MessageTemplate:
    """The metadata that the messages of all record batches of one schema have in common."""

    def __init__(self, schema: pa.Schema) -> None:
        shape = Shape.sum(shape_of(kind) for kind in schema.types)
        self.layout = message_layout(shape, lambda: schema)
        # A node and a buffer are two numbers each.
        self._node_numbers = struct.Struct(f"<{2 * shape.nodes}q")
        self._buffer_numbers = struct.Struct(f"<{2 * shape.buffers}q")

    @property
    def body(self) -> int:
        """The offset in a message at which its body starts; buffers count from there."""
        return len(self.layout.metadata)

    def begin(self, arena: Arena) -> int:
        """Reserve the metadata, which `finish` fills in; return the message's offset. Raises `ArenaFull`."""
        gap = to_whole_pages(arena.end + self.body)
        arena.reserve(gap)
        arena.keep(gap)
        start = arena.end
        arena.reserve(self.body)
        arena.keep(self.body)
        arena.base = arena.end
        return start

    def finish(self, arena: Arena, start: int, rows: int, arrays: Iterable[ArrayParts]) -> RecordMessage:
        """Finish the message that `begin` started at `start`, with the arrays built since, or `ArenaFull`."""
        if arena.end - arena.base >= DIRECT_BYTES:
            gap = to_whole_pages(arena.end)
            arena.reserve(gap)[:gap] = 0
            arena.keep(gap)
        nodes: list[int] = []
        buffers: list[int] = []
        for array in arrays:
            nodes += array.nodes
            buffers += array.buffers
        layout = self.layout
        metadata = bytearray(layout.metadata)
        struct.pack_into("<q", metadata, layout.rows, rows)
        struct.pack_into("<q", metadata, layout.body_length, arena.end - arena.base)
        self._node_numbers.pack_into(metadata, layout.nodes, *nodes)
        self._buffer_numbers.pack_into(metadata, layout.buffers, *buffers)
        arena.memory[start : start + self.body] = np.frombuffer(metadata, np.uint8)
        clear_gaps(arena.memory, arena.base, start + layout.buffers, len(buffers) // 2)
        return RecordMessage(arena.memory[start : arena.end], rows, start)


def copy_array(arena: Arena, array: pa.Array) -> ArrayParts:
    """Copy a finished array without children into the arena. Raises `ArenaFull`."""
    assert array.offset == 0
    assert array.type.num_fields == 0
    places: list[int] = []
    for number, buffer in enumerate(array.buffers()):
        unneeded = buffer is None or not buffer.size or (number == 0 and not array.null_count)
        places += NO_BUFFER if unneeded else arena.append(np.frombuffer(buffer, np.uint8))
    return ArrayParts((len(array), array.null_count), tuple(places))


def write_batch(
    arena: Arena, template: MessageTemplate, batch: pa.RecordBatch
) -> tuple[RecordMessage, list[int]]:
    """Copy a finished record batch into the arena. Raises `ArenaFull`.

    Returns the message and, for each column, the offset in the message of its last buffer.
    """
    start = template.begin(arena)
    arrays = [copy_array(arena, array) for array in batch.columns]
    last_buffers = [template.body + array.buffers[-2] for array in arrays]
    return template.finish(arena, start, batch.num_rows, arrays), last_buffers


def read_arrays(
    data: Bytes, cells: Sequence[Int32s], codecs: Sequence[Codec], counters: Counters
) -> list[pa.Array]:
    """The arrays that codecs build from columns of cells, in a new arena; for inspection, not for speed."""
    if not codecs:
        return []
    schema = pa.schema([pa.field("", codec.arrow_type) for codec in codecs])
    template = MessageTemplate(schema)

    def build(arena: Arena) -> tuple[RecordMessage, Counters]:
        # A second attempt counts from zero.
        start, counted = template.begin(arena), Counters()
        columns = zip(codecs, cells, strict=True)
        arrays = [codec.build(data, column, arena, counted) for codec, column in columns]
        return template.finish(arena, start, len(cells[0]), arrays), counted

    message, counted = in_own_arena(_SMALL_ARENA, build)
    for name, amount in counted.values.items():
        counters.add(name, amount)
    return pa.ipc.read_record_batch(pa.py_buffer(message.content), schema).columns
