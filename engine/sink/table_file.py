"""One data file while it is written: record batches of one table and schema version, in order of `_seq`.

Rows are written before their transaction is complete, so a file records where its last complete transaction
ends, and the rows after that can be removed or moved to another file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from engine.output.commit import DataFile, SchemaVersion
from engine.output.direct_io import DIRECT_BYTES
from engine.pipeline.message import Frame
from engine.sink.growing_file import GrowingFile
from engine.sink.ipc_file import Block, Template
from engine.sink.pack import Pack


class Extent(NamedTuple):
    """The number of record batches and rows in a file, and the ranges of `_seq` and commit time."""

    batches: int
    rows: int
    first_seq: int
    last_seq: int
    min_timestamp_us: int
    max_timestamp_us: int


class TableFile:
    """A new Arrow IPC file at `out / path`; methods raise `OutputError`."""

    def __init__(self, out: Path, path: str, version: SchemaVersion, template: Template) -> None:
        self.version = version
        self.path = path
        """Relative to `out`; of a part of a pack, after `move_to`."""
        self.content = GrowingFile(out / path)
        self.bytes = 0
        """The size in bytes of the record batches written so far."""
        self._template = template
        self._blocks: list[Block] = []
        self._kept: Extent | None = None
        self._open: Extent | None = None
        self._is_closed = False

    def write(self, messages: Iterable[Frame], extent: Extent) -> None:
        """Append record batches, which `extent` describes; `keep` or `drop_open` follows."""
        for message in messages:
            head = b"" if self.content.size else self._template.head
            block = Block.of(message, self.content.size + len(head))
            if block.body >= DIRECT_BYTES:
                block, metadata = block.with_body_on_page(message)
                self.content.append(head, metadata)
                self.content.append_large(message[len(message) - block.body :])
            else:
                self.content.append(head, message)
            self._blocks.append(block)
            self.bytes += block.metadata + block.body
        self._open = _joined(self._open, extent)

    def keep(self) -> None:
        """Mark a transaction boundary after everything written so far."""
        if self._open:
            self._kept = _joined(self._kept, self._open)
            self._open = None

    def close(self) -> None:
        """Write the footer and close the file; does nothing if it is closed."""
        self.finish()
        self.content.release()

    def finish(self) -> None:
        """Append the footer, with which `content` is complete; `close` or `move_to` may follow."""
        if not self._is_closed:
            self._is_closed = True
            self.content.hold(self._template.end(self._blocks))

    def move_to(self, pack: Pack) -> None:
        """Become a part of a pack; for a finished file that only waits in memory."""
        self.path = pack.add(self.content)

    def take_open(self) -> tuple[Iterator[Frame], Extent]:
        """Everything written since the last `keep`, as arguments of `write`; `drop_open` follows."""
        assert self._open is not None
        blocks = self._blocks[self._kept_batches :]
        return (self.content.read(block.offset, block.end) for block in blocks), self._open

    def drop_open(self) -> bool:
        """Remove everything written since the last `keep`, and close the file; false if no rows are left."""
        if self._kept is None:
            self._is_closed = True
            self.content.remove()
        elif self._open is not None:
            self.content.truncate(self._blocks[self._kept_batches].offset)
            del self._blocks[self._kept_batches :]
            self._is_closed = False
        self._open = None
        if self._kept is not None:
            self.close()
        return self._kept is not None

    @property
    def _kept_batches(self) -> int:
        return self._kept.batches if self._kept else 0

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
            self.content.size,
            extent.first_seq,
            extent.last_seq,
            extent.min_timestamp_us,
            extent.max_timestamp_us,
            self.content.checksum,
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
