"""connectorx, the usual way to read a MySQL table into Arrow: a library in Rust, called from Python."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from perf.measurement import Measurement, PeerError, run_command
from perf.peers.program import built
from perf.peers.rows_reader import RowsReader
from perf.stored_rows import ServedRows
from perf.workload import DATABASE

_SOURCES = Path(__file__).with_name("connectorx_reader")
_INSTALL = [sys.executable, "-m", "pip", "install", "--quiet", "--target", "lib", "-r", "requirements.txt"]


class ConnectorX(RowsReader):
    """Reads every table into an Arrow table; each part of a table is another view of it."""

    name = "connectorx"
    remark = "Arrow in memory; DECIMAL as double; nothing on disk"

    def prepare(self) -> None:
        self._folder = built("connectorx", _SOURCES, sys.executable, _INSTALL)

    def read(self, subject: ServedRows) -> Measurement:
        server = subject.server
        uri = f"mysql://{server.user}@{server.host}:{server.port}/{DATABASE}"
        finished = run_command(
            [sys.executable, self._folder / "read_tables.py", uri, str(self.connections), *subject.tables],
            environment={"PYTHONPATH": str(self._folder / "lib")},
        )
        rows = json.loads(finished.output)["rows"]
        if rows != subject.stored.rows:
            raise PeerError(f"it read {rows} rows, but the tables have {subject.stored.rows}")
        return Measurement(finished.seconds, processes={"connectorx": finished.usage})
