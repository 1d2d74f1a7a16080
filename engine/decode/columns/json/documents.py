"""JSON columns: MySQL's binary documents as the text that MySQL prints.

A kernel writes the documents (`kernel`). Those that it leaves, mostly broken ones, are converted by the slow
but readable reference implementation (`text`), which also raises the errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numba import types
from numpy.typing import NDArray

from engine.binlog.column import Column
from engine.decode.arrow.arena import Arena, ArrayParts
from engine.decode.arrow.buffers import check_content_size, content_offsets, count_nulls, variable
from engine.decode.arrow.codec import Codec, Counters, Options
from engine.decode.columns.doubles import powers_of_ten
from engine.decode.columns.json import text as reference
from engine.decode.columns.json.kernel import STACK_WORDS, write_document
from engine.decode.columns.text.utf8 import Utf8Codec
from engine.decode.columns.text.utf8_check import is_ascii, is_utf8
from engine.decode.columns.widths import length_bytes
from engine.errors import EventError
from engine.kernels.kernel import Bytes, Int32s
from engine.kernels.memory import address_of, little_endian
from engine.kernels.typed import CELLS, DATA, OFFSETS, OUT, kernel

_GROWTH, _SHORTEST_LIMIT = reference.GROWTH, reference.SHORTEST_LIMIT


@kernel(
    types.UniTuple(types.int64, 2),
    DATA,
    CELLS,
    types.int64,
    types.uint64[::1],
    types.Array(types.uint64, 2, "C", readonly=True),
    OFFSETS,
    OUT,
    types.int32[::1],
)
def _documents(
    data: Any,
    cells: Any,
    prefix: int,
    stack: Any,
    powers: Any,
    offsets: Any,
    out: Any,
    left: Any,
) -> Any:
    """Write all documents; return their size in bytes and how many are left to the reference.

    `left` receives the indices of the latter.
    """
    batch, frames, tens, text = address_of(data), address_of(stack), address_of(powers), address_of(out)
    to = np.int64(0)
    leftovers = 0
    offsets[0] = 0
    for index in range(cells.size):
        cell = np.int64(cells[index])
        if cell >= 0:
            size = np.int64(little_endian(batch, cell, prefix))
            start = cell + prefix
            limit = to + _GROWTH * size + _SHORTEST_LIMIT
            end = write_document(batch, start, start + size, frames, tens, text, to, limit)
            if end >= 0 and (is_ascii(text, to, end) or is_utf8(text, to, end)):
                to = end
            else:
                left[leftovers] = index
                leftovers += 1
        offsets[index + 1] = to
    return to, leftovers


@dataclass(frozen=True, slots=True)
class JsonCodec:
    """MySQL's JSON. (MariaDB's JSON is an alias of LONGTEXT.)"""

    arrow_type: pa.DataType
    width: int

    def build(self, data: Bytes, cells: Int32s, arena: Arena, counters: Counters) -> ArrayParts:
        """See `Codec.build`."""
        prefix = -self.width
        offset_buffer, offsets = arena.allocate_offsets(cells.size)
        stored = content_offsets(data, cells, prefix, offsets)
        content = arena.reserve(_GROWTH * stored + _SHORTEST_LIMIT * cells.size)
        left = np.empty(cells.size, np.int32)
        stack = np.empty(STACK_WORDS, np.uint64)
        size, leftovers = _documents(data, cells, prefix, stack, powers_of_ten(), offsets, content, left)
        if leftovers:
            texts = {index: self._text(data, int(cells[index])) for index in left[:leftovers].tolist()}
            joined = _insert(offsets, content, texts)
            size = len(joined)
            arena.reserve(size)[:size] = np.frombuffer(joined, np.uint8)
        return variable(arena, cells, offset_buffer, size, count_nulls(cells))

    def _text(self, data: NDArray[np.uint8], cell: int) -> bytes:
        """A document's text, by the reference implementation."""
        start = cell - self.width
        size = int.from_bytes(data[cell:start].tobytes(), "little")
        document = data[start : start + size].tobytes()
        try:
            return reference.json_text(document).encode()
        except EventError as error:
            raise EventError(error.reason, start + error.offset) from error


def _insert(offsets: Int32s, content: Bytes, texts: dict[int, bytes]) -> bytes:
    """Insert the texts (by index, ascending) into the content where it is empty, and update the offsets."""
    lengths = np.diff(offsets.astype(np.int64))
    lengths[list(texts)] = [len(text) for text in texts.values()]
    pieces: list[bytes] = []
    done = 0
    for index, text in texts.items():
        pieces += [content[done : offsets[index]].tobytes(), text]
        done = int(offsets[index])
    pieces.append(content[done : offsets[-1]].tobytes())
    joined = b"".join(pieces)
    check_content_size(len(joined))
    offsets[1:] = np.cumsum(lengths)
    return joined


def json_codec(column: Column, options: Options) -> Codec:
    """The codec of a JSON column, whose metadata is the size of a document's length prefix in bytes."""
    width = -length_bytes(column)
    return Utf8Codec(pa.string(), width) if options.json_text else JsonCodec(pa.string(), width)
