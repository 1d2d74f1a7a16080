"""The streaming reader of several outputs: an offset has one for each source, as `engine.spark.stream`.

A source that appears while the query runs, or while it does not, begins at its first commit. That commit is
put into an offset before any of its rows are read, so that a micro-batch that is repeated begins there, too.
A source that is gone keeps its place in the offset.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow

from engine.output.commit_log import CommitLog
from engine.spark.options import Options
from engine.spark.several import of_source, outputs
from engine.spark.stream import BinlogStreamReader, read_limit
from engine.spark.stream import Offset as CommitOffset
from engine.spark.tasks import ReadTask, read_task

Offset = dict[str, CommitOffset | int]
"""By source; earlier versions wrote only the number of the commit."""


class SeveralStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Follows all outputs that match the path."""

    def __init__(self, options: Options, schema: pa.Schema) -> None:
        self._options = options
        self._schema = schema
        self._readers: dict[str, BinlogStreamReader] = {}
        self._only: frozenset[str] | None = None
        """The sources of a query that reads what there is when it starts."""

    def initialOffset(self) -> Offset:
        """The start offset of a query without a checkpoint."""
        return {name: self._reader(name).initialOffset() for name in self._present()}

    def getDefaultReadLimit(self) -> ReadLimit:
        """The options' limit per micro-batch, of which each source with commits has an equal part."""
        return read_limit(self._options)

    def prepareForTriggerAvailableNow(self) -> None:
        """Read no further than the current last commits."""
        self._only = frozenset(self._present())
        for name in self._only:
            self._reader(name).prepareForTriggerAvailableNow()

    def reportLatestOffset(self) -> Offset:
        """The current last commits, for the query's progress report."""
        return {name: self._reader(name).reportLatestOffset() for name in self._present()}

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """The end of the next micro-batch."""
        present = self._present()
        end = dict(start)
        known = [name for name in present if name in start]
        for name in known:
            begin = _of_source(start[name])
            reached = self._reader(name).latestOffset(begin, limit, len(known))
            if reached != begin:
                end[name] = reached
        for name in present:
            if name not in start:
                end[name] = {"commit": CommitLog(of_source(self._options, name).path).oldest_version() - 1}
        return end

    def commit(self, end: Offset) -> None:
        """The micro-batch that ends there is in Spark's log as done."""
        for name in self._present():
            if name in end:
                self._reader(name).commit(_of_source(end[name]))

    def partitions(self, start: Offset, end: Offset) -> list[ReadTask]:
        """The tasks of a micro-batch. Raises `EngineError` if commits between are not there any more."""
        return [
            task
            for name, last in end.items()
            if start.get(name, last) != last
            for task in self._reader(name).partitions(_of_source(start[name]), _of_source(last))
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task; Spark calls it on an executor."""
        assert isinstance(partition, ReadTask)
        return read_task(partition, self._schema)

    def _present(self) -> list[str]:
        """The sources that are to be read and have commits."""
        return [name for name in outputs(self._options) if self._only is None or name in self._only]

    def _reader(self, name: str) -> BinlogStreamReader:
        reader = self._readers.get(name)
        if reader is None:
            one = of_source(self._options, name)
            reader = self._readers[name] = BinlogStreamReader(one, self._schema, source=name)
        return reader


def _of_source(offset: CommitOffset | int) -> CommitOffset:
    return {"commit": offset} if isinstance(offset, int) else offset
