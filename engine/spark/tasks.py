"""Plans and runs Spark tasks: the parts of files that each task reads.

Files stay in commit order and are divided into runs of about equal size, one run per task; a larger file is
split between its record batches. A task maps the files into memory and passes record batches to Spark without
processing rows in Python.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from engine.output.commit_log import DataFile
from engine.output.reader import decode_batch, open_data_file

LEAST_TASK_BYTES = 4 << 20
"""The smallest task in bytes, unless `minPartitions` requires smaller ones."""
MOST_TASK_BYTES = 128 << 20

_ROWS_AT_ONCE = 1 << 14
_BYTES_AT_ONCE = 8 << 20
"""The size of the batches passed to Spark: large enough to be efficient, small enough for its memory."""


@dataclass(frozen=True, slots=True)
class FileSlice:
    """Record batches `first_batch` to `end_batch` (exclusive) of one file; None means to the end."""

    path: Path
    database: str
    table: str
    first_batch: int = 0
    end_batch: int | None = None


class ReadTask(InputPartition):
    """The file slices that one Spark task reads, in order."""

    def __init__(self, slices: Sequence[FileSlice]) -> None:
        self.slices = tuple(slices)


def plan_tasks(out: Path, files: Sequence[DataFile], min_partitions: int | None) -> list[ReadTask]:
    """Tasks that read `files` of the output folder `out`, in their order; no tasks for no files.

    Without `min_partitions` there is one task per core, or fewer if the tasks would be too small. Raises
    `ReaderError` if a large file does not exist.
    """
    total = sum(file.bytes for file in files)
    if min_partitions is None:
        task_bytes = max(LEAST_TASK_BYTES, total // (os.cpu_count() or 1))
    else:
        task_bytes = max(1, total // min_partitions)
    task_bytes = min(MOST_TASK_BYTES, task_bytes)
    runs: dict[int, list[FileSlice]] = {}
    position = 0
    for file in files:
        for run, part in _cut(out, file, position, task_bytes):
            runs.setdefault(run, []).append(part)
        position += file.bytes
    return [ReadTask(run) for run in runs.values()]


def _cut(out: Path, file: DataFile, position: int, task_bytes: int) -> Iterator[tuple[int, FileSlice]]:
    """The file, or its parts, with their run's number; `position`: the total size of the files before."""
    whole = FileSlice(out / file.path, file.database, file.table)
    if file.bytes <= task_bytes:
        yield (position + file.bytes // 2) // task_bytes, whole
        return
    with open_data_file(whole.path) as opened:
        count = opened.num_record_batches
    runs = (int((position + file.bytes * (index + 0.5) / count) / task_bytes) for index in range(count))
    for run, indexes in groupby(enumerate(runs), key=itemgetter(1)):
        batches = [index for index, _ in indexes]
        yield run, replace(whole, first_batch=batches[0], end_batch=batches[-1] + 1)


def read_task(task: ReadTask, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The task's rows in the query's schema.

    Raises `ReaderError` if a file is missing or a value does not fit the schema.
    """
    for part in task.slices:
        origin = {"_database": part.database, "_table": part.table}
        with open_data_file(part.path) as file:
            end = file.num_record_batches if part.end_batch is None else part.end_batch
            for index in range(part.first_batch, end):
                yield from _in_pieces(decode_batch(file.get_batch(index), schema, origin))


def _in_pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    rows = min(_ROWS_AT_ONCE, max(1, batch.num_rows * _BYTES_AT_ONCE // max(1, batch.nbytes)))
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)
