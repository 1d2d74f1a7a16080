"""Record batches as IPC messages, written where the sink will read them: into a slot, or frame by frame."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from engine.kernels import Bytes

_MANY_BYTES = 1 << 16
"""A batch of that size is not worth a copy; below, a stream with its schema takes longer than that copy."""
_PREFIX = 8
"""Bytes before a message's metadata: a marker, and how long the metadata is."""


def messages(batches: Sequence[pa.RecordBatch]) -> list[pa.Buffer]:
    """Each batch as a message of its own."""
    return [batch.serialize() for batch in batches]


def write_messages(batches: Sequence[pa.RecordBatch], room: Bytes) -> list[tuple[int, int]] | None:
    """Write the batches into `room`; start and length of each message, null where they do not fit."""
    spans = []
    end = 0
    for batch in batches:
        if batch.nbytes > len(room) - end:
            return None
        if batch.nbytes < _MANY_BYTES:
            message = batch.serialize()
            if message.size > len(room) - end:
                return None
            start = end
            room[start : start + message.size] = np.frombuffer(message, np.uint8)
            end += message.size
        else:
            stream = pa.FixedSizeBufferWriter(pa.py_buffer(room[end:]))
            try:
                pa.ipc.new_stream(stream, batch.schema).write_batch(batch)
            except OSError:
                return None
            # A stream begins with the schema, which the sink has already.
            start = end + _PREFIX + int.from_bytes(room[end + 4 : end + _PREFIX].tobytes(), "little")
            end += stream.tell()
        spans.append((start, end - start))
    return spans
