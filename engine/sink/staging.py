"""The data files of the next commit: one open file per table, replaced by a new one when it is large; or
parts of one file for tables with few rows, if there are many of these.

Record batches go to their file as they come, so memory does not grow with a transaction or a commit.
`keep` marks a transaction boundary after everything written so far; `drop` removes what follows the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

from engine.binlog.position import BinlogPosition
from engine.output.change_schema import file_message, to_file_message
from engine.output.commit import DataFile, SchemaVersion, TableKey
from engine.output.data_file_names import data_file_name
from engine.output.files import table_folder
from engine.pipeline.message import Frame
from engine.pipeline.messages import StatementFacts, TableResult
from engine.schema.changes import TableName
from engine.sink.growing_file import GrowingFile
from engine.sink.ipc_file import template_of
from engine.sink.open_files import OpenFiles
from engine.sink.pack import Pack
from engine.sink.schema_book import SchemaBook
from engine.sink.table_file import Extent, TableFile
from engine.sink.truncate_row import truncate_row

Rows: TypeAlias = Frame | pa.RecordBatch
"""Rows in transit: a record batch message, or a record batch."""

ROLL_BYTES = 256 << 20
"""Size from which on a data file is closed and the next one begun."""
MOST_SMALL_FILES = 8
"""Of one commit, what only waits in memory is written as so many files; if there is more, as one pack."""
PACK_BYTES = 16 << 20
"""When so much of small files waits in memory, a pack is written before the commit is due."""


class Staging:
    """The data files of commit number `commit`, which is part of their names; raises `OutputError`.

    `on_written` is called once with each file, when it is finished and will not be changed before the commit;
    of some, content waits in memory that the callee has to write.
    """

    def __init__(
        self,
        out: Path,
        commit: int,
        schemas: SchemaBook,
        roll_bytes: int = ROLL_BYTES,
        epoch: int = 0,
        on_written: Callable[[Sequence[GrowingFile]], None] = lambda _: None,
    ) -> None:
        self._out = out
        self._epoch = epoch
        self._on_written = on_written
        self._closed: list[TableFile] = []
        """Closed, and not given to `on_written` yet: most have rows of a transaction that has not ended."""
        self._commit = commit
        self._schemas = schemas
        self._roll_bytes = roll_bytes
        self._files: list[TableFile] = []
        self._open: dict[TableKey, TableFile] = {}
        self._open_files = OpenFiles()
        self._created: dict[TableKey, int] = {}
        self._packs = 0
        self._written_since_kept: set[TableFile] = set()
        self._kept = (0, 0)
        self.rows = 0
        self.bytes = 0

    @property
    def has_open_rows(self) -> bool:
        """Whether anything was written since the last `keep`."""
        return bool(self._written_since_kept)

    @property
    def kept_rows(self) -> int:
        """The number of rows of complete transactions."""
        return self._kept[0]

    def add(self, result: TableResult, rows: Rows, sequence_base: int) -> int:
        """Write the rows of a result; `sequence_base` is added to their `_seq`. Returns their number."""
        count = rows.num_rows if isinstance(rows, pa.RecordBatch) else result.rows
        if not count:
            return 0
        if isinstance(rows, pa.RecordBatch):
            message, numbers = file_message(rows, sequence_base)
        else:
            message, numbers = to_file_message(rows, result.sequence_at, count, sequence_base)
        extent = Extent(
            batches=1,
            rows=len(numbers),
            first_seq=int(numbers[0]),
            last_seq=int(numbers[-1]),
            min_timestamp_us=result.min_timestamp,
            max_timestamp_us=result.max_timestamp,
        )
        version = self._schemas.version(result.database, result.table, result.schema)
        self._write(version, [message], extent)
        return count

    def empty(
        self, names: Iterable[TableName], position: BinlogPosition, facts: StatementFacts, last_seq: int
    ) -> int:
        """Write a `truncate` row for each of these tables that has rows; returns the last `_seq`.

        An empty table name stands for all tables of the database. `last_seq`: the one before the rows;
        `position`, `facts`: of the statement that emptied the tables.
        """
        for version in self._versions_with_rows(names):
            last_seq += 1
            row = truncate_row(version.arrow_schema(), last_seq, position, facts)
            time = facts.commit_timestamp
            self._write(version, [row], Extent(1, 1, last_seq, last_seq, time, time))
        return last_seq

    def _versions_with_rows(self, names: Iterable[TableName]) -> list[SchemaVersion]:
        """The newest version of each of these tables in which there are rows, committed or not."""
        known = [versions for name in names for versions in self._schemas.versions(name)]
        # Most tables of a snapshot are new, and with many tables there are many files.
        written = {file.version for file in self._files} if known else set()
        newest: dict[TableKey, SchemaVersion] = {}
        for versions in known:
            for version in reversed(versions):
                if version in written or self._schemas.is_logged(version):
                    newest[version.database, version.table] = version
                    break
        return list(newest.values())

    def keep(self) -> None:
        """Mark a transaction boundary after everything written so far."""
        for file in self._written_since_kept:
            file.keep()
        self._written_since_kept.clear()
        self._kept = self.rows, self.bytes
        self._give_closed()
        if self._open_files.waiting_bytes >= PACK_BYTES:
            self._pack_early()

    def drop(self) -> int:
        """Remove everything written since the last `keep`; returns its number of rows."""
        dropped = self.rows - self._kept[0]
        empty = {file for file in self._written_since_kept if not file.drop_open()}
        for file in self._written_since_kept:
            self._open_files.closed(file.content)
        self._open = {key: file for key, file in self._open.items() if file not in self._written_since_kept}
        self._files = [file for file in self._files if file not in empty]
        closed = dict.fromkeys((*self._closed, *self._written_since_kept))
        self._closed = [file for file in closed if file not in empty]
        self._written_since_kept.clear()
        self.rows, self.bytes = self._kept
        return dropped

    def move_open(self, later: Staging) -> None:
        """Move everything written since the last `keep` to the files of a later commit."""
        for file in self._files:
            if file in self._written_since_kept:
                later._write(file.version, *file.take_open())
        self.drop()

    def seal(self) -> tuple[tuple[DataFile, ...], tuple[SchemaVersion, ...]]:
        """Finish all files; returns what the commit lists: the files and their new schema versions."""
        for file in self._open.values():
            file.finish()
        small = self._small()
        contents = [file.content for file in self._open.values()]
        if len(small) > MOST_SMALL_FILES:
            # First, because it is the largest of most commits.
            contents = [self._packed(small), *(content for content in contents if not content.only_waits)]
        # Before other threads write the files.
        files = tuple(file.data_file() for file in self._files)
        self._give_closed()
        self._on_written(contents)
        return files, self._schemas.log(file.version for file in self._files)

    def _pack_early(self) -> None:
        """Make room in memory. Only between two transactions: what is in a pack cannot be removed from it."""
        small = self._small()
        # Others may wait, too: the ends of files that have been written to before, which stay theirs.
        waiting = sum(file.content.waiting for file in small)
        if len(small) > MOST_SMALL_FILES and waiting >= PACK_BYTES:
            for file in small:
                file.finish()
                self._open_files.closed(file.content)
                del self._open[file.version.database, file.version.table]
            pack = self._packed(small)
            # Here, and not in another thread: otherwise a slow disk would leave it in memory.
            pack.write_out()
            self._on_written([pack])

    def _small(self) -> list[TableFile]:
        return [file for file in self._open.values() if file.content.only_waits]

    def _packed(self, files: Iterable[TableFile]) -> GrowingFile:
        """The pack whose parts these finished files become."""
        pack = Pack(self._out, self._commit, self._epoch, self._packs)
        self._packs += 1
        for file in files:
            file.move_to(pack)
        return pack.content

    def _give_closed(self) -> None:
        closed, self._closed = self._closed, []
        self._on_written([file.content for file in closed])

    def _write(self, version: SchemaVersion, messages: Iterable[Frame], extent: Extent) -> None:
        file = self._file(version)
        before = file.bytes
        file.write(messages, extent)
        self._open_files.written(file.content)
        self._written_since_kept.add(file)
        self.rows += extent.rows
        self.bytes += file.bytes - before

    def _file(self, version: SchemaVersion) -> TableFile:
        key = version.database, version.table
        file = self._open.get(key)
        if file and (file.version is not version or file.bytes >= self._roll_bytes):
            self._close(file)
            file = None
        if not file:
            file = self._open[key] = self._create(key, version)
        return file

    def _close(self, file: TableFile) -> None:
        file.close()
        self._open_files.closed(file.content)
        if file in self._written_since_kept:
            self._closed.append(file)
        else:
            self._on_written([file.content])

    def _create(self, key: TableKey, version: SchemaVersion) -> TableFile:
        template = template_of(version.arrow)
        folder = table_folder(*key)
        number = self._created.get(key, 0)
        self._created[key] = number + 1
        name = data_file_name(self._commit, self._epoch, number)
        file = TableFile(self._out, f"{folder}/{name}", version, template)
        self._files.append(file)
        return file
