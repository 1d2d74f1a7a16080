"""A Python data source that does no work: Spark's time for reading it is the limit of the binlog source.

It returns the same record batch, built by the binlog source, again and again. Spark sends it through a socket
and converts it to rows in Java, as it does for every Python source.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from engine.spark import BinlogSource


class RepeatingSource(DataSource):
    """Takes the options `path` and `tables` of the binlog source, and the number of `rows`."""

    @classmethod
    def name(cls) -> str:
        """The name in `format("repeating")`."""
        return "repeating"

    def schema(self) -> StructType:
        """The schema of the binlog source."""
        return _binlog_source(self.options["path"], self.options["tables"]).schema()

    def reader(self, schema: StructType) -> DataSourceReader:
        """A batch read."""
        return _Reader(self.options["path"], self.options["tables"], int(self.options["rows"]))


class _Rows(InputPartition):
    def __init__(self, count: int) -> None:
        self.count = count


class _Reader(DataSourceReader):
    def __init__(self, path: str, tables: str, rows: int) -> None:
        self._path = path
        self._tables = tables
        self._rows = rows

    def partitions(self) -> list[_Rows]:
        """One per core."""
        tasks = os.cpu_count() or 1
        bounds = [self._rows * number // tasks for number in range(tasks + 1)]
        return [_Rows(end - start) for start, end in pairwise(bounds)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows; the batch is cached in the process, which Spark reuses for later queries."""
        assert isinstance(partition, _Rows)
        batch = _first_batch(self._path, self._tables)
        whole, rest = divmod(partition.count, batch.num_rows)
        for _ in range(whole):
            yield batch
        if rest:
            yield batch.slice(0, rest)


def _binlog_source(path: str, tables: str) -> BinlogSource:
    return BinlogSource({"path": path, "tables": tables})


@cache
def _first_batch(path: str, tables: str) -> pa.RecordBatch:
    source = _binlog_source(path, tables)
    reader = source.reader(source.schema())
    return next(iter(reader.read(reader.partitions()[0])))
