"""The rows of data files: an entry of the commit log, or several as one, as record batches.

Compaction and `vacuum` remove files that a query has planned to read. Compacted rows are in another file with
the same `_seq`, so rows whose file is gone are found again in the log by their table and `_seq`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa

from engine.dataclass import dataclass
from engine.errors import EngineError
from engine.output.commit import DataFile, TableKey, joined
from engine.output.commit_log import CommitLog
from engine.output.storage import OutputPlace, storage_of


class ReaderError(EngineError):
    """A table, commit or file does not exist, or the types of a column have no common type."""


class MissingFileError(ReaderError):
    """A data file does not exist."""


def open_data_file(out: OutputPlace, name: str) -> pa.ipc.RecordBatchFileReader:
    """A data file of the output. Raises `ReaderError` if it is damaged, and `MissingFileError`."""
    try:
        with _damage_of(out, name):
            return pa.ipc.open_file(storage_of(out).open(name))
    except FileNotFoundError:
        raise _missing(out, name) from None


def read_batch(out: OutputPlace, name: str, file: pa.ipc.RecordBatchFileReader, index: int) -> pa.RecordBatch:
    """A record batch of an open data file. Raises `ReaderError` if it is damaged."""
    with _damage_of(out, name):
        return file.get_batch(index)


@contextmanager
def _damage_of(out: OutputPlace, name: str) -> Iterator[None]:
    """Raise what Arrow finds wrong with a file as a `ReaderError`."""
    try:
        yield
    except (MemoryError, FileNotFoundError):
        raise
    except (pa.ArrowException, OSError) as error:
        # One of the operating system has a number, and names the file itself.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise ReaderError(f"{out / name} is damaged: {error}") from None


def _missing(out: OutputPlace, name: str) -> MissingFileError:
    reason = "it was removed from the output, or the folder is not mounted on this machine"
    return MissingFileError(f"{out / name} does not exist: {reason}")


@dataclass(frozen=True, slots=True)
class FileRows:
    """The rows of one table in one file from `first_seq`, which one of them has, to `last_seq`."""

    path: str
    """Relative to the output folder."""
    database: str
    table: str
    first_seq: int
    last_seq: int

    @classmethod
    def of(cls, entry: DataFile) -> FileRows:
        """The rows that an entry of the log lists."""
        return cls(entry.path, entry.database, entry.table, entry.first_seq, entry.last_seq)


class DataFiles:
    """Opens the data files of the output `out`. Methods raise `ReaderError` and `CommitLogError`."""

    def __init__(self, out: OutputPlace | str) -> None:
        self.out = storage_of(out).place
        self._found = _Found({}, 1, 0)

    def batches(self, rows: FileRows) -> Iterator[pa.RecordBatch]:
        """The rows in order, as the file has them."""
        for _, batch in self._parts(rows):
            yield batch

    def by_batch(self, rows: FileRows) -> list[FileRows]:
        """The rows divided as they are into record batches."""
        parts = []
        for part, batch in self._parts(rows):
            numbers = batch.column("_seq")
            parts.append(replace(part, first_seq=numbers[0].as_py(), last_seq=numbers[-1].as_py()))
        return parts

    def _parts(self, rows: FileRows) -> Iterator[tuple[FileRows, pa.RecordBatch]]:
        """Each record batch, cut to the rows, with the file that it is in."""
        try:
            file = open_data_file(self.out, rows.path)
        except MissingFileError:
            for moved in self._moved(rows):
                yield from self._parts(moved)
            return
        with file:
            indexes = range(file.num_record_batches)
            read = partial(read_batch, self.out, rows.path, file)
            first = bisect_left(indexes, rows.first_seq, key=lambda index: _last_seq(read(index)))
            for index in indexes[first:]:
                batch = read(index)
                numbers = batch.column("_seq").to_numpy()
                begin = int(np.searchsorted(numbers, rows.first_seq))
                end = int(np.searchsorted(numbers, rows.last_seq, side="right"))
                if begin < end:
                    whole = end - begin == batch.num_rows
                    yield rows, batch if whole else batch.slice(begin, end - begin)
                if end < batch.num_rows:
                    return

    def _moved(self, rows: FileRows) -> list[FileRows]:
        """Where the log has the rows now. Raises `MissingFileError` if it has no other place."""
        moved = self._found.files(rows)
        if not moved or any(part.path == rows.path for part in moved):
            self._found = _Found.read(CommitLog(self.out), rows)
            moved = self._found.files(rows)
        if not moved or any(part.path == rows.path for part in moved):
            raise _missing(self.out, rows.path)
        return moved


_LEAST_COMMITS_READ = 1000
"""So that the next rows are probably found without reading the log again."""


@dataclass(frozen=True, slots=True)
class _Found:
    """The entries of some commits, which cover the `_seq` from `first_seq` to `last_seq`."""

    entries: dict[TableKey, list[DataFile]]
    first_seq: int
    last_seq: int

    @classmethod
    def read(cls, log: CommitLog, rows: FileRows) -> _Found:
        """The entries of the commit that has the first one of the rows, and of later ones."""
        commits = range(log.oldest_version(), log.latest_version() + 1)
        first = commits.start + bisect_left(commits, rows.first_seq, key=lambda n: log.read(n).last_seq)
        entries: dict[TableKey, list[DataFile]] = {}
        last_seq = 0
        for commit in log.range(first, commits.stop - 1):
            if last_seq >= rows.last_seq and commit.version >= first + _LEAST_COMMITS_READ:
                break
            last_seq = commit.last_seq
            for entry in commit.files:
                entries.setdefault((entry.database, entry.table), []).append(entry)
        return cls(entries, rows.first_seq, last_seq)

    def files(self, rows: FileRows) -> list[FileRows]:
        """The files that have the rows; empty if these are not all among the commits."""
        if not self.first_seq <= rows.first_seq <= rows.last_seq <= self.last_seq:
            return []
        entries = joined(
            entry
            for entry in self.entries.get((rows.database, rows.table), ())
            if entry.first_seq <= rows.last_seq and entry.last_seq >= rows.first_seq
        )
        if not entries or entries[0].first_seq > rows.first_seq:
            return []
        found = [FileRows.of(entry) for entry in entries]
        found[0] = replace(found[0], first_seq=rows.first_seq)
        found[-1] = replace(found[-1], last_seq=min(found[-1].last_seq, rows.last_seq))
        return found


def _last_seq(batch: pa.RecordBatch) -> int:
    return int(batch.column("_seq")[-1].as_py()) if batch.num_rows else 0
