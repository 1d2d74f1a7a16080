"""What Spark's settings bring that docs/spark.md advises: reads with and without them, beside Parquet.

Each peer is a process with a session of its own, since the settings of Java hold for a process. It reads the
same change rows in turns from the engine's source and from Parquet, as a stream and as a batch.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import median

from perf.binlog import binlog_of
from perf.case import Case, Settings
from perf.measurement import Measurement, run_command
from perf.peer import Peer
from perf.peers.engine import ENVIRONMENT
from perf.spark_read import (
    BATCH,
    STREAM,
    Readable,
    binlog_source,
    parquet_source,
    read_batch,
    read_stream,
    readable,
)
from perf.workloads import BULK

SPARK_SETTINGS = "spark-settings"
ADVISED = "as docs/spark.md advises"
STREAM_MULTIPLE = "stream / Parquet"
_JAVA = "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"
_SETTINGS = {
    "as Spark is": {},
    ADVISED: {
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.driver.extraJavaOptions": _JAVA,
        "spark.executor.extraJavaOptions": _JAVA,
    },
}
_READS = 7
_WARM_UPS = 3
"""Reads until Java has compiled the hot code and the Python workers are running."""


class SettingsRead(Peer[Readable]):
    """The reads of `main` in a process of their own."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.remark = "a session of its own"

    def measure(self, subject: Readable) -> Measurement:
        places = [str(path) for path in (subject.changes, subject.parquet, subject.folder)]
        command = [sys.executable, "-m", "perf.spark_settings", self.name, *places, str(subject.rows)]
        printed = json.loads(run_command(command, environment=ENVIRONMENT).output.splitlines()[-1])
        stream, stream_parquet = printed[STREAM]
        batch, batch_parquet = printed[BATCH]
        values = {
            "Parquet s": stream_parquet,
            STREAM_MULTIPLE: stream / stream_parquet,
            "batch s": batch,
            "batch Parquet s": batch_parquet,
            "batch / Parquet": batch / batch_parquet,
        }
        return Measurement(stream, values=values)


def spark_settings_case(settings: Settings) -> Case[Readable]:
    """Reads of a bulk load's change rows, with Spark's own settings and with those that are advised."""
    return Case(
        name=SPARK_SETTINGS,
        title="a streaming and a batch read of the bulk load's change rows, all columns, by Spark's settings",
        group="Spark: settings",
        material=partial(binlog_of, BULK, settings.scale),
        offer=partial(readable, settings),
        peers=[SettingsRead(name) for name in _SETTINGS],
        measures="streaming seconds",
        compares=False,
    )


def main(arguments: Sequence[str]) -> int:
    """Read several times; print the median seconds of both sources for each kind of read."""
    from tests.support.spark_session import start_spark

    name, changes, parquet, folder, rows = arguments
    kinds = {STREAM: read_stream, BATCH: read_batch}
    sources = (binlog_source, parquet_source)
    with tempfile.TemporaryDirectory(dir=folder) as own:
        spark = start_spark(Path(own) / "warehouse", _SETTINGS[name])
        subject = Readable(spark, Path(changes), Path(parquet), int(rows), Path(own))
        found = {}
        for kind, read in kinds.items():
            seconds: tuple[list[float], ...] = tuple([] for _ in sources)
            for _ in range(_WARM_UPS + _READS):
                for source, taken in zip(sources, seconds, strict=True):
                    begun = time.perf_counter()
                    read(subject, source)
                    taken.append(time.perf_counter() - begun)
            found[kind] = [median(taken[_WARM_UPS:]) for taken in seconds]
        spark.stop()
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
