"""The reader of archived binlog files: a task per file, or per part of a large one, decoded on an executor.

The driver plans with a first pass over the files. Executors share nothing with it but the files: a task
contains what its rows need that its part of a file does not have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from engine.archive.bounds import Bounds
from engine.archive.plan import Plan, plan, rows_inside
from engine.archive.reading import FilePart, Reading
from engine.errors import EngineError
from engine.output.change_schema import EVENT_FEED_SCHEMA
from engine.output.commit import SchemaKey
from engine.output.reader import decode_batch
from engine.pipeline.allocator import keep_freed_memory
from engine.spark.archive_options import ArchiveOptions
from engine.spark.schema import EVENTS, check_letter_case, check_readable, query_schema
from engine.spark.tasks import in_pieces


class ArchiveTask(InputPartition):
    """A part of a file, and all that decoding it needs."""

    def __init__(self, part: FilePart, reading: Reading, bounds: Bounds) -> None:
        self.part = part
        self.reading = reading
        self.bounds = bounds


class ArchiveReader(DataSourceReader):
    """Reads the files of a plan."""

    def __init__(self, options: Mapping[str, str], schema: pa.Schema, planned: Plan | None) -> None:
        """Raises `EngineError` for invalid options."""
        self._options = ArchiveOptions.parse(options)
        self._schema = schema
        self._plan = planned

    def __getstate__(self) -> dict[str, Any]:
        # The reader is sent with each task; the plan of all files stays on the driver.
        return {**self.__dict__, "_plan": None}

    def partitions(self) -> list[ArchiveTask]:
        """A task per part. Raises `EngineError` if a table's columns cannot be read in the query's schema."""
        found = self._plan or plan(self._options.request)
        versions = _versions(found)
        for key, version in versions.items():
            check_readable(key, version, self._schema)
        check_letter_case(self._schema, {name for version in versions.values() for name in version.names})
        return [ArchiveTask(part, found.reading, found.bounds) for part in found.survey.parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a part; Spark calls it on an executor."""
        assert isinstance(partition, ArchiveTask)
        keep_freed_memory()
        for found in rows_inside(partition.part, partition.reading, partition.bounds):
            database, table = found.table
            if bool(table) != self._options.events:
                origin = {"_database": database, "_table": table}
                yield from in_pieces(decode_batch(found.rows, self._schema, origin))


def plan_archive(given: Mapping[str, str]) -> tuple[Plan, pa.Schema]:
    """The plan for the options `given`, and the schema of a query. Raises `EngineError`."""
    options = ArchiveOptions.parse(given)
    found = plan(options.request)
    return found, _schema(options, found)


def _schema(options: ArchiveOptions, found: Plan) -> pa.Schema:
    if options.events:
        return query_schema({(*EVENTS, 1): EVENT_FEED_SCHEMA}, options.columns)
    versions = _versions(found)
    if not versions:
        raise EngineError(
            f"the binlog files of {options.request.pattern} have no rows of a table that matches "
            f"`{', '.join(options.tables)}`: change `tables`, or read other files"
        )
    return query_schema(versions, options.columns)


def _versions(found: Plan) -> dict[SchemaKey, pa.Schema]:
    """The schemas of all tables, numbered in the order in which they appear."""
    return {
        (*table, number): schema
        for table, schemas in found.survey.schemas.items()
        for number, schema in enumerate(schemas, 1)
    }
