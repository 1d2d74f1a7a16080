"""Spark's JDBC source, with MySQL's driver: every column of every row, into a sink that discards them."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from perf.measurement import Measurement, PeerError, peak_memory_of, run_command
from perf.peers.java import java_classes
from perf.peers.rows_reader import RowsReader
from perf.stored_rows import ServedRows
from perf.workload import DATABASE

_SOURCES = Path(__file__).with_name("spark_jdbc")
_URL = "jdbc:mysql://{host}:{port}/{database}?user={user}&sslMode=DISABLED&useCursorFetch=true"


class SparkJdbc(RowsReader):
    """A new session, which takes most of its start-up; each part of a table is another view of it."""

    name = "Spark's JDBC source"
    remark = "rows discarded"
    most_runs = 1

    def prepare(self) -> None:
        if find_spec("pyspark") is None:
            raise PeerError("PySpark is not installed: make venv")
        self._classes = java_classes("spark-jdbc", _SOURCES)

    def read(self, subject: ServedRows) -> Measurement:
        server = subject.server
        url = _URL.format(host=server.host, port=server.port, database=DATABASE, user=server.user)
        program = _SOURCES / "read_tables.py"
        java_memory = 0

        def look(pid: int) -> None:
            nonlocal java_memory
            with suppress(OSError):
                children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
                java_memory = max(java_memory, sum(map(peak_memory_of, children)))

        finished = run_command(
            [sys.executable, program, self._classes, url, str(self.connections), *subject.tables],
            environment={"SPARK_LOCAL_IP": "127.0.0.1"},
            look=look,
        )
        seconds = json.loads(finished.output.strip().splitlines()[-1])["seconds"]
        usage = replace(finished.usage, peak_memory=finished.usage.peak_memory + java_memory)
        return Measurement(finished.seconds, finished.seconds - seconds, {"Python and Java": usage})
