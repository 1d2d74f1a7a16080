"""Archived files decoded by tasks: processor time per row, beside that of `binlog-engine decode`.

A task of the Spark source runs here without Spark, up to the record batches that Spark is given, so that
Spark's own work is not measured. `decode` also writes and commits its rows. What counts is the processor time
of all processes, since `decode` has several, without its supervisor's, which is that of starting up. The
driver's first pass over the files is a value of its own.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from statistics import median

from perf.binlog import Binlog, binlog_of
from perf.case import Case, Settings
from perf.measurement import Measurement, PeerError, Usage, run_command
from perf.peer import Peer
from perf.peers.engine import COMMAND, ENVIRONMENT, OutputFolders, usages
from perf.peers.program import CORE
from perf.workload import DATABASE
from perf.workloads import BULK

ARCHIVE = "archive"
DECODE_COMMAND = "binlog-engine decode"
_PASSES = 5
_WARM_UP_PASSES = 2


class ArchiveTask(Peer[Binlog]):
    """The passes of `main` in a process on one core."""

    name = "archive task"
    remark = "one core, up to the record batches that Spark is given"

    def measure(self, subject: Binlog) -> Measurement:
        command = [sys.executable, "-m", "perf.archive", subject.path]
        pinned = ["taskset", "--cpu-list", str(CORE), *map(str, command)]
        finished = run_command(pinned, environment=ENVIRONMENT)
        printed = json.loads(finished.output)
        if printed["rows"] != subject.change_rows:
            raise PeerError(f"it read {printed['rows']} rows instead of {subject.change_rows}")
        seconds = printed["seconds"]
        used = Usage(seconds, 0.0, finished.usage.peak_memory)
        return Measurement(seconds, processes={"task": used}, values={"first pass s": printed["first_pass"]})


class DecodeCommand(Peer[Binlog]):
    """`binlog-engine decode` of the same file with one decoder."""

    name = DECODE_COMMAND
    remark = "processor time of network, decoder and sink; also writes and commits the rows"

    def __init__(self, work: Path) -> None:
        self._folders = OutputFolders(work)

    def measure(self, subject: Binlog) -> Measurement:
        with self._folders.new() as folder:
            report = folder / "report.json"
            command: list[str | Path] = [COMMAND, "decode", subject.path, "--workers", "1"]
            run_command([*command, "--out", folder / "out", "--report", report], environment=ENVIRONMENT)
            used = usages(json.loads(report.read_text())["processes"])
        work = [each for name, each in used.items() if name != "supervisor"]
        return Measurement(sum(each.user_seconds + each.system_seconds for each in work), processes=used)

    def clean_up(self) -> None:
        self._folders.clean_up()


def archive_case(settings: Settings) -> Case[Binlog]:
    """The bulk load's binlog as an archive of one file."""
    return Case(
        name=ARCHIVE,
        title="a bulk load's binlog file as an archive, processor seconds",
        group="archives: a task of the Spark source beside `binlog-engine decode`, processor time",
        material=partial(binlog_of, BULK, settings.scale),
        offer=nullcontext,
        peers=(ArchiveTask(), DecodeCommand(settings.work)),
        measures="processor seconds",
    )


def main(arguments: Sequence[str]) -> int:
    """Decode the file several times; print rows and the median processor seconds, and those of the plan."""
    from engine.archive.plan import Request, plan, rows_inside
    from engine.config.decode_options import DecodeOptions
    from engine.config.table_filter import TableFilter
    from engine.output.reader import decode_batch
    from engine.pipeline.allocator import keep_freed_memory
    from engine.spark.schema import query_schema

    keep_freed_memory()
    request = Request(arguments[0], DecodeOptions(TableFilter((f"{DATABASE}.*",))))
    plan(request)
    begun = time.process_time()
    found = plan(request)
    first_pass = time.process_time() - begun
    versions = {
        (*table, number): schema
        for table, schemas in found.survey.schemas.items()
        for number, schema in enumerate(schemas)
    }
    schema = query_schema(versions, None)
    seconds = []
    for _ in range(_WARM_UP_PASSES + _PASSES):
        begun, rows = time.process_time(), 0
        for part in found.survey.parts:
            for each in rows_inside(part, found.reading, found.bounds):
                database, table = each.table
                if table:
                    origin = {"_database": database, "_table": table}
                    rows += decode_batch(each.rows, schema, origin).num_rows
        seconds.append(time.process_time() - begun)
    print(json.dumps({"rows": rows, "seconds": median(seconds[_WARM_UP_PASSES:]), "first_pass": first_pass}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
