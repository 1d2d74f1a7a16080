"""One data file while it is written: record batches of one table and schema version, in order of `_seq`.

Rows of a transaction go to disk before anyone knows whether the transaction will end, so a file remembers
how far it held whole transactions, and can give back what came after. That is rare: it costs a copy then,
and nothing as long as it does not happen.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from engine.sink.commit import DataFile, SchemaVersion
from engine.sink.files import FILE_MODE, TEMPORARY_SUFFIX, start_writeback, writing

_BUFFER_BYTES = 1 << 16
"""A record batch has dozens of small buffers; large ones go past this."""
_WRITEBACK_BYTES = 16 << 20
"""After so many more bytes the kernel is told to begin writing them."""


@dataclass(frozen=True, slots=True)
class Extent:
    """How much a file holds: record batches, rows, and the range of what is in them."""

    batches: int
    rows: int
    first_seq: int
    last_seq: int
    min_timestamp_us: int
    max_timestamp_us: int


class TableFile:
    """A new Arrow IPC file at `out / path`; methods raise `OutputError`."""

    def __init__(self, out: Path, path: str, version: SchemaVersion, schema: pa.Schema) -> None:
        self.version = version
        self.bytes = 0
        """About what has been written so far."""
        self._schema = schema
        self._path = path
        self._full_path = out / path
        self._kept: Extent | None = None
        self._open: Extent | None = None
        self._open_bytes = 0
        self._written_back = 0
        with writing(self._full_path):
            os.close(os.open(self._full_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE))
            self._file = pa.OSFile(str(self._full_path), "wb")
            self._sink = pa.BufferedOutputStream(self._file, _BUFFER_BYTES)
            self._writer = pa.ipc.new_file(self._sink, schema)

    def write(self, batches: Iterable[pa.RecordBatch], extent: Extent, size: int) -> None:
        """Append record batches of about `size` bytes that hold `extent`; `keep` or `drop_open` follows."""
        with writing(self._full_path):
            for batch in batches:
                self._writer.write_batch(batch)
        self._open = _joined(self._open, extent)
        self._open_bytes += size
        self.bytes += size
        if self.bytes - self._written_back >= _WRITEBACK_BYTES:
            self._written_back = self.bytes
            start_writeback(self._file.fileno())

    def keep(self) -> None:
        """All that was written so far ends with a transaction."""
        if self._open:
            self._kept = _joined(self._kept, self._open)
            self._open, self._open_bytes = None, 0

    def close(self) -> None:
        """No more is written; harmless when done before."""
        if not self._sink.closed:
            with writing(self._full_path):
                self._writer.close()
                self._sink.close()

    def take_open(self) -> tuple[Iterator[pa.RecordBatch], Extent, int]:
        """Close the file; what was written since the last `keep`, as another file's `write` takes it."""
        assert self._open is not None
        self.close()
        first = self._kept.batches if self._kept else 0
        return self._read(first, first + self._open.batches), self._open, self._open_bytes

    def drop_open(self) -> bool:
        """Close the file, without what was written since the last `keep`; false if then nothing is left."""
        self.close()
        with writing(self._full_path):
            if self._kept is None:
                self._full_path.unlink()
            elif self._open is not None:
                self._rewrite(self._read(0, self._kept.batches))
        self._open, self._open_bytes = None, 0
        return self._kept is not None

    def _read(self, first: int, end: int) -> Iterator[pa.RecordBatch]:
        with pa.memory_map(str(self._full_path)) as source:
            reader = pa.ipc.open_file(source)
            for index in range(first, end):
                yield reader.get_batch(index)

    def _rewrite(self, batches: Iterable[pa.RecordBatch]) -> None:
        temporary = self._full_path.with_name(self._full_path.name + TEMPORARY_SUFFIX)
        os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, FILE_MODE))
        with pa.OSFile(str(temporary), "wb") as sink, pa.ipc.new_file(sink, self._schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        temporary.rename(self._full_path)

    def data_file(self) -> DataFile:
        """What the log says about the closed file."""
        assert self._kept is not None
        assert self._open is None
        extent = self._kept
        with writing(self._full_path):
            size = self._full_path.stat().st_size
        return DataFile(
            self._path,
            self.version.database,
            self.version.table,
            self.version.schema_version,
            extent.rows,
            size,
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
