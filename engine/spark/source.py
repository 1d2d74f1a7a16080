"""The `binlog` data source: `spark.read.format("binlog")` and `spark.readStream.format("binlog")`.

Spark creates it in separate Python processes and pickles its readers, so they contain only plain data and
open files on demand. Rows are passed as the Arrow record batches of the committed files. Every Spark version
imports this module when it discovers data sources, so the import works with all versions that have them.
Archived binlog files are decoded with the engine's kernels, whose import takes long: only they import these.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pyarrow as pa
import pyspark
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from engine.errors import EngineError
from engine.spark.option_values import ARCHIVE
from engine.spark.options import Options
from engine.spark.schema import arrow_schema, check_letter_case, spark_schema
from engine.spark.selection import Selection
from engine.spark.several import SeveralReader, ends, require_no_numbers, schema_of
from engine.spark.tasks import ReadTask, plan_tasks, read_task

if TYPE_CHECKING:
    from engine.archive.plan import Plan


class BinlogSource(DataSource):
    """Change rows of MySQL tables from an output folder of binlog-engine; see docs/spark.md."""

    _end_of_batch: int | None = None
    """The last commit when Spark requested the schema: a batch read ends with it."""
    _ends_of_batch: dict[str, int] | None = None
    """The same for each of several outputs."""
    _plan: Plan | None = None
    """Of an archive, made when Spark requested the schema."""

    @classmethod
    def name(cls) -> str:
        """The name in `format("binlog")`."""
        return "binlog"

    def schema(self) -> StructType:
        """The selected tables' columns by name, then the metadata columns. Raises `EngineError`."""
        if self._reads_archive:
            from engine.spark.archive_reader import plan_archive

            self._plan, schema = plan_archive(self.options)
            return spark_schema(schema)
        options = self._parsed()
        if options.reads_several:
            self._ends_of_batch = ends(options)
            return spark_schema(schema_of(options, self._ends_of_batch))
        selection = Selection(options)
        self._end_of_batch = selection.last()
        return spark_schema(selection.schema(selection.first(), self._end_of_batch))

    def reader(self, schema: StructType) -> DataSourceReader:
        """A batch read of `schema`, which the user may have given. Raises `EngineError`."""
        if self._reads_archive:
            from engine.spark.archive_reader import ArchiveReader

            # Spark sends this object with each task, and the plan is of all of them.
            planned, self._plan = self._plan, None
            return ArchiveReader(self.options, arrow_schema(schema), planned)
        options = self._parsed()
        if options.consumer is not None:
            raise EngineError(
                "a batch read cannot have the option `consumer`, since it does not learn whether Spark has "
                "used its rows: only a stream can"
            )
        if options.reads_several:
            return SeveralReader(options, arrow_schema(schema), self._ends_of_batch or ends(options))
        return BinlogReader(options, arrow_schema(schema), self._end_of_batch)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """A streaming read of `schema`, which the user may have given. Raises `EngineError`."""
        if self._reads_archive:
            raise EngineError("an archive is read with `spark.read`: a stream needs an output folder")
        if find_spec("pyspark.sql.streaming.datasource") is None:
            raise EngineError(
                f"streams of the binlog source need PySpark 4.2 or newer, not {pyspark.__version__}: upgrade "
                "it, or read batches of commits with `startingCommit` and `endingCommit`"
            )
        options = self._parsed()
        if options.current_columns:
            raise EngineError("a stream cannot have the option `currentColumns`: its schema never changes")
        if options.reads_several:
            from engine.spark.several_stream import SeveralStreamReader

            return SeveralStreamReader(options, arrow_schema(schema))
        from engine.spark.stream import BinlogStreamReader

        return BinlogStreamReader(options, arrow_schema(schema))

    @property
    def _reads_archive(self) -> bool:
        return any(name.lower() == ARCHIVE for name in self.options)

    def _parsed(self) -> Options:
        options = Options.parse(self.options)
        if options.reads_several:
            require_no_numbers(options)
        return options


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
            rows = selection.table_rows(last)
            check_letter_case(self._schema, rows.names)
            files, views = rows.files(selection.first())
        else:
            files, views = selection.readable_files(selection.first(), last, self._schema), {}
        return plan_tasks(self._options.path, files, self._options.min_partitions, views) or [ReadTask(())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task; Spark calls it on an executor."""
        assert isinstance(partition, ReadTask)
        return read_task(partition, self._schema)
