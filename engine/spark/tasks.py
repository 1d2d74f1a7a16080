"""Plans and runs Spark tasks: the parts of files that each task reads.

Files stay in commit order and are divided into runs of about equal size, one run per task; a larger file is
split between its record batches, and several commits' rows of one file are read together. A task maps the
files into memory and passes record batches to Spark without processing rows in Python.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from engine.config.output_place import OutputPlace
from engine.dataclass import dataclass
from engine.output.change_schema import METADATA_NAMES
from engine.output.commit import DataFile, joined
from engine.output.data_files import DataFiles, FileRows
from engine.output.reader import decode_batch
from engine.output.run_ends import run_end_decoded
from engine.spark.row_versions import are_present
from engine.spark.schema import SOURCE_NAME

LEAST_TASK_BYTES = 4 << 20
"""The smallest task in bytes, unless `minPartitions` requires smaller ones."""
MOST_TASK_BYTES = 128 << 20

_ROWS_AT_ONCE = 1 << 14
_BYTES_AT_ONCE = 8 << 20
"""The size of the batches passed to Spark: large enough to be efficient, small enough for its memory."""


@dataclass(frozen=True, slots=True)
class View:
    """How some rows of a file are read: under other names, with constants for columns that they lack."""

    after: int
    """Rows with `after` < `_seq` <= `until`."""
    until: int
    names: Mapping[str, str]
    """The file's column → its name in the query; other columns of the table are left out."""
    constants: Mapping[str, Any]
    """The values of columns that the rows do not have."""
    digits: Mapping[str, int]
    """Columns of the query whose texts are times, and how many digits the fractions of seconds get."""
    period: tuple[str, ...] = ()
    """The file's columns of a period of system versioning, whose past rows are left out."""


@dataclass(frozen=True, slots=True)
class FileSlice:
    """Rows of one file."""

    rows: FileRows
    views: tuple[View, ...] = ()
    """Empty to read all these rows as they are in the file."""


class ReadTask(InputPartition):
    """The file slices of the output folder `out` that one Spark task reads, in order.

    `source`: the value of the rows' `_source`; None if one output is read.
    """

    def __init__(
        self, slices: Sequence[FileSlice], out: OutputPlace = Path(), source: str | None = None
    ) -> None:
        self.slices = tuple(slices)
        self.out = out
        self.source = source


def plan_tasks(
    out: OutputPlace,
    files: Sequence[DataFile],
    min_partitions: int | None,
    views: Mapping[str, tuple[View, ...]] | None = None,
    source: str | None = None,
) -> list[ReadTask]:
    """Tasks that read `files` of the output folder `out`, in their order; no tasks for no files.

    `views` has the views of the files that are not read as they are, by path in the output. Without
    `min_partitions` there is one task per core, or fewer if the tasks would be too small. Raises
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
    data_files = DataFiles(out)
    for file in joined(files):
        file_views = (views or {}).get(file.path, ())
        for run, rows in _cut(data_files, file, position, task_bytes):
            runs.setdefault(run, []).append(FileSlice(rows, file_views))
        position += file.bytes
    return [ReadTask(run, out, source) for run in runs.values()]


def _cut(
    data_files: DataFiles, file: DataFile, position: int, task_bytes: int
) -> Iterator[tuple[int, FileRows]]:
    """The file, or its parts, with their run's number; `position`: the total size of the files before."""
    rows = FileRows.of(file)
    # An object is read as a whole: to divide it would be to read it several times.
    if file.bytes <= task_bytes or not isinstance(data_files.out, Path):
        yield (position + file.bytes // 2) // task_bytes, rows
        return
    parts = data_files.by_batch(rows)
    step = file.bytes / len(parts)
    runs = (int((position + step * (index + 0.5)) / task_bytes) for index in range(len(parts)))
    for (run, _), grouped in groupby(zip(runs, parts, strict=True), key=lambda part: (part[0], part[1].path)):
        batches = [part for _, part in grouped]
        yield run, replace(batches[0], last_seq=batches[-1].last_seq)


def read_task(task: ReadTask, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The task's rows in the query's schema.

    Raises `ReaderError` if a file is missing or a value does not fit the schema.
    """
    data_files = DataFiles(task.out)
    for part in task.slices:
        origin = {"_database": part.rows.database, "_table": part.rows.table, SOURCE_NAME: task.source}
        for batch in data_files.batches(part.rows):
            if not part.views:
                yield from in_pieces(decode_batch(batch, schema, origin))
            for view in part.views:
                rows = _of_view(batch, view)
                if rows.num_rows:
                    decoded = decode_batch(_renamed(rows, view), schema, {**origin, **view.constants})
                    if view.period:
                        decoded = decoded.filter(are_present(rows.select(view.period)))
                    yield from in_pieces(_with_digits(decoded, view.digits))


def _of_view(batch: pa.RecordBatch, view: View) -> pa.RecordBatch:
    numbers = batch.column("_seq").to_numpy()
    first, end = np.searchsorted(numbers, [view.after, view.until], side="right")
    return batch.slice(int(first), int(end - first))


def _renamed(rows: pa.RecordBatch, view: View) -> pa.RecordBatch:
    """The rows with the query's names."""
    fields, columns = [], []
    for field, column in zip(rows.schema, rows.columns, strict=True):
        name = field.name if field.name in METADATA_NAMES else view.names.get(field.name)
        if name is not None:
            fields.append(field.with_name(name))
            columns.append(column)
    renamed = pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields, rows.schema.metadata))
    absent = renamed.schema.get_field_index("_absent_columns")
    return renamed.set_column(absent, "_absent_columns", _renamed_lists(renamed.column(absent), view.names))


def _with_digits(rows: pa.RecordBatch, digits: Mapping[str, int]) -> pa.RecordBatch:
    """The rows with that many digits after the point in these columns, whose texts have fewer or as many."""
    for name, count in digits.items():
        index = rows.schema.get_field_index(name)
        if index >= 0 and pa.types.is_string(rows.schema.field(index).type):
            # Only here: every streaming query starts a process that imports this module to plan only.
            import pyarrow.compute as pc

            texts = rows.column(index)
            pointed = pc.if_else(
                pc.match_substring(texts, "."), texts, pc.binary_join_element_wise(texts, "", ".")
            )
            long = pc.binary_join_element_wise(pointed, "0" * count, "")
            cut = pc.replace_substring_regex(long, rf"(\.\d{{{count}}}).*", r"\1")
            rows = rows.set_column(index, rows.schema.field(index), cut)
    return rows


def _renamed_lists(lists: pa.Array, names: Mapping[str, str]) -> pa.Array:
    """Lists of column names with the query's names; None for a list of which it has no column."""
    values = run_end_decoded(lists)
    if values.null_count == len(values):
        return values
    renamed: dict[tuple[str, ...] | None, list[str] | None] = {None: None}
    result = []
    for value in values.to_pylist():
        given = None if value is None else tuple(value)
        if given not in renamed:
            renamed[given] = [names[name] for name in given or () if name in names] or None
        result.append(renamed[given])
    return pa.array(result, values.type)


def in_pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The rows in batches of the size that Spark is given."""
    rows = min(_ROWS_AT_ONCE, max(1, batch.num_rows * _BYTES_AT_ONCE // max(1, batch.nbytes)))
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)
