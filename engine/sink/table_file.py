"""One data file while it is written: record batches of one table and schema version, in order of `_seq`.

Rows are written before their transaction is complete, so a file records where its last complete transaction
ends, and the rows after that can be removed or moved to another file.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from io import FileIO
from pathlib import Path
from typing import NamedTuple

from engine.output.checksum import Checksum, checksum_of
from engine.output.commit import DataFile, SchemaVersion
from engine.output.direct_io import DIRECT_BYTES
from engine.output.files import FILE_MODE, FOLDER_MODE, start_writeback, writing
from engine.pipeline.messages import Frame
from engine.sink.direct_writer import DirectWriter
from engine.sink.ipc_file import Block, Template

_WRITEBACK_BYTES = 16 << 20
"""After each so many bytes, the kernel is requested to start writing them to disk."""


class Extent(NamedTuple):
    """The number of record batches and rows in a file, and the ranges of `_seq` and commit time."""

    batches: int
    rows: int
    first_seq: int
    last_seq: int
    min_timestamp_us: int
    max_timestamp_us: int


class TableFile:
    """A new Arrow IPC file at `out / path`; methods raise `OutputError`.

    A missing folder is created, but not durably: the committer does that.
    """

    def __init__(self, out: Path, path: str, version: SchemaVersion, template: Template) -> None:
        self.version = version
        self.bytes = 0
        """The size in bytes of the record batches written so far."""
        self._template = template
        self.path = path
        """Relative to `out`."""
        self._full_path = out / path
        self._blocks: list[Block] = []
        self._kept: Extent | None = None
        self._open: Extent | None = None
        self._size = 0
        self._cached = 0
        """Bytes written to the page cache since the last `start_writeback`."""
        self._direct: DirectWriter | None = None
        self._checksum: Checksum | None = Checksum()
        """None for a file with large record batches: to read them once more would cost too much."""
        with writing(self._full_path):
            self._file = _create(self._full_path)

    def write(self, messages: Iterable[Frame], extent: Extent) -> None:
        """Append record batches, which `extent` describes; `keep` or `drop_open` follows."""
        with writing(self._full_path):
            for message in messages:
                # The head is written with the first message: with many tables a separate call is expensive.
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
        """Write a message with its body on whole pages of the file, with direct I/O if possible."""
        self._checksum = None
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
        """Mark a transaction boundary after everything written so far."""
        if self._open:
            self._kept = _joined(self._kept, self._open)
            self._open = None

    def close(self) -> None:
        """Write the footer and close the file; does nothing if it is closed."""
        if not self._file.closed:
            with writing(self._full_path), self._file:
                if self._direct is not None:
                    self._direct.close()
                self._append(self._template.end(self._blocks))
                start_writeback(self._file.fileno())

    def take_open(self) -> tuple[Iterator[Frame], Extent]:
        """Close the file; returns everything written since the last `keep`, as arguments of `write`."""
        assert self._open is not None
        self.close()
        return self._read(self._blocks[self._kept_batches :]), self._open

    def drop_open(self) -> bool:
        """Close the file and remove everything written since the last `keep`; false if no rows are left."""
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
        """Truncate the closed file to its first `batches` record batches."""
        self._size = self._blocks[batches].offset
        del self._blocks[batches:]
        with FileIO(self._full_path, "r+b") as self._file:
            self._file.truncate(self._size)
            if self._checksum is not None:
                self._checksum = checksum_of(self._full_path)
            self._append(self._template.end(self._blocks))

    def _append(self, *parts: Frame) -> None:
        rest = [memoryview(part) for part in parts]
        if self._checksum is not None:
            for part in rest:
                self._checksum.add(part)
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
        """The commit log's description of the closed file."""
        assert self._kept is not None
        assert self._open is None
        extent = self._kept
        return DataFile(
            self.path,
            self.version.database,
            self.version.table,
            self.version.schema_version,
            extent.rows,
            self._size,
            extent.first_seq,
            extent.last_seq,
            extent.min_timestamp_us,
            extent.max_timestamp_us,
            None if self._checksum is None else self._checksum.text(),
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
