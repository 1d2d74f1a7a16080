"""One data file while it is written: record batches of one table and schema version, in order of `_seq`.

Rows of a transaction go to disk before anyone knows whether the transaction will end, so a file remembers
how far it held whole transactions, and can go back to there. That is rare; it costs a copy then, and
nothing as long as it does not happen.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from engine.errors import EngineError
from engine.sink.commit import DataFile, SchemaVersion
from engine.sink.files import FILE_MODE, TEMPORARY_SUFFIX


class OutputError(EngineError):
    """The output could not be written, or is not ours to write."""


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turns what the file system refuses into an `OutputError` that names `path`."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise OutputError(
            f"writing {path} failed: {reason}; see to that and start again: what was committed is safe, "
            "and the rest is fetched anew"
        ) from error


@dataclass(frozen=True, slots=True)
class Extent:
    """How much a file holds: record batches, rows, and the range of what is in them."""

    batches: int
    rows: int
    first_seq: int
    last_seq: int
    min_timestamp_us: int
    max_timestamp_us: int

    def joined(self, other: Extent) -> Extent:
        """This, and then `other`."""
        return Extent(
            self.batches + other.batches,
            self.rows + other.rows,
            self.first_seq,
            other.last_seq,
            min(self.min_timestamp_us, other.min_timestamp_us),
            max(self.max_timestamp_us, other.max_timestamp_us),
        )


class TableFile:
    """A new Arrow IPC file at `out / path`; methods raise `OutputError`."""

    def __init__(self, out: Path, path: str, version: SchemaVersion, schema: pa.Schema) -> None:
        self.version = version
        self.bytes = 0
        """About what has been written so far."""
        self._schema = schema
        self._path = path
        self._full_path = out / path
        self._extent: Extent | None = None
        self._kept: Extent | None = None
        with writing(self._full_path):
            os.close(os.open(self._full_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE))
            self._sink = pa.OSFile(str(self._full_path), "wb")
            self._writer = pa.ipc.new_file(self._sink, schema)

    def write(self, batch: pa.RecordBatch, extent: Extent, size: int) -> None:
        """Append a record batch of about `size` bytes that holds `extent`."""
        with writing(self._full_path):
            self._writer.write_batch(batch)
        self._extent = self._extent.joined(extent) if self._extent else extent
        self.bytes += size

    def keep(self) -> None:
        """All that was written so far ends with a transaction."""
        self._kept = self._extent

    def close(self) -> None:
        """No more is written; harmless when done before."""
        if not self._sink.closed:
            with writing(self._full_path):
                self._writer.close()
                self._sink.close()

    def go_back(self) -> bool:
        """Close the file, without what was written after the last `keep`; false if then nothing is left."""
        self.close()
        with writing(self._full_path):
            if self._kept is None:
                self._full_path.unlink()
            elif self._kept != self._extent:
                self._rewrite(self._kept.batches)
        self._extent = self._kept
        return self._kept is not None

    def _rewrite(self, batches: int) -> None:
        temporary = self._full_path.with_name(self._full_path.name + TEMPORARY_SUFFIX)
        os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, FILE_MODE))
        with (
            pa.memory_map(str(self._full_path)) as source,
            pa.OSFile(str(temporary), "wb") as sink,
            pa.ipc.new_file(sink, self._schema) as writer,
        ):
            reader = pa.ipc.open_file(source)
            for index in range(batches):
                writer.write_batch(reader.get_batch(index))
        temporary.rename(self._full_path)

    def data_file(self) -> DataFile:
        """What the log says about the closed file."""
        assert self._extent is not None
        extent = self._extent
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
