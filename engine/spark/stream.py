"""The streaming side of the `binlog` source: an offset is the last commit that was read.

A commit is never split, because it ends at a transaction boundary: a micro-batch holds whole transactions,
whatever `maxFilesPerTrigger` and `maxBytesPerTrigger` say. Needs PySpark 4.2, the first that tells a Python
source where a micro-batch starts and how much it may take.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)

from engine.errors import EngineError
from engine.spark.options import Options
from engine.spark.selection import Selection
from engine.spark.tasks import ReadTask, plan_tasks, read_task

QUIET_COMMITS = 1000
"""So many commits without selected files start no micro-batch; then the checkpoint moves on all the same, or
it would stay behind at commits that may be removed."""

Offset = dict[str, int]


class BinlogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Follows an output. Spark makes one per query on the driver, and others that only call `read`."""

    def __init__(self, options: Options, schema: pa.Schema) -> None:
        self._options = options
        self._schema = schema
        self._selection = Selection(options)
        self._target: int | None = None
        self._quiet = range(0)

    def initialOffset(self) -> Offset:
        """Where a query without a checkpoint starts."""
        return {"commit": self._selection.first() - 1}

    def getDefaultReadLimit(self) -> ReadLimit:
        """What the options allow per micro-batch; with both limits set, `latestOffset` keeps to both."""
        if self._options.max_files_per_trigger is not None:
            return ReadMaxFiles(self._options.max_files_per_trigger)
        if self._options.max_bytes_per_trigger is not None:
            return ReadMaxBytes(self._options.max_bytes_per_trigger)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """Go no further than what is there now."""
        self._target = self._selection.latest()

    def reportLatestOffset(self) -> Offset:
        """What is there, for the query's progress."""
        return {"commit": self._selection.latest()}

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """How far the next micro-batch goes: as many whole commits as `limit` allows, and one at least.

        Commits without selected files cost nothing and, alone, start no micro-batch.
        """
        begin = start["commit"]
        last = self._available(begin)
        end = self._quiet[-1] if begin in self._quiet else begin
        taken_files = taken_bytes = 0
        for commit, files in self._selection.files(end + 1, last):
            more_files = taken_files + len(files)
            more_bytes = taken_bytes + sum(file.bytes for file in files)
            if taken_files and files and not self._allows(limit, more_files, more_bytes):
                return {"commit": end}
            taken_files, taken_bytes, end = more_files, more_bytes, commit
        if taken_files:
            return {"commit": end}
        self._quiet = range(begin, end + 1)
        return {"commit": end if end - begin >= QUIET_COMMITS else begin}

    def partitions(self, start: Offset, end: Offset) -> list[ReadTask]:
        """The tasks of a micro-batch; after a failure the same commits again, from Spark's own log."""
        files = self._selection.readable_files(start["commit"] + 1, end["commit"], self._schema)
        return plan_tasks(self._options.path, files, self._options.min_partitions)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """A task's rows; on an executor."""
        assert isinstance(partition, ReadTask)
        return read_task(partition, self._schema)

    def _available(self, begin: int) -> int:
        # Asked first: after a power cut the commit may be the only one, and not have its final name yet.
        known = self._selection.reaches(begin)
        latest = self._selection.latest()
        if not known:
            raise EngineError(
                f"the query has read commit {begin}, but {self._options.path} ends with commit {latest}, "
                "so it is another output than before: start the query with a new checkpoint"
            )
        return latest if self._target is None else max(begin, min(latest, self._target))

    def _allows(self, limit: ReadLimit, files: int, size: int) -> bool:
        if isinstance(limit, ReadAllAvailable):
            return True
        most_files = self._options.max_files_per_trigger
        most_bytes = self._options.max_bytes_per_trigger
        return (most_files is None or files <= most_files) and (most_bytes is None or size <= most_bytes)
