"""A data frame of tasks that the driver has planned: a data source whose partitions come with its options.

Spark would plan a source in another process; the driver has planned many tables at once.
"""

from __future__ import annotations

import base64
import pickle
from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from engine.spark.schema import arrow_schema, spark_schema
from engine.spark.tasks import ReadTask, read_task

_TASKS = "tasks"


def tasks_read(spark: SparkSession, tasks: Sequence[ReadTask], schema: pa.Schema) -> DataFrame:
    """The rows of the tasks, which executors read."""
    spark.dataSource.register(_PlannedSource)
    packed = base64.b64encode(pickle.dumps(list(tasks))).decode()
    return spark.read.format(_PlannedSource.name()).schema(spark_schema(schema)).option(_TASKS, packed).load()


class _PlannedSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "binlog-engine-tasks"

    def reader(self, schema: StructType) -> DataSourceReader:
        return _PlannedReader(self.options[_TASKS], arrow_schema(schema))


class _PlannedReader(DataSourceReader):
    def __init__(self, packed: str, schema: pa.Schema) -> None:
        self._packed = packed
        self._schema = schema

    def partitions(self) -> Sequence[ReadTask]:
        return pickle.loads(base64.b64decode(self._packed)) or [ReadTask(())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, ReadTask)
        return read_task(partition, self._schema)
