"""The rows of a transaction that has not ended: in memory while they are few, then in a temporary file."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import IO

import pyarrow as pa

from engine.archive.reading import TableKey

MOST_BYTES_IN_MEMORY = 64 << 20


class OpenTransaction:
    """Keeps record batches until `take` or `drop`."""

    def __init__(self, most_bytes_in_memory: int = MOST_BYTES_IN_MEMORY) -> None:
        self._most_bytes = most_bytes_in_memory
        self._rows: list[tuple[TableKey, pa.RecordBatch]] = []
        self._bytes = 0
        self._file: IO[bytes] | None = None
        self._stored: list[tuple[TableKey, int]] = []
        """Of each record batch in the file its table and its bytes there."""

    def add(self, table: TableKey, rows: pa.RecordBatch) -> None:
        """More rows of the transaction."""
        self._rows.append((table, rows))
        self._bytes += rows.nbytes
        if self._bytes > self._most_bytes:
            self._store()

    def take(self) -> Iterator[tuple[TableKey, pa.RecordBatch]]:
        """The transaction has ended: its rows in order, which are no longer kept here."""
        if self._file is not None:
            self._file.seek(0)
            for table, size in self._stored:
                yield table, pa.ipc.open_stream(self._file.read(size)).read_next_batch()
        yield from self._rows
        self.drop()

    def drop(self) -> None:
        """Forget the rows."""
        self._rows = []
        self._bytes = 0
        self._stored = []
        if self._file is not None:
            self._file.close()
            self._file = None

    def _store(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115
        for table, rows in self._rows:
            begin = self._file.tell()
            with pa.ipc.new_stream(self._file, rows.schema) as stream:
                stream.write_batch(rows)
            self._stored.append((table, self._file.tell() - begin))
        self._rows = []
        self._bytes = 0
