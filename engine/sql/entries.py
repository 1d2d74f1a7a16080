"""Reads the entries of an output in the order of `_seq`, or backwards, with few rows in memory.

The data files of a commit are merged: each is opened when the order comes to its first entry, and some rows
at a time become Python values. Arrow files can be read from their end, so that the way back needs no copy.
Transactions that were rolled back after XA PREPARE are left out, with the rows that undo them.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from engine.binlog.position import BinlogPosition
from engine.dataclass import dataclass
from engine.errors import EngineError
from engine.output.change_schema import METADATA_NAMES
from engine.output.commit import Commit, DataFile
from engine.output.commit_log import CommitLog
from engine.output.data_files import DataFiles, FileRows
from engine.output.reader import decode_batch, merged_schema
from engine.schema.changes import TableName
from engine.sql.rolled_back import RolledBackEntries
from engine.sql.selection import Place, Selection
from engine.sql.tables import Definitions, Elsewhere, SqlTable, nowhere

_ROWS_AT_A_TIME = 1000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LOSSY_DATES, _LOSSY_TEXTS = "zero_dates", "invalid_characters"
_REPLACEMENT = "\ufffd"


@dataclass(frozen=True, slots=True)
class RowEntry:
    """One change row."""

    seq: int
    place: Place
    table: SqlTable
    kind: str
    values: tuple[Any, ...]
    absent: frozenset[int]
    """The columns that the row image does not contain."""


@dataclass(frozen=True, slots=True)
class FeedEntry:
    """One entry of the events feed."""

    seq: int
    place: Place
    kind: str
    database: str
    statement: str
    """Empty if the event has none."""
    data: str
    """JSON."""


@dataclass(frozen=True, slots=True)
class CommitEnd:
    """Between two commits of the output, where a transaction ends, too."""


Entry = RowEntry | FeedEntry | CommitEnd


class Entries:
    """The entries of an output up to its last commit, limited to a selection."""

    def __init__(self, log: CommitLog, selection: Selection, elsewhere: Elsewhere = nowhere) -> None:
        """Raises `CommitLogError`."""
        self._log = log
        self._data_files = DataFiles(log.out)
        self._selection = selection
        self._first, self._last = log.oldest_version(), log.latest_version()
        self._schemas = log.schemas_at(self._last)
        self._rolled_back = RolledBackEntries(log, self._first, self._last)
        self._flavor = log.read(self._last).position.flavor
        self._definitions = Definitions(log, self._first, self._last, elsewhere)
        self._tables: dict[tuple[str, str, int, int], SqlTable] = {}

    def read(self, *, backward: bool) -> Iterator[Entry]:
        """The entries, each once. Raises `EngineError` for rows whose values the output does not have."""
        versions = range(self._first, self._last + 1)
        for version in reversed(versions) if backward else versions:
            commit = self._log.read(version)
            files = [file for file in commit.files if self._may_want(file)]
            yield from self._merged(commit, files, backward)
            yield CommitEnd()

    def _may_want(self, file: DataFile) -> bool:
        times = (_EPOCH + timedelta(microseconds=us) for us in (file.min_timestamp_us, file.max_timestamp_us))
        if not self._selection.may_want_between(*times):
            return False
        return not file.table or self._selection.tables.wants(file.database, file.table)

    def _merged(self, commit: Commit, files: Sequence[DataFile], backward: bool) -> Iterator[Entry]:
        sign = -1 if backward else 1
        waiting = sorted(
            ((-file.last_seq if backward else file.first_seq), file.path, file) for file in files
        )
        waiting.reverse()
        heap: list[tuple[int, RowEntry | FeedEntry, Iterator[RowEntry | FeedEntry]]] = []
        while waiting or heap:
            if waiting and (not heap or waiting[-1][0] < heap[0][0]):
                stream = self._file_entries(commit, waiting.pop()[2], backward)
            else:
                _, entry, stream = heapq.heappop(heap)
                yield entry
            following = next(stream, None)
            if following is not None:
                heapq.heappush(heap, (sign * following.seq, following, stream))

    def _file_entries(self, commit: Commit, file: DataFile, backward: bool) -> Iterator[RowEntry | FeedEntry]:
        schema = self._schemas[file.database, file.table, file.schema_version]
        plain = merged_schema([schema])
        rows = FileRows.of(file)
        for record_batch in reversed(self._data_files.by_batch(rows)) if backward else [rows]:
            for batch in self._data_files.batches(record_batch):
                starts = range(0, batch.num_rows, _ROWS_AT_A_TIME)
                for start in reversed(starts) if backward else starts:
                    part = decode_batch(batch.slice(start, _ROWS_AT_A_TIME), plain)
                    entries = list(self._entries_of(commit, file, part))
                    yield from reversed(entries) if backward else entries

    def _entries_of(
        self, commit: Commit, file: DataFile, part: pa.RecordBatch
    ) -> Iterator[RowEntry | FeedEntry]:
        cells = part.to_pydict()
        own = [cells[name] for name in part.schema.names if name not in METADATA_NAMES]
        # Rows of one event have one place.
        last: tuple[Any, ...] | None = None
        place, is_wanted = _NOWHERE, False
        for number, where in enumerate(zip(*(cells[name] for name in _PLACE), strict=True)):
            if where != last:
                last, place = where, _place(*where)
                is_wanted = self._selection.wants(place)
            seq = cells["_seq"][number]
            if not is_wanted or self._rolled_back.contain(seq):
                continue
            if not file.table:
                yield FeedEntry(seq, place, *(cells[name][number] or "" for name in _FEED))
                continue
            table = self._table(file, seq)
            absent = table.indexes(cells["_absent_columns"][number] or ())
            values = tuple([column[number] for column in own])
            entry = RowEntry(seq, place, table, cells["_change_type"][number], values, absent)
            _check_values(commit, entry)
            yield entry

    def _table(self, file: DataFile, seq: int) -> SqlTable:
        definition = self._definitions.at(TableName(file.database, file.table), seq)
        key = file.database, file.table, file.schema_version, id(definition)
        if key not in self._tables:
            schema = self._schemas[file.database, file.table, file.schema_version]
            self._tables[key] = SqlTable.of(schema, definition, self._flavor)
        return self._tables[key]


_FEED = ("type", "database", "statement", "data")
_PLACE = ("_file", "_pos", "_commit_timestamp", "_gtid")
_NOWHERE = Place(BinlogPosition("", 0), _EPOCH, None)


def _place(file: str | None, position: int | None, time: datetime | None, gtid: str | None) -> Place:
    return Place(BinlogPosition(file or "", position or 0), time or _EPOCH, gtid)


def _check_values(commit: Commit, entry: RowEntry) -> None:
    """Raise `EngineError` if a value is not the server's, but what the output shows in its place."""
    if entry.kind in ("truncate", "snapshot"):
        return
    if commit.counters.get(_LOSSY_DATES):
        for index, column in enumerate(entry.table.columns):
            if column.format.lossy_null and entry.values[index] is None and index not in entry.absent:
                raise EngineError(
                    f"column {column.name} of {entry.table.name} at {entry.place} may be a date that no "
                    "calendar has, such as 0000-00-00, which this output does not contain: read the binlog "
                    "files or the server instead, or decode with --temporal text"
                )
    if commit.counters.get(_LOSSY_TEXTS):
        for column, value in zip(entry.table.columns, entry.values, strict=True):
            if isinstance(value, str) and _REPLACEMENT in value:
                raise EngineError(
                    f"column {column.name} of {entry.table.name} at {entry.place} contains bytes that are "
                    "not valid in its character set, which no statement can write: leave the table out with "
                    "--exclude-tables"
                )
