"""Builds Arrow IPC files of finished record batch messages, each of which is written unchanged in one call.

Arrow's own writer would split every batch and write it buffer by buffer, and takes long to begin a file. The
other parts of a file are put together from the schema's message, which comes first in the file and is
part of the footer, unchanged because a flatbuffer's references are relative; and from the message of the
one dictionary, which all schemas have in common. Format: Arrow's `File.fbs` and `Message.fbs`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import NamedTuple

import pyarrow as pa

from engine.output.change_schema import METADATA_FIELDS, empty_file_batch
from engine.output.direct_io import to_whole_pages
from engine.output.flatbuffer import field, follow
from engine.pipeline.message import Frame

_MAGIC = b"ARROW1"
_START = _MAGIC + bytes(2)
_PREFIX = 8
"""Bytes before a message's metadata: a marker and the metadata's length."""
_END_OF_MESSAGES = b"\xff\xff\xff\xff\0\0\0\0"
_SCHEMA = 2
"""Number of the field `header` in a schema's message."""
_BLOCK = struct.Struct("<qi4xq")
_FOOTER = struct.Struct("<I HHHHHH iIIIh2x I")
"""The reference to the root table; its vtable; the table; the length of the list of dictionaries, whose
entries follow."""
_VTABLE_AT, _TABLE_AT, _DICTIONARIES_AT = 4, 16, 36
_SCHEMA_FIELD, _DICTIONARIES_FIELD, _BATCHES_FIELD, _VERSION_FIELD = 4, 8, 12, 16
"""Offsets in the table."""
_VERSION_5 = 4
_DICTIONARY_FIELD = METADATA_FIELDS[0]


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
    """The parts that all files of one schema have in common. `arrow`: the schema's message."""

    def __init__(self, arrow: bytes) -> None:
        dictionary = _dictionary_message() if _has_dictionary(arrow) else b""
        self.head = _START + arrow + dictionary
        """The bytes before the first record batch."""
        self._footer = _footer(arrow, [Block.of(dictionary, len(_START + arrow))] if dictionary else [])

    def end(self, blocks: Sequence[Block]) -> bytes:
        """The bytes after the last record batch."""
        footer = bytearray(self._footer)
        _refer(footer, _TABLE_AT + _BATCHES_FIELD, len(footer))
        # The list's entries, which follow its length, are aligned to eight bytes.
        footer += struct.pack("<I", len(blocks))
        for block in blocks:
            footer += _BLOCK.pack(*block)
        return _END_OF_MESSAGES + footer + struct.pack("<i", len(footer)) + _MAGIC


template_of = lru_cache(1 << 12)(Template)
"""The template for files of a schema. Not all are kept: some applications make and drop tables all day."""


def _footer(arrow: bytes, dictionaries: Sequence[Block]) -> bytes:
    """A footer up to the length of its list of record batches, and without the reference to that list."""
    fields = _VERSION_FIELD, _SCHEMA_FIELD, _DICTIONARIES_FIELD, _BATCHES_FIELD
    vtable = _TABLE_AT - _VTABLE_AT, _DICTIONARIES_AT - _TABLE_AT, *fields
    table = _TABLE_AT - _VTABLE_AT, 0, 0, 0, _VERSION_5
    footer = bytearray(_FOOTER.pack(_TABLE_AT, *vtable, *table, len(dictionaries)))
    _refer(footer, _TABLE_AT + _DICTIONARIES_FIELD, _DICTIONARIES_AT)
    for block in dictionaries:
        footer += _BLOCK.pack(*block)
    schema = arrow[_PREFIX:]
    _refer(footer, _TABLE_AT + _SCHEMA_FIELD, len(footer) + _header(schema))
    return bytes(footer + schema + bytes((4 - len(footer) - len(schema)) % 8))


def _refer(content: bytearray, place: int, to: int) -> None:
    struct.pack_into("<I", content, place, to - place)


def _header(message: bytes) -> int:
    """The offset of the table that a message is about."""
    return follow(message, field(message, follow(message, 0), _SCHEMA))


def _has_dictionary(arrow: bytes) -> bool:
    """Whether it is the schema of change rows: the only other one, of the events feed, has no such name.

    To have Arrow read the schema of each of 300 tables takes 7 ms.
    """
    return _DICTIONARY_FIELD.name.encode() in arrow


@cache
def _dictionary_message() -> bytes:
    """The message with the values of `_change_type`, the only column with a dictionary."""
    schema = pa.schema([_DICTIONARY_FIELD])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(empty_file_batch(schema))
        writer.close()
    content = sink.getvalue().to_pybytes()
    start = len(schema.serialize())
    metadata = _PREFIX + int.from_bytes(content[start + 4 : start + _PREFIX], "little")
    body = pa.ipc.read_message(pa.py_buffer(content[start:])).body
    return content[start : start + metadata + len(body)]
