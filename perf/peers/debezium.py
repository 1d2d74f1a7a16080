"""Debezium's embedded engine: change events as JSON, without their schemas, written into a file.

Both peers measure some rows after those that warm the virtual machine up, and extrapolate to all rows.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

from perf.binlog import ServedBinlog
from perf.measurement import Measurement, PeerError, Usage, run_command
from perf.peer import Peer
from perf.peers.java import java, java_classes
from perf.stored_rows import ServedRows
from perf.workload import DATABASE
from tests.servers import Server

WARM_UP_ROWS = 100_000
SAMPLE_ROWS = 200_000
_SOURCES = Path(__file__).with_name("debezium")
_REMARK = f"JSON, no fsync; warm, {SAMPLE_ROWS:,} rows at most, extrapolated"


class DebeziumEmbedded(Peer[ServedBinlog]):
    """Follows a binlog.

    It starts at the binlog's first event, from an offset in the format of its own file store. The schema
    history is built from the current tables, which counts as start-up.
    """

    name = "Debezium embedded"
    remark = _REMARK
    most_runs = 1

    def __init__(self, work: Path) -> None:
        self._work = work

    def prepare(self) -> None:
        self._command = _command()

    def measure(self, subject: ServedBinlog) -> Measurement:
        start = ["binlog", subject.file]
        return _measured(self._command, subject.server, self._work, subject.binlog.rows, start)


class DebeziumSnapshot(Peer[ServedRows]):
    """Reads the rows of all tables, several tables at a time, without start-up."""

    name = "Debezium's snapshot"
    remark = _REMARK
    most_runs = 1

    def __init__(self, work: Path, connections: int) -> None:
        self._work = work
        self._connections = connections

    def prepare(self) -> None:
        self._command = _command()

    def measure(self, subject: ServedRows) -> Measurement:
        start = ["snapshot", str(self._connections)]
        return _measured(self._command, subject.server, self._work, subject.stored.rows, start)


def _command() -> list[str | Path]:
    """The beginning of the program's command. Raises PeerError if it cannot be built."""
    return [java(), "-cp", java_classes("debezium", _SOURCES), "RunDebezium"]


def _measured(
    command: Sequence[str | Path], server: Server, work: Path, rows: int, start: Sequence[str]
) -> Measurement:
    """A run of the program, extrapolated to `rows`; `start`: its arguments about where it starts."""
    warm_up = min(WARM_UP_ROWS, rows // 3)
    wanted = min(warm_up + SAMPLE_ROWS, rows)
    with tempfile.TemporaryDirectory(dir=work) as folder:
        finished = run_command(
            [
                *command,
                *(server.host, str(server.port), server.user, DATABASE),
                *(folder, str(warm_up), str(wanted), *start),
            ]
        )
    measured = json.loads(finished.output)
    if measured["rows"] < (wanted - warm_up) // 2:
        raise PeerError(f"it measured {measured['rows']} rows only")
    factor = rows / measured["rows"]
    usage = Usage(
        measured["user_seconds"] * factor, measured["system_seconds"] * factor, finished.usage.peak_memory
    )
    return Measurement(measured["seconds"] * factor, measured["start_up_seconds"], {"java": usage})
