"""What Spark takes for the rows of a Python source that has nothing to do: the limit of the binlog source.

It hands over a record batch that the binlog source made, the same again and again. Spark sends it through a
socket and turns it into rows in Java, as it does with everything that comes from Python.
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
    """`path` and `tables` as of the binlog source, and the number of `rows`."""

    @classmethod
    def name(cls) -> str:
        """The name in `format("repeating")`."""
        return "repeating"

    def schema(self) -> StructType:
        """That of the binlog source."""
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
        """The rows; the batch stays with the process, which Spark keeps from query to query."""
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
