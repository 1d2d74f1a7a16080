"""Debezium's embedded engine: change events as JSON, without their schemas, written into a file."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from perf.binlog import ServedBinlog
from perf.measurement import Measurement, PeerError, Usage, run_command
from perf.peer import Peer
from perf.peers.java import java, java_classes
from perf.workload import DATABASE

WARM_UP_ROWS = 100_000
SAMPLE_ROWS = 200_000
_SOURCES = Path(__file__).with_name("debezium")


class DebeziumEmbedded(Peer[ServedBinlog]):
    """Measures some rows after those that warm it up, and extrapolates to all rows.

    It starts at the binlog's first event, from an offset in the format of its own file store. The schema
    history is built from the current tables, which counts as start-up.
    """

    name = "Debezium embedded"
    remark = f"JSON, no fsync; warm, {SAMPLE_ROWS:,} rows at most, extrapolated"
    most_runs = 1

    def __init__(self, work: Path) -> None:
        self._work = work

    def prepare(self) -> None:
        self._java = java()
        self._classes = java_classes("debezium", _SOURCES)

    def measure(self, subject: ServedBinlog) -> Measurement:
        server = subject.server
        warm_up = min(WARM_UP_ROWS, subject.binlog.rows // 3)
        wanted = min(warm_up + SAMPLE_ROWS, subject.binlog.rows)
        with tempfile.TemporaryDirectory(dir=self._work) as folder:
            finished = run_command(
                [
                    *(self._java, "-cp", self._classes, "RunDebezium"),
                    *(server.host, str(server.port), server.user, DATABASE, subject.file),
                    *(folder, str(warm_up), str(wanted)),
                ]
            )
        measured = json.loads(finished.output)
        if measured["rows"] < (wanted - warm_up) // 2:
            raise PeerError(f"it measured {measured['rows']} rows only")
        factor = subject.binlog.rows / measured["rows"]
        used = finished.usage
        usage = Usage(
            measured["user_seconds"] * factor, measured["system_seconds"] * factor, used.peak_memory
        )
        return Measurement(measured["seconds"] * factor, measured["start_up_seconds"], {"java": usage})
