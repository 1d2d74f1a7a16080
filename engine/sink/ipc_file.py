"""Builds Arrow IPC files of finished record batch messages, each of which is written unchanged in one call.

Arrow's own writer would split every batch and write it buffer by buffer. The other parts of a file come from
a template that Arrow creates once per schema, a file with one empty batch: its head (schema, dictionaries) is
used unchanged, its footer with another list of record batches.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from engine.output.change_schema import empty_file_batch
from engine.output.direct_io import to_whole_pages
from engine.output.flatbuffer import field, follow, vector
from engine.pipeline.messages import Frame

_TAIL = 10
"""Bytes after a footer: its length and a magic string."""
_PREFIX = 8
"""Bytes before a message's metadata: a marker and the metadata's length."""
_END_OF_MESSAGES = b"\xff\xff\xff\xff\0\0\0\0"
_RECORD_BATCHES = 3
"""Number of the field `recordBatches` in the footer's table."""
_BLOCK = struct.Struct("<qi4xq")


class Block(NamedTuple):
    """Offset and lengths of a message in a file, in bytes."""

    offset: int
    metadata: int
    """Length of everything before the body, the prefix included."""
    body: int

    @classmethod
    def of(cls, message: Frame, offset: int) -> Block:
        """The block of a message that is written at `offset`."""
        metadata = _PREFIX + int.from_bytes(message[4:_PREFIX], "little")
        return cls(offset, metadata, len(message) - metadata)

    def with_body_on_page(self, message: Frame) -> tuple[Block, bytes]:
        """The block with metadata padded so that the body begins on a page of the file, and that metadata."""
        metadata = self.metadata + to_whole_pages(self.offset + self.metadata)
        content = bytearray(metadata)
        content[: self.metadata] = message[: self.metadata]
        content[4:_PREFIX] = (metadata - _PREFIX).to_bytes(4, "little")
        return self._replace(metadata=metadata), bytes(content)

    @property
    def end(self) -> int:
        """The offset of the first byte after the message."""
        return self.offset + self.metadata + self.body


class Template:
    """The parts that all files of one schema have in common."""

    def __init__(self, schema: pa.Schema) -> None:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, schema) as writer:
            writer.write_batch(empty_file_batch(schema))
        content = sink.getvalue().to_pybytes()
        self._tail = content[-_TAIL + 4 :]
        (size,) = struct.unpack_from("<i", content, len(content) - _TAIL)
        self._footer = content[-_TAIL - size : -_TAIL]
        self._list_field = field(self._footer, follow(self._footer, 0), _RECORD_BATCHES)
        blocks, _ = vector(self._footer, self._list_field)
        offset, _, _ = _BLOCK.unpack_from(self._footer, blocks)
        self.head = content[:offset]
        """The bytes before the first record batch."""

    def end(self, blocks: Sequence[Block]) -> bytes:
        """The bytes after the last record batch."""
        footer = bytearray(self._footer)
        # The list's entries, which follow its length, are aligned to eight bytes.
        footer += bytes(-(len(footer) + 4) % 8)
        struct.pack_into("<I", footer, self._list_field, len(footer) - self._list_field)
        footer += struct.pack("<I", len(blocks))
        for block in blocks:
            footer += _BLOCK.pack(*block)
        return _END_OF_MESSAGES + footer + struct.pack("<i", len(footer)) + self._tail
