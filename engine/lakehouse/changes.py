"""From the change rows of a range to the rows that a MERGE needs: the newest per key, or how often each row.

The files are read with the names of their era (`engine.spark.tasks`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from engine.config.output_place import OutputPlace
from engine.dataclass import dataclass
from engine.lakehouse.columns import COPIES
from engine.output.commit import DataFile
from engine.output.data_files import DataFiles, FileRows
from engine.output.run_ends import run_end_decoded
from engine.spark.replay import (
    NO_COLUMN,
    PUTS_ROW,
    column,
    copies_of,
    equal_rows,
    has_partial_json,
    is_present,
    only_if,
    with_keys_of_preimages,
)
from engine.spark.schema import spark_schema
from engine.spark.task_source import tasks_read
from engine.spark.tasks import View, plan_tasks, read_task

Views = Mapping[str, tuple[View, ...]]
"""How the files of a range are read, by path."""


@dataclass(frozen=True, slots=True)
class RangeFacts:
    """What must be known of a range before it is read."""

    rows: int
    partial: bool
    """Whether row images lack columns (`binlog_row_image` MINIMAL or NOBLOB)."""


def range_facts(
    out: OutputPlace, files: Sequence[DataFile], views: Views, generated: Collection[str]
) -> RangeFacts:
    """The facts of a range; two columns of its files are read, mapped into memory.

    An image that lacks only `generated` columns (`TableRows.generated_names`) does not lack any.
    """
    rows = 0
    partial = False
    data_files = DataFiles(out)
    for file in files:
        for batch in data_files.batches(FileRows.of(file)):
            numbers = batch.column("_seq").to_numpy()
            for view in views[file.path]:
                first, end = map(int, np.searchsorted(numbers, [view.after, view.until], side="right"))
                rows += end - first
                absent = run_end_decoded(batch.column("_absent_columns").slice(first, end - first))
                partial = partial or any(
                    view.names.get(name) not in generated for name in absent.flatten().unique().to_pylist()
                )
    return RangeFacts(rows, partial)


def change_rows(
    spark: SparkSession,
    out: OutputPlace,
    files: Sequence[DataFile],
    views: Views,
    schema: pa.Schema,
    rows: int,
) -> DataFrame:
    """The change rows of the files; `rows` is about how many they are.

    A few are read here and now, since tasks take longer to plan than to read them.
    """
    stored = {path: tuple(map(_stored, found)) for path, found in views.items()}
    tasks = plan_tasks(out, files, None, stored)
    if rows <= _FEW_ROWS and sum(file.bytes for file in files) <= _FEW_BYTES:
        read = pa.Table.from_batches((batch for task in tasks for batch in read_task(task, schema)), schema)
        return spark.createDataFrame(read, spark_schema(schema))
    return tasks_read(spark, tasks, schema)


_FEW_ROWS, _FEW_BYTES = 50_000, 16 << 20


def _stored(view: View) -> View:
    """The view with constants as targets store them: times as microseconds."""
    constants = {
        name: value // timedelta(microseconds=1) if isinstance(value, timedelta) else value
        for name, value in view.constants.items()
    }
    return replace(view, constants=constants)


def newest_rows(changes: DataFrame, keys: Sequence[str], columns: Sequence[str]) -> DataFrame:
    """The newest change row of each key, with `_change_type` and `_seq`."""
    row = F.struct("_change_type", "_seq", *map(column, columns))
    newest = changes.groupBy(*map(column, keys)).agg(F.max_by(row, "_seq").alias(NO_COLUMN))
    return newest.select(f"{NO_COLUMN}.*")


def newest_values(changes: DataFrame, keys: Sequence[str], columns: Sequence[str]) -> DataFrame:
    """As `newest_rows`, from partial row images: `_absent_columns` lists columns without a value."""
    complete = only_if(
        changes,
        ~has_partial_json(changes, columns),
        "a row image has a partial JSON update (binlog_row_value_options=PARTIAL_JSON) without the document "
        "that it changes: a mirror needs binlog_row_image=FULL with that option",
    )
    kind = F.col("_change_type")
    starts_row = kind.isin("insert", "snapshot")

    def numbers(name: str) -> Column:
        return F.when(kind.isin(*PUTS_ROW) & (starts_row | is_present(name)), F.col("_seq"))

    others = [name for name in columns if name not in keys]
    values = [F.max_by(column(name), numbers(name)).alias(name) for name in others]
    absent = [F.when(F.max(numbers(name)).isNull(), F.lit(name)) for name in others]
    state = (
        with_keys_of_preimages(complete, keys)
        .groupBy(*map(column, keys))
        .agg(
            F.max_by("_change_type", "_seq").alias("_change_type"),
            F.max("_seq").alias("_seq"),
            F.array_compact(F.array(*absent)).alias("_absent_columns"),
            *values,
        )
    )
    return state.select("_change_type", "_seq", "_absent_columns", *map(column, columns))


def counted_rows(changes: DataFrame, columns: Sequence[str], generated: Collection[str]) -> DataFrame:
    """By how much the number of each row grew, as `_copies`; rows whose number stays are left out."""
    numbers = {COPIES: copies_of(), "_seq": F.max("_seq")}
    return equal_rows(changes, columns, generated, numbers).where(f"{COPIES} != 0")
