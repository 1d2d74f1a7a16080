"""Lays encoded cells out in a batch as the row walk would, and decodes them with the column's codec."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from engine.binlog.column import Column
from engine.decode.arrow.codec import ABSENT_CELL, NULL_CELL, Codec, Counters, Options
from engine.decode.arrow.record_message import read_arrays
from engine.decode.columns import codec_for

JUNK = b"\xff\x00\x80"


def lay_out(contents: Sequence[bytes | None], gap: bytes = JUNK) -> tuple[np.ndarray, np.ndarray]:
    """A read-only batch and a column of cells; nulls alternate between NULL and absent.

    The first cell starts at the batch's first byte and the last one ends with it, so that a kernel that reads
    outside of its cells reads outside of the batch.
    """
    data = bytearray()
    cells = np.empty(len(contents), np.int32)
    for index, content in enumerate(contents):
        if content is None:
            cells[index] = NULL_CELL if index % 2 else ABSENT_CELL
        else:
            data += gap if data else b""
            cells[index] = len(data)
            data += content
    return np.frombuffer(bytes(data), np.uint8), cells


def prefixed(codec: Codec, content: bytes | None) -> bytes | None:
    """The cell that holds `content`: with a length before it where the codec says so."""
    if content is None:
        return None
    if codec.width > 0:
        assert len(content) == codec.width
        return content
    return len(content).to_bytes(-codec.width, "little") + content


def decode(
    column: Column,
    contents: Sequence[bytes | None],
    options: Options | None = None,
    counters: Counters | None = None,
) -> pa.Array:
    """The array of a column whose cells hold `contents` (without length prefixes)."""
    codec = codec_for(column, options or Options())
    data, cells = lay_out([prefixed(codec, content) for content in contents])
    (array,) = read_arrays(data, [cells], [codec], counters if counters is not None else Counters())
    assert array.type == codec.arrow_type
    assert len(array) == len(contents)
    array.validate(full=True)
    return array


def column(type_code: int, metadata: int = 0, **more: object) -> Column:
    """A column of the given type."""
    return Column("c", int(type_code), metadata, **more)  # type: ignore[arg-type]
