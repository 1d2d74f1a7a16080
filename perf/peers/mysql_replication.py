"""python-mysql-replication, the usual way to read a binlog from Python."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path

from perf.binlog import ServedBinlog
from perf.measurement import Measurement, PeerError, Usage, run_command
from perf.peer import Peer

SAMPLE_ROWS = 20_000
_SAMPLE = Path(__file__).with_name("mysql_replication_sample.py")


class MysqlReplication(Peer[ServedBinlog]):
    """Reads the first rows only and extrapolates to all rows."""

    name = "mysql-replication"
    remark = f"first {SAMPLE_ROWS:,} rows, extrapolated"

    def prepare(self) -> None:
        if find_spec("pymysqlreplication") is None:
            raise PeerError("the Python package mysql-replication is not installed: make venv")

    def measure(self, subject: ServedBinlog) -> Measurement:
        server = subject.server
        wanted = min(SAMPLE_ROWS, subject.binlog.rows // 2)
        finished = run_command(
            [sys.executable, _SAMPLE, server.host, str(server.port), server.user, subject.file, str(wanted)]
        )
        measured = json.loads(finished.output)
        if measured["rows"] < wanted:
            raise PeerError(f"it read {measured['rows']} rows only")
        factor = subject.binlog.rows / measured["rows"]
        usage = Usage(
            measured["user_seconds"] * factor, measured["system_seconds"] * factor, finished.usage.peak_memory
        )
        return Measurement(measured["seconds"] * factor, measured["start_up_seconds"], {"python": usage})
