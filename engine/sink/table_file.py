"""One data file while it is written: record batches of one table and schema version, in order of `_seq`.

Rows of a transaction go to disk before anyone knows whether the transaction will end, so a file remembers
how far it held whole transactions, and can give back what came after.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from io import FileIO
from pathlib import Path
from typing import NamedTuple

from engine.output.commit import DataFile, SchemaVersion
from engine.output.direct_io import DIRECT_BYTES
from engine.output.files import FILE_MODE, FOLDER_MODE, start_writeback, writing
from engine.pipeline.messages import Frame
from engine.sink.direct_writer import DirectWriter
from engine.sink.ipc_file import Block, Template

_WRITEBACK_BYTES = 16 << 20
"""After so many more bytes the kernel is told to begin writing them."""


class Extent(NamedTuple):
    """How much a file holds: record batches, rows, and the range of what is in them."""

    batches: int
    rows: int
    first_seq: int
    last_seq: int
    min_timestamp_us: int
    max_timestamp_us: int


class TableFile:
    """A new Arrow IPC file at `out / path`; methods raise `OutputError`.

    Its folder is made where it is missing, but not durably: whoever commits the file sees to that.
    """

    def __init__(self, out: Path, path: str, version: SchemaVersion, template: Template) -> None:
        self.version = version
        self.bytes = 0
        """What record batches have been written so far take."""
        self._template = template
        self._path = path
        self._full_path = out / path
        self._blocks: list[Block] = []
        self._kept: Extent | None = None
        self._open: Extent | None = None
        self._size = 0
        self._cached = 0
        """Bytes that went into the page cache, and that nobody has told the kernel to write yet."""
        self._direct: DirectWriter | None = None
        with writing(self._full_path):
            self._file = _create(self._full_path)

    def write(self, messages: Iterable[Frame], extent: Extent) -> None:
        """Append record batches that hold `extent`; `keep` or `drop_open` follows."""
        with writing(self._full_path):
            for message in messages:
                # Only with the first message, since each call has its price where there are many tables.
                head = b"" if self._size else self._template.head
                block = Block.of(message, self._size + len(head))
                if block.body >= DIRECT_BYTES:
                    block = self._write_large(head, message, block)
                else:
                    self._append(head, message)
                self._blocks.append(block)
                self.bytes += block.metadata + block.body
            if self._cached >= _WRITEBACK_BYTES:
                self._cached = 0
                start_writeback(self._file.fileno())
        self._open = _joined(self._open, extent)

    def _write_large(self, head: bytes, message: Frame, block: Block) -> Block:
        """Write a message with its body on whole pages of the file, past the page cache where that can be."""
        block, metadata = block.with_body_on_page(message)
        self._append(head, metadata)
        body = message[len(message) - block.body :]
        if self._direct is None:
            self._direct = DirectWriter(self._full_path)
        written = self._direct.write(body, self._size)
        self._size += written
        if written < len(body):
            self._append(body[written:])
        return block

    def keep(self) -> None:
        """All that was written so far ends with a transaction."""
        if self._open:
            self._kept = _joined(self._kept, self._open)
            self._open = None

    def close(self) -> None:
        """No more is written; harmless when done before."""
        if not self._file.closed:
            with writing(self._full_path), self._file:
                if self._direct is not None:
                    self._direct.close()
                self._append(self._template.end(self._blocks))
                start_writeback(self._file.fileno())

    def take_open(self) -> tuple[Iterator[Frame], Extent]:
        """Close the file; what was written since the last `keep`, as another file's `write` takes it."""
        assert self._open is not None
        self.close()
        return self._read(self._blocks[self._kept_batches :]), self._open

    def drop_open(self) -> bool:
        """Close the file, without what was written since the last `keep`; false if then nothing is left."""
        self.close()
        with writing(self._full_path):
            if self._kept is None:
                self._full_path.unlink()
            elif self._open is not None:
                self._cut_off(self._kept_batches)
        self._open = None
        return self._kept is not None

    @property
    def _kept_batches(self) -> int:
        return self._kept.batches if self._kept else 0

    def _cut_off(self, batches: int) -> None:
        """Keep no more than so many batches in the closed file."""
        self._size = self._blocks[batches].offset
        del self._blocks[batches:]
        with FileIO(self._full_path, "r+b") as self._file:
            self._file.truncate(self._size)
            self._append(self._template.end(self._blocks))

    def _append(self, *parts: Frame) -> None:
        rest = [memoryview(part) for part in parts]
        while rest:
            written = os.pwritev(self._file.fileno(), rest, self._size)
            self._size += written
            self._cached += written
            while rest and written >= len(rest[0]):
                written -= len(rest.pop(0))
            if rest:
                rest[0] = rest[0][written:]

    def _read(self, blocks: Sequence[Block]) -> Iterator[Frame]:
        with self._full_path.open("rb") as file:
            for block in blocks:
                file.seek(block.offset)
                yield file.read(block.end - block.offset)

    def data_file(self) -> DataFile:
        """What the log says about the closed file."""
        assert self._kept is not None
        assert self._open is None
        extent = self._kept
        return DataFile(
            self._path,
            self.version.database,
            self.version.table,
            self.version.schema_version,
            extent.rows,
            self._size,
            extent.first_seq,
            extent.last_seq,
            extent.min_timestamp_us,
            extent.max_timestamp_us,
        )


def _joined(first: Extent | None, then: Extent) -> Extent:
    if first is None:
        return then
    return Extent(
        first.batches + then.batches,
        first.rows + then.rows,
        first.first_seq,
        then.last_seq,
        min(first.min_timestamp_us, then.min_timestamp_us),
        max(first.max_timestamp_us, then.max_timestamp_us),
    )


def _create(path: Path) -> FileIO:
    try:
        return FileIO(path, "xb", opener=_private)
    except FileNotFoundError:
        path.parent.mkdir(mode=FOLDER_MODE, exist_ok=True)
        return FileIO(path, "xb", opener=_private)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, FILE_MODE)
