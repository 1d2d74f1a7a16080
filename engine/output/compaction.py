"""Compaction: the rows of many small data files of old commits go to few large ones.

It takes the commits of one segment together, later those of ten and of a hundred, so that files grow to the
size that is wanted while each row is copied three times at most. Small files that follow each other and have
one schema become one file, in record batches of a size that is fast to read. Nothing else of a commit changes
(`engine.output.file_moves`), so neither do the offsets of queries.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from functools import partial
from typing import BinaryIO

import pyarrow as pa

from engine.dataclass import dataclass
from engine.errors import EngineError
from engine.output import log_files
from engine.output.change_schema import with_all_change_types
from engine.output.checksum import checksum_of_content
from engine.output.commit import DataFile, SchemaKey
from engine.output.commit_log import CommitLog
from engine.output.compaction_progress import GRACE_SECONDS, CompactionProgress
from engine.output.data_file_names import commits_in, compacted_path, is_compacted, part_of
from engine.output.data_files import open_data_file, read_batch
from engine.output.file_moves import MoveJournal
from engine.output.files import writing
from engine.output.lock import maintenance_lock
from engine.output.log_segments import LogSegments
from engine.output.storage import OutputPlace, Storage, storage_of

LARGE_BYTES = 128 << 20
"""Larger files stay as they are; a new file has at least this size, and less than twice, where there is as
much to move."""
_LARGE_OBJECT_BYTES = 64 << 20
"""The same in an object store: writers and readers have an object in memory as a whole."""

_SEGMENTS_TOGETHER = (1, 10, 100)
_BATCH_BYTES = 4 << 20
_BATCH_ROWS = 1 << 16


@dataclass(slots=True)
class Compacted:
    """What was done."""

    files_before: int = 0
    files_after: int = 0
    bytes_after: int = 0
    """Size of the new files."""
    removed: int = 0
    """Old files that were removed."""

    def __bool__(self) -> bool:
        return bool(self.files_before or self.removed)


def compact(
    out: OutputPlace | str,
    *,
    grace_seconds: float = GRACE_SECONDS,
    report: Callable[[int], None] = lambda _: None,
) -> Compacted:
    """Compact all sealed segments of the output; `report` is called with the last commit of each step.

    Engine and queries may run meanwhile. Raises `OutputError` and `CommitLogError`.
    """
    storage = storage_of(out)
    out = storage.place
    done = Compacted()
    with maintenance_lock(out), writing(out):
        segments = LogSegments(out)
        journal = MoveJournal(out)
        journal.recover()
        done.removed = journal.remove_old_files(grace_seconds)
        progress = CompactionProgress(out)
        for together in _SEGMENTS_TOGETHER:
            for first, last in _groups(segments, progress.through(together), together):
                _compact_group(storage, journal, first, last, done)
                progress.reach(together, last)
                report(last)
        if not grace_seconds:
            done.removed += journal.remove_old_files(0)
    return done


def _groups(segments: LogSegments, through: int, together: int) -> Iterator[tuple[int, int]]:
    """First and last commit of each run of so many sealed segments after the commit `through`."""
    sealed = segments.sealed()
    if not sealed:
        return
    length = log_files.COMMITS_PER_SEGMENT
    size = together * length
    for group in range(sealed[0] // size * size, sealed[-1] + 1, size):
        # `vacuum` may have removed the first segments of a group.
        starts = range(max(group, sealed[0]), group + size, length)
        if not set(starts).issubset(sealed):
            return
        if group + size - 1 > through:
            yield starts[0], group + size - 1


def _compact_group(storage: Storage, journal: MoveJournal, first: int, last: int, done: Compacted) -> None:
    number = secrets.randbelow(1 << 60) + 1
    moves = journal.begin(first, last, number)
    # A new one, since another machine may have compacted these commits before they were claimed.
    log = CommitLog(storage.place)
    runs = _runs(storage, (entry for commit in log.range(first, last) for entry in commit.files))
    if not runs:
        journal.forget(moves)
        return
    paths = [
        compacted_path(
            run[0].database,
            run[0].table,
            commits_in(run[0].path)[0],
            commits_in(run[-1].path)[1],
            number + index,
        )
        for index, run in enumerate(runs)
    ]
    moves = journal.plan(
        moves, {entry.path: path for path, run in zip(paths, runs, strict=True) for entry in run}
    )
    schemas = log.schemas_at(last)
    checksums = {}
    try:
        for path, run in zip(paths, runs, strict=True):
            size, checksums[path] = _write(storage, path, run, schemas[_key(run[0])])
            done.bytes_after += size
    except (EngineError, OSError):
        journal.abandon(moves)
        raise
    for folder in {path.rpartition("/")[0] for path in paths}:
        storage.settle(folder)
    journal.complete(moves, checksums)
    done.files_before += len(moves.old_files)
    done.files_after += len(runs)


@dataclass(slots=True)
class _Table:
    """Files of one table and schema version, divided into runs as they come."""

    runs: list[list[DataFile]] = field(default_factory=list)
    bytes: int = 0
    """The size of the last run."""
    last_path: str = ""

    def add(self, storage: Storage, entry: DataFile) -> None:
        if entry.path == self.last_path:
            return
        self.last_path = entry.path
        large = LARGE_BYTES if storage.has_lock else min(LARGE_BYTES, _LARGE_OBJECT_BYTES)
        size = storage.size(entry.path) if is_compacted(entry.path) else entry.bytes
        stays = size >= large and part_of(entry.path) is None
        if stays or self.bytes >= large or not self.runs:
            self.runs.append([])
            self.bytes = 0
        if not stays:
            self.runs[-1].append(entry)
            self.bytes += size


def _runs(storage: Storage, entries: Iterable[DataFile]) -> list[list[DataFile]]:
    """Small files that become one each: of one table and schema version, and with no large one in between.

    Every part of a pack is copied, even one that is alone, so that the pack can be removed. A file is
    represented by the first entry that is about it.
    """
    tables: dict[SchemaKey, _Table] = {}
    for entry in entries:
        tables.setdefault(_key(entry), _Table()).add(storage, entry)
    return [run for table in tables.values() for run in table.runs if len(run) > 1 or part_of(run[0].path)]


def _write(storage: Storage, path: str, run: Sequence[DataFile], schema: pa.Schema) -> tuple[int, str]:
    """Write the rows of a run's files to a new file, durably but for its name; returns size and checksum."""

    def write(file: BinaryIO) -> None:
        with pa.ipc.new_file(file, schema) as writer:
            for batch in _joined_batches(storage, run):
                writer.write_batch(batch)

    with storage.create_with(path, write) as content:
        return content.size(), checksum_of_content(content).text()


def _joined_batches(storage: Storage, run: Iterable[DataFile]) -> Iterator[pa.RecordBatch]:
    """The rows of all files in record batches of about the same size."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    paths = [entry.path for entry in run]
    files = storage.side_by_side(partial(open_data_file, storage.place), paths)
    for path, opened in zip(paths, files, strict=True):
        with opened as file:
            for index in range(file.num_record_batches):
                batch = with_all_change_types(read_batch(storage.place, path, file, index))
                waiting.append(batch)
                rows += batch.num_rows
                size += batch.get_total_buffer_size()
                if size >= _BATCH_BYTES or rows >= _BATCH_ROWS:
                    yield _joined(waiting)
                    waiting, rows, size = [], 0, 0
    if waiting:
        yield _joined(waiting)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    (joined,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return joined


def _key(entry: DataFile) -> SchemaKey:
    return entry.database, entry.table, entry.schema_version
