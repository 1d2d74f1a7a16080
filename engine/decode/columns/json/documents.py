"""JSON columns: MySQL's binary documents as the text that MySQL prints.

A kernel writes the documents (`kernel`). If it leaves one, which is then broken or of an unusual size, the
slow but readable reference implementation (`text`) converts all of the column, and raises the errors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from engine.binlog.column import Column
from engine.decode.arrow.arena import Arena, ArrayParts
from engine.decode.arrow.buffers import texts
from engine.decode.arrow.codec import Codec, Counters, Options
from engine.decode.arrow.column_kernel import (
    FULL,
    LEFT,
    aligned,
    buffer_at,
    column_kernel,
    content_size,
    finish_variable,
    has_room,
    offsets_at,
)
from engine.decode.columns.doubles import powers_of_ten
from engine.decode.columns.json import text as reference
from engine.decode.columns.json.kernel import STACK_WORDS, write_document
from engine.decode.columns.text.utf8 import utf8_codec
from engine.decode.columns.text.utf8_check import is_ascii, is_utf8
from engine.decode.columns.widths import length_bytes
from engine.errors import EventError
from engine.kernels.kernel import Bytes, Int32s
from engine.kernels.memory import address_of, little_endian

_GROWTH, _SHORTEST_LIMIT = reference.GROWTH, reference.SHORTEST_LIMIT


@column_kernel
def _documents(
    data: Any, cells: Any, form: Any, constants: Any, memory: Any, at: int, parts: Any, notes: Any
) -> Any:
    """Write the documents, which follow a length of `form[0]` bytes; `constants`: `powers_of_ten`.

    `form[1]`: whether whole doubles have a decimal point.
    """
    prefix, points = form[0], form[1]
    content = aligned(at + 4 * (cells.size + 1))
    room = _GROWTH * content_size(data, cells, prefix) + _SHORTEST_LIMIT * cells.size
    if not has_room(memory, at, content - at + room, notes):
        return FULL
    stack = np.empty(8 * STACK_WORDS, np.uint8)
    offsets = offsets_at(memory, at, cells.size)
    batch, frames, tens = address_of(data), address_of(stack), address_of(constants)
    text = address_of(buffer_at(memory, content, room))
    nulls = 0
    to = np.int64(0)
    offsets[0] = 0
    for index in range(cells.size):
        cell = np.int64(cells[index])
        if cell < 0:
            nulls += 1
        else:
            size = np.int64(little_endian(batch, cell, prefix))
            start = cell + prefix
            limit = to + _GROWTH * size + _SHORTEST_LIMIT
            end = write_document(batch, start, start + size, frames, tens, text, to, limit, points)
            if end < 0 or not (is_ascii(text, to, end) or is_utf8(text, to, end)):
                return LEFT
            to = end
        offsets[index + 1] = to
    return finish_variable(cells, nulls, memory, at, content, to, parts, notes)


def _reference_text(data: Bytes, cell: int, prefix: int, points: bool) -> bytes:
    """A document's text, by the reference implementation."""
    if cell < 0:
        return b""
    start = cell + prefix
    size = int.from_bytes(data[cell:start].tobytes(), "little")
    document = data[start : start + size].tobytes()
    try:
        return reference.json_text(document, points=points).encode()
    except EventError as error:
        raise EventError(error.reason, start + error.offset) from error


def json_codec(column: Column, options: Options) -> Codec:
    """The codec of a JSON column, whose metadata is the size of a document's length prefix in bytes.

    (MariaDB's JSON is an alias of LONGTEXT.)
    """
    prefix = length_bytes(column)
    if options.json_text:
        return utf8_codec(-prefix)

    def with_reference(data: Bytes, cells: Int32s, arena: Arena, counters: Counters) -> ArrayParts:
        documents = [_reference_text(data, cell, prefix, points) for cell in cells.tolist()]
        return texts(arena, cells, documents)

    points = options.json_points
    powers = powers_of_ten().reshape(-1).view(np.uint8)
    return Codec(pa.string(), -prefix, _documents, (prefix, int(points)), powers, in_python=with_reference)
