"""Spark's read rate: the engine's data source next to Spark's own Parquet source, over the same rows.

All reads are in one session, one after the other, into the `noop` sink, which reads every column of every
row. Spark writes the Parquet files from the engine's data source, so rows, columns and types are the same.
The batch case also measures a source that does no work (`perf.spark_limit`). A stream is measured with a
thousand rows as well, which leaves the part of its time that does not depend on the rows.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from perf.binlog import Binlog, binlog_of, served
from perf.case import Case, Settings
from perf.measurement import Measurement, PeerError, run_command
from perf.memory import processor_seconds_in_all
from perf.peer import Peer
from perf.peers.engine import engine_command
from perf.workload import DATABASE
from perf.workloads import BULK

ENGINE = "binlog source"
PARQUET = "Spark's Parquet source"
LIMIT = "a Python source with nothing to do"
BATCH, STREAM, STREAM_START = "spark-batch", "spark-stream", "spark-stream-start"
SPARK_CASES = (BATCH, STREAM, STREAM_START)
_TABLE = f"{DATABASE}.bulk"
_START_SCALE = 0.001
"""Of the workload, whatever the scale of the others: a thousand rows."""
_WARM_UPS = 3
"""Reads until Java has compiled the hot code and the Python workers are running."""


@dataclass(frozen=True)
class Readable:
    """The same rows in both formats, and a session to read them."""

    spark: Any
    changes: Path
    parquet: Path
    rows: int
    folder: Path
    """For checkpoints."""


def spark_case(name: str, settings: Settings) -> Case[Readable]:
    """A batch or a streaming read (AvailableNow) of all change rows of a bulk load."""
    read = read_batch if name == BATCH else read_stream
    kind = "a batch read" if name == BATCH else "a streaming read (AvailableNow)"
    scale = _START_SCALE if name == STREAM_START else settings.scale
    peers = [SparkRead(ENGINE, read, binlog_source), SparkRead(PARQUET, read, parquet_source)]
    if name == BATCH:
        peers.append(SparkRead(LIMIT, read, _repeating_source))
    return Case(
        name=name,
        title=f"{kind} of the bulk load's change rows, all columns, metadata included",
        group=f"Spark: {kind}",
        material=partial(binlog_of, BULK, scale),
        offer=partial(readable, settings),
        peers=peers,
    )


class SparkRead(Peer[Readable]):
    """A read of one of the sources, as a batch or a stream."""

    def __init__(
        self,
        name: str,
        read: Callable[[Readable, Callable[[Readable, Any], Any]], None],
        source: Callable[[Readable, Any], Any],
    ) -> None:
        self.name = name
        self._read = read
        self._source = source

    def warm_up(self, subject: Readable) -> None:
        """Check the number of rows, and read often enough that everything is compiled."""
        rows = self._source(subject, subject.spark.read).count()
        if rows != subject.rows:
            raise PeerError(f"it reads {rows} rows instead of {subject.rows}")
        for _ in range(_WARM_UPS):
            self._read(subject, self._source)

    def measure(self, subject: Readable) -> Measurement:
        begun, used = time.perf_counter(), processor_seconds_in_all(os.getpid())
        self._read(subject, self._source)
        seconds = time.perf_counter() - begun
        return Measurement(seconds, values={"processor s": processor_seconds_in_all(os.getpid()) - used})


def binlog_source(subject: Readable, reader: Any, columns: Sequence[str] = ()) -> Any:
    """The engine's data source, with these columns only if there are any."""
    reading = reader.format("binlog").option("tables", _TABLE)
    if columns:
        reading = reading.option("columns", ",".join(columns))
    return reading.load(str(subject.changes))


def parquet_source(subject: Readable, reader: Any) -> Any:
    """Spark's own source of the same rows."""
    # A batch read infers the schema, as the binlog source does; a stream requires it.
    if type(reader).__name__ == "DataStreamReader":
        reader = reader.schema(subject.spark.read.parquet(str(subject.parquet)).schema)
    return reader.format("parquet").load(str(subject.parquet))


def _repeating_source(subject: Readable, reader: Any) -> Any:
    repeating = reader.format("repeating").option("tables", _TABLE).option("rows", subject.rows)
    return repeating.load(str(subject.changes))


def read_batch(subject: Readable, source: Callable[[Readable, Any], Any]) -> None:
    """Read all that `source` has, into a sink that discards it."""
    source(subject, subject.spark.read).write.format("noop").mode("overwrite").save()


def read_stream(subject: Readable, source: Callable[[Readable, Any], Any]) -> None:
    """Read all that `source` has as a stream that ends there. Raises `PeerError` if rows are missing."""
    with tempfile.TemporaryDirectory(dir=subject.folder) as checkpoint:
        query = (
            source(subject, subject.spark.readStream)
            .writeStream.format("noop")
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        rows = sum(progress["numInputRows"] for progress in query.recentProgress)
    if rows != subject.rows:
        raise PeerError(f"the stream read {rows} rows instead of {subject.rows}")


@contextmanager
def readable(settings: Settings, binlog: Binlog) -> Iterator[Readable]:
    """The change rows of a binlog, in both formats."""
    if find_spec("pyspark") is None:
        raise PeerError("PySpark is not installed: make venv")
    from perf.spark_limit import RepeatingSource
    from tests.support.spark_session import start_spark

    with tempfile.TemporaryDirectory(dir=settings.work) as folder:
        changes, parquet = Path(folder) / "changes", Path(folder) / "parquet"
        with served(binlog) as subject:
            run_command(engine_command(subject, changes, settings.workers, Path(folder) / "report.json"))
        # Without the settings for tests, so that Java compiles as it usually does.
        spark = start_spark(Path(folder) / "warehouse", {})
        try:
            readable = Readable(spark, changes, parquet, binlog.change_rows, Path(folder))
            binlog_source(readable, spark.read).write.parquet(str(parquet))
            spark.dataSource.register(RepeatingSource)
            yield readable
        finally:
            spark.stop()
