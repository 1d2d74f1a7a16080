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
    """Measures some rows behind those that warm it up, and counts the rest as if it were as fast there.

    It starts at the binlog's first event, from an offset as its own file store keeps it; the schema history
    that goes with it is made from the tables as they are, which counts as start-up.
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
        told = json.loads(finished.output)
        if told["rows"] < (wanted - warm_up) // 2:
            raise PeerError(f"it measured {told['rows']} rows only")
        factor = subject.binlog.rows / told["rows"]
        used = finished.usage
        usage = Usage(told["user_seconds"] * factor, told["system_seconds"] * factor, used.peak_memory)
        return Measurement(told["seconds"] * factor, told["start_up_seconds"], {"java": usage})
