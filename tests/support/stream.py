"""What a streaming query of the `binlog` source does, in a thread, without Spark.

It plans a micro-batch, runs its tasks a little later, and gives the rows to `take` in the order of `_seq`.
Now and then it runs a micro-batch a second time with a new reader, as Spark does after a failure: the rows
must be the same. It is registered as a consumer under its name.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes

from engine.spark.options import Options
from engine.spark.stream import BinlogStreamReader
from engine.spark.tasks import read_task
from tests.support.engine_run import wait_until

Rows = list[dict[str, Any]]

POLL_SECONDS = 0.01
PLAN_AGE_SECONDS = 0.1
"""The most between planning a micro-batch and its tasks: the plan may be old then."""
FAILS = 0.05
"""The part of the micro-batches that run twice."""


class Stream:
    """A query of `schema` that reads `most_bytes` at a time, or all that there is."""

    def __init__(
        self,
        out: Path,
        name: str,
        schema: pa.Schema,
        take: Callable[[Rows], None],
        *,
        most_bytes: int | None = None,
        **options: str,
    ) -> None:
        if most_bytes is not None:
            options["maxBytesPerTrigger"] = str(most_bytes)
        self._options = Options.parse({"path": str(out), "consumer": name, **options})
        self._schema = schema
        self._take = take
        self._limit: ReadLimit = ReadAllAvailable() if most_bytes is None else ReadMaxBytes(most_bytes)
        self._chance = random.Random(name)
        self._reader = BinlogStreamReader(self._options, schema)
        self._ending = threading.Event()
        self._error: BaseException | None = None
        self.commit = -1
        """The last one that it has read."""
        self.rows = 0
        self.repeated = 0
        """Micro-batches that ran twice."""
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raise what has stopped it."""
        if self._error is not None:
            raise self._error

    def reach(self, commit: int) -> None:
        """Wait until it has read that commit."""
        wait_until(lambda: self.commit >= commit, f"stream at commit {commit}", check=self.check)

    def end(self) -> None:
        """Have it finish its micro-batch. Raises what has stopped it before."""
        self._ending.set()
        self._thread.join()
        self.check()

    def _run(self) -> None:
        try:
            offset = self._reader.initialOffset()
            while not self._ending.is_set():
                end = self._reader.latestOffset(offset, self._limit)
                if end == offset:
                    self._ending.wait(POLL_SECONDS)
                    continue
                rows = self._micro_batch(offset, end)
                if self._chance.random() < FAILS:
                    self._reader = BinlogStreamReader(self._options, self._schema)
                    assert self._micro_batch(offset, end) == rows
                    self.repeated += 1
                self._take(rows)
                self.rows += len(rows)
                self._reader.commit(end)
                offset, self.commit = end, end["commit"]
        except BaseException as error:
            self._error = error

    def _micro_batch(self, start: dict[str, int], end: dict[str, int]) -> Rows:
        tasks = self._reader.partitions(start, end)
        self._ending.wait(self._chance.random() * PLAN_AGE_SECONDS)
        rows = [row for task in tasks for batch in read_task(task, self._schema) for row in batch.to_pylist()]
        return sorted(rows, key=lambda row: row["_seq"])
