"""The streaming reader of the `binlog` source: an offset is the last commit that was read, and its time.

If the commit of that number has another time, the output was restored, or is another one. A commit ends at a
transaction boundary and is never split, so a micro-batch contains complete transactions with every
`maxFilesPerTrigger` and `maxBytesPerTrigger`. Needs PySpark 4.2, the first version that passes a Python
source the start offset and the read limit of a micro-batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import time_ns

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
from engine.output.commit_times import shown_time
from engine.output.consumers import note_progress
from engine.spark.options import Options
from engine.spark.selection import Selection
from engine.spark.tasks import ReadTask, plan_tasks, read_task

QUIET_COMMITS = 1000
"""After this many commits without selected files a micro-batch is started, so that the checkpoint advances;
otherwise it would stay at commits that may be removed."""

_TIMES_KEPT = 16

Offset = dict[str, int]
"""`commit`, and `time` in µs (not before the first commit, nor in checkpoints of earlier versions)."""


def read_limit(options: Options) -> ReadLimit:
    """The limit of a micro-batch as Spark knows it."""
    if options.max_files_per_trigger is not None:
        return ReadMaxFiles(options.max_files_per_trigger)
    if options.max_bytes_per_trigger is not None:
        return ReadMaxBytes(options.max_bytes_per_trigger)
    return ReadAllAvailable()


class BinlogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Follows an output. Spark creates one per query on the driver, and others that only run `read`."""

    def __init__(self, options: Options, schema: pa.Schema, source: str | None = None) -> None:
        """`source`: the value of `_source`, if this is one of several outputs that are read as one."""
        self._options = options
        self._schema = schema
        self._source = source
        self._selection = Selection(options)
        self._target: int | None = None
        self._quiet = range(0)
        self._noted: int | None = None
        self._latest = -1
        self._times: dict[int, int | None] = {}
        """Of commits, while `_latest` is the last one; Spark passes an offset several times."""

    def initialOffset(self) -> Offset:
        """The start offset of a query without a checkpoint. Raises `EngineError` for a time to come."""
        start = self._options.starting_timestamp_us
        if start is not None and start > time_ns() // 1000:
            raise EngineError(
                f"`startingTimestamp` is {shown_time(start)}, which is still to come: give an earlier time, "
                "or `startingCommit` with `latest` for what is committed from now on"
            )
        return self._offset(self._selection.first() - 1)

    def getDefaultReadLimit(self) -> ReadLimit:
        """The options' limit per micro-batch; if both limits are set, `latestOffset` applies both."""
        return read_limit(self._options)

    def prepareForTriggerAvailableNow(self) -> None:
        """Read no further than the current last commit."""
        self._target = self._selection.latest()

    def reportLatestOffset(self) -> Offset:
        """The current last commit, for the query's progress report."""
        return self._offset(self._selection.latest())

    def latestOffset(self, start: Offset, limit: ReadLimit, sharing: int = 1) -> Offset:
        """The end of the next micro-batch: as many complete commits as `limit` allows, and at least one.

        Commits without selected files do not count towards the limit, and alone start no micro-batch.
        `sharing`: the number of outputs that have equal parts of the limit.
        """
        begin = start["commit"]
        last = self._available(start)
        self._note_read(begin)
        end = self._quiet[-1] if begin in self._quiet else begin
        taken_files = taken_bytes = 0
        for commit, files in self._selection.files(end + 1, last):
            more_files = taken_files + len(files)
            more_bytes = taken_bytes + sum(file.bytes for file in files)
            if taken_files and files and not self._allows(limit, more_files * sharing, more_bytes * sharing):
                return self._offset(end)
            taken_files, taken_bytes, end = more_files, more_bytes, commit
        if taken_files:
            return self._offset(end)
        self._quiet = range(begin, end + 1)
        return self._offset(end) if end - begin >= QUIET_COMMITS else start

    def commit(self, end: Offset) -> None:
        """The micro-batch that ends there is in Spark's log as done."""
        self._note_read(end["commit"])

    def partitions(self, start: Offset, end: Offset) -> list[ReadTask]:
        """The tasks of a micro-batch; after a failure Spark passes the same offsets again, from its log."""
        self._check(start)
        self._check(end)
        files = self._selection.readable_files(start["commit"] + 1, end["commit"], self._schema)
        return plan_tasks(self._options.path, files, self._options.min_partitions, source=self._source)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task; Spark calls it on an executor."""
        assert isinstance(partition, ReadTask)
        return read_task(partition, self._schema)

    def _offset(self, commit: int) -> Offset:
        time = self._time_of(commit)
        return {"commit": commit} if time is None else {"commit": commit, "time": time}

    def _time_of(self, commit: int) -> int | None:
        if commit not in self._times:
            if len(self._times) == _TIMES_KEPT:
                self._times.clear()
            self._times[commit] = self._selection.time_of(commit)
        return self._times[commit]

    def _check(self, offset: Offset) -> None:
        """Raise `EngineError` if another commit has the number now."""
        commit, time = offset["commit"], offset.get("time")
        present = None if time is None else self._time_of(commit)
        if present is not None and present != time:
            raise EngineError(
                f"commit {commit} of {self._options.path} is not the one that the query has read: it is "
                "another output, or was restored from a copy; start the query with a new checkpoint"
            )

    def _available(self, start: Offset) -> int:
        begin = start["commit"]
        # Called first: after a power failure the commit may be the only one and have its temporary name.
        known = self._selection.reaches(begin)
        latest = self._selection.latest()
        if latest != self._latest:
            # The engine may have continued from a copy that was restored meanwhile.
            self._latest = latest
            self._times.clear()
        if not known:
            raise EngineError(
                f"the query has read commit {begin}, but {self._options.path} ends with commit {latest}, "
                "so it is not the same output: start the query with a new checkpoint"
            )
        self._check(start)
        return latest if self._target is None else max(begin, min(latest, self._target))

    def _note_read(self, commit: int) -> None:
        """As a registered consumer: the commits after this one are not removed."""
        name = self._options.consumer
        if name is not None and commit != self._noted:
            note_progress(self._options.path, name, commit)
            self._noted = commit

    def _allows(self, limit: ReadLimit, files: int, size: int) -> bool:
        if isinstance(limit, ReadAllAvailable):
            return True
        most_files = self._options.max_files_per_trigger
        most_bytes = self._options.max_bytes_per_trigger
        return (most_files is None or files <= most_files) and (most_bytes is None or size <= most_bytes)
