"""The engine: the real command with all its processes, up to the last commit on disk."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from engine.commands.status import status
from perf.binlog import ServedBinlog
from perf.measurement import Measurement, PeerError, Usage, run_command
from perf.memory import MemoryWatch
from perf.peer import Peer
from perf.workload import DATABASE

REPOSITORY = Path(__file__).parents[2]
"""The source tree that contains the harness, which is the one that is measured."""
COMMAND = Path(sys.executable).with_name("binlog-engine")
ENVIRONMENT = {
    "PYTHONPATH": str(REPOSITORY),
    # An installed engine comes with bytecode; here the first run writes it.
    "PYTHONDONTWRITEBYTECODE": "",
}


class Engine(Peer[ServedBinlog]):
    """`binlog-engine run --stop-at-end` into a new output folder; `workers` 0 means the engine's default."""

    name = "engine"
    remark = "decoded, committed, fsync included"

    def __init__(self, work: Path, workers: int = 0, *, shard: str = "", watch_memory: bool = False) -> None:
        self._workers = workers
        self._shard = shard
        self._watch_memory = watch_memory
        self._folders = OutputFolders(work)

    def prepare(self) -> None:
        if not COMMAND.exists():
            raise PeerError("the engine is not installed in this Python environment: run make venv")

    def warm_up(self, subject: ServedBinlog) -> None:
        """Fills the cache of compiled kernels."""
        self.measure(subject)

    def measure(self, subject: ServedBinlog) -> Measurement:
        memory = MemoryWatch()
        with self._folders.new() as folder:
            report = folder / "report.json"
            finished = run_command(
                engine_command(subject, folder / "out", self._workers, report, self._shard),
                environment={**ENVIRONMENT, "MYSQL_PWD": subject.server.password},
                look=memory.look if self._watch_memory else lambda pid: None,
            )
            outcome = json.loads(report.read_text())
            tables = status(folder / "out").tables
        rows = sum(table.rows for table in tables if table.database == DATABASE)
        if rows != subject.binlog.change_rows and not self._shard:
            raise PeerError(
                f"it committed {rows} change rows, but the binlog has {subject.binlog.change_rows}"
            )
        seconds = outcome["seconds"]
        return Measurement(
            seconds,
            finished.seconds - seconds,
            usages(outcome["processes"]),
            memory.values() if self._watch_memory else {},
        )

    def clean_up(self) -> None:
        self._folders.clean_up()


class OutputFolders:
    """New folders for the files of runs, below `work`."""

    def __init__(self, work: Path) -> None:
        self._work = work
        self._kept: list[tempfile.TemporaryDirectory[str]] = []

    @contextmanager
    def new(self) -> Iterator[Path]:
        """A new folder, whose files are truncated afterwards and deleted only by `clean_up`.

        Some file systems create files slowly right after others were deleted, and a user does not delete the
        files of hundreds of tables before each run.
        """
        kept = tempfile.TemporaryDirectory(dir=self._work)
        self._kept.append(kept)
        folder = Path(kept.name)
        yield folder
        for file in folder.rglob("*"):
            if file.is_file():
                os.truncate(file, 0)

    def clean_up(self) -> None:
        """Delete all of them."""
        for folder in self._kept:
            folder.cleanup()
        self._kept.clear()


def engine_command(
    subject: ServedBinlog, out: Path, workers: int, report: Path, shard: str = ""
) -> list[str | Path]:
    """The command that reads the whole binlog into `out`; only the tables of a shard if one is given."""
    server = subject.server
    return [
        COMMAND,
        "run",
        *("--host", server.host, "--port", str(server.port), "--user", server.user),
        *("--tls", "required" if subject.tls else "disabled"),
        *("--start", f"{subject.file}:4", "--stop-at-end", "--workers", str(workers)),
        *("--out", out, "--report", report),
        *(("--shard", shard) if shard else ()),
    ]


def usages(processes: Mapping[str, Mapping[str, Any]]) -> dict[str, Usage]:
    """The `processes` of a run's report."""
    return {
        name: Usage(
            (usage["cpu_milliseconds"] - usage["system_milliseconds"]) / 1000,
            usage["system_milliseconds"] / 1000,
            usage["peak_memory"],
        )
        for name, usage in processes.items()
    }
