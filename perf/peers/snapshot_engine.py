"""The engine's snapshot: the real command with all its processes, up to the last commit on disk."""

from __future__ import annotations

import json
from pathlib import Path

from engine.commands.status import status
from perf.measurement import Measurement, PeerError, Usage, run_command
from perf.memory import FORK_SERVER, MemoryWatch
from perf.peers.engine import COMMAND, ENVIRONMENT, OutputFolders, usages
from perf.peers.rows_reader import RowsReader
from perf.stored_rows import ServedRows
from perf.workload import DATABASE


class SnapshotEngine(RowsReader):
    """`binlog-engine run --start snapshot --stop-at-end` into a new output folder."""

    name = "engine"
    remark = "Arrow on disk, committed, fsync included"

    def __init__(self, work: Path, workers: int, connections: int) -> None:
        """`workers`: decoder processes, 0 for the engine's default."""
        super().__init__(connections)
        self._workers = workers
        self._folders = OutputFolders(work)
        self._memory: dict[str, float] = {}
        self._fork_server: dict[str, Usage] = {}

    def prepare(self) -> None:
        if not COMMAND.exists():
            raise PeerError("the engine is not installed in this Python environment: run make venv")

    def warm_up(self, subject: ServedRows) -> None:
        """Fills the cache of compiled kernels; also samples what the engine's report does not contain.

        Sampling takes some of the processes' time, so it is not done while they are measured.
        """
        self._read(subject, None)
        watch = MemoryWatch()
        self._read(subject, watch)
        self._memory = watch.values()
        self._fork_server = {FORK_SERVER: watch.seen[FORK_SERVER]} if FORK_SERVER in watch.seen else {}

    def read(self, subject: ServedRows) -> Measurement:
        return self._read(subject, None)

    def clean_up(self) -> None:
        self._folders.clean_up()

    def _read(self, subject: ServedRows, watch: MemoryWatch | None) -> Measurement:
        with self._folders.new() as folder:
            report = folder / "report.json"
            finished = run_command(
                snapshot_command(subject, folder / "out", self._workers, self.connections, report),
                environment={**ENVIRONMENT, "MYSQL_PWD": subject.server.password},
                look=watch.look if watch is not None else lambda pid: None,
            )
            outcome = json.loads(report.read_text())
            tables = status(folder / "out").tables
        rows = sum(table.rows for table in tables if table.database == DATABASE)
        if rows != subject.stored.rows:
            raise PeerError(f"it committed {rows} rows, but the tables have {subject.stored.rows}")
        return Measurement(
            finished.seconds,
            # Everything but reading and committing.
            finished.seconds - outcome["seconds"],
            {**usages(outcome["processes"]), **self._fork_server},
            self._memory,
        )


def snapshot_command(
    subject: ServedRows, out: Path, workers: int, connections: int, report: Path
) -> list[str | Path]:
    """The command that reads all rows into `out`."""
    server = subject.server
    return [
        COMMAND,
        "run",
        *("--host", server.host, "--port", str(server.port), "--user", server.user, "--tls", "disabled"),
        *("--start", "snapshot", "--snapshot-workers", str(connections), "--tables", f"{DATABASE}.*"),
        *("--stop-at-end", "--workers", str(workers), "--out", out, "--report", report),
    ]
