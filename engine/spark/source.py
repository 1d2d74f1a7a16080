"""The `binlog` data source: `spark.read.format("binlog")` and `spark.readStream.format("binlog")`.

Spark creates it in separate Python processes and pickles its readers, so they contain only plain data and
open files on demand. Rows are passed as the Arrow record batches of the committed files. Every Spark version
imports this module when it discovers data sources, so the import works with all versions that have them.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import pyarrow as pa
import pyspark
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from engine.errors import EngineError
from engine.spark.options import Options
from engine.spark.schema import arrow_schema, spark_schema
from engine.spark.selection import Selection
from engine.spark.tasks import ReadTask, plan_tasks, read_task


class BinlogSource(DataSource):
    """Change rows of MySQL tables from an output folder of binlog-engine; see docs/spark.md."""

    _end_of_batch: int | None = None
    """The last commit when Spark requested the schema: a batch read ends with it."""

    @classmethod
    def name(cls) -> str:
        """The name in `format("binlog")`."""
        return "binlog"

    def schema(self) -> StructType:
        """The selected tables' columns by name, then the metadata columns. Raises `EngineError`."""
        selection = Selection(self._parsed())
        self._end_of_batch = selection.last()
        return spark_schema(selection.schema(selection.first(), self._end_of_batch))

    def reader(self, schema: StructType) -> DataSourceReader:
        """A batch read of `schema`, which the user may have given. Raises `EngineError`."""
        return BinlogReader(self._parsed(), arrow_schema(schema), self._end_of_batch)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """A streaming read of `schema`, which the user may have given. Raises `EngineError`."""
        options = self._parsed()
        if options.current_columns:
            raise EngineError("a stream cannot have the option `currentColumns`: its schema never changes")
        from engine.spark.stream import BinlogStreamReader

        return BinlogStreamReader(options, arrow_schema(schema))

    def _parsed(self) -> Options:
        if find_spec("pyspark.sql.streaming.datasource") is None:
            raise EngineError(
                f"the binlog source needs PySpark 4.2 or newer, not {pyspark.__version__}: upgrade it"
            )
        return Options.parse(self.options)


class BinlogReader(DataSourceReader):
    """Reads a fixed range of commits."""

    def __init__(self, options: Options, schema: pa.Schema, end: int | None) -> None:
        self._options = options
        self._schema = schema
        self._end = end

    def partitions(self) -> list[ReadTask]:
        """The tasks; at least one, because Spark requires it."""
        selection = Selection(self._options)
        last = selection.last() if self._end is None else self._end
        if self._options.current_columns:
            files, views = selection.table_rows(last).files(selection.first())
        else:
            files, views = selection.readable_files(selection.first(), last, self._schema), {}
        return plan_tasks(self._options.path, files, self._options.min_partitions, views) or [ReadTask(())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task; Spark calls it on an executor."""
        assert isinstance(partition, ReadTask)
        return read_task(partition, self._schema)
