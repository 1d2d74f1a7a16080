"""An archive read by Spark with 1, 2 and 4 tasks at a time: one large file, which is divided into parts.

Each peer is a process with a Spark session of that many cores (`local[1]` and so on), which reads into the
`noop` sink. The time includes the driver's first pass, which does not become shorter with more tasks; it is a
value of its own, measured in the same process without Spark. The processor time is that of Java and of the
Python workers together.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from statistics import median

from perf.binlog import Binlog, binlog_of
from perf.case import Case, Settings
from perf.measurement import Measurement, PeerError, run_command
from perf.memory import processor_seconds_in_all
from perf.peer import Peer
from perf.peers.engine import ENVIRONMENT
from perf.peers.java import java
from perf.workload import DATABASE
from perf.workloads import BULK

ARCHIVE_TASKS = "archive-tasks"
TASKS = (1, 2, 4)
_PART_MEGABYTES = 8
_READS = 3
_WARM_UPS = 3
"""Reads until Java has compiled the hot code."""


class ArchiveRead(Peer[Binlog]):
    """The reads of `main` in a process of their own."""

    most_runs = 2

    def __init__(self, tasks: int) -> None:
        self._tasks = tasks
        self.name = f"{tasks} task" + ("s" if tasks > 1 else "")
        self.remark = f"local[{tasks}]"

    def prepare(self) -> None:
        java()

    def measure(self, subject: Binlog) -> Measurement:
        command = [sys.executable, "-m", "perf.archive_scaling", str(self._tasks), str(subject.path)]
        printed = json.loads(run_command(command, environment=ENVIRONMENT).output.splitlines()[-1])
        if printed["rows"] != subject.change_rows:
            raise PeerError(f"it read {printed['rows']} rows instead of {subject.change_rows}")
        values = {
            "first pass s": printed["first_pass"],
            "processor s": printed["processor"],
            "parts": printed["parts"],
        }
        return Measurement(printed["seconds"], values=values)


def archive_tasks_case(settings: Settings) -> Case[Binlog]:
    """The bulk load's binlog as an archive of one file in parts."""
    return Case(
        name=ARCHIVE_TASKS,
        title=f"a bulk load's binlog file as an archive, in parts of {_PART_MEGABYTES} MB, read by Spark",
        group="archives: tasks at a time",
        material=partial(binlog_of, BULK, settings.scale),
        offer=nullcontext,
        peers=[ArchiveRead(tasks) for tasks in TASKS],
        compares=False,
    )


def main(arguments: Sequence[str]) -> int:
    """Read the file several times; print the rows, the parts, and median seconds."""
    from pyspark.sql import SparkSession

    from engine.archive.plan import Request, plan
    from engine.config.decode_options import DecodeOptions
    from engine.config.table_filter import TableFilter
    from engine.spark import register
    from tests.support.spark_session import DISCOVERY, SETTINGS

    tasks, path = arguments
    tables = f"{DATABASE}.*"
    request = Request(path, DecodeOptions(TableFilter((tables,))), part_bytes=_PART_MEGABYTES << 20)
    plan(request)
    begun = time.perf_counter()
    parts = len(plan(request).survey.parts)
    first_pass = time.perf_counter() - begun
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path.cwd()), str(DISCOVERY)])
    builder = SparkSession.builder.master(f"local[{tasks}]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    register(spark)
    options = {"archive": path, "tables": tables, "partSize": str(_PART_MEGABYTES)}
    rows = spark.read.format("binlog").options(**options).load().count()
    seconds, processor = [], []
    for _ in range(_WARM_UPS + _READS):
        begun, used = time.perf_counter(), processor_seconds_in_all(os.getpid())
        read = spark.read.format("binlog").options(**options).load()
        read.write.format("noop").mode("overwrite").save()
        seconds.append(time.perf_counter() - begun)
        processor.append(processor_seconds_in_all(os.getpid()) - used)
    spark.stop()
    found = {"rows": rows, "parts": parts, "first_pass": first_pass}
    found |= {"seconds": median(seconds[_WARM_UPS:]), "processor": median(processor[_WARM_UPS:])}
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
