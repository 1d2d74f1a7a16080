"""Start-up: the time from the command to the first committed row, and the memory of the processes then.

It is measured with the user's cache of compiled kernels and with an empty one, as after an installation. The
engine commits at once here, since waiting for a commit interval is not part of starting.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from perf.binlog import ServedBinlog, binlog_of, served
from perf.case import Case, Settings
from perf.measurement import Measurement, PeerError
from perf.memory import MemoryWatch, processes_of
from perf.peer import Peer
from perf.workloads import BULK
from tests.support.engine_run import EngineRun, command_line

WARM = "warm kernel cache"
COLD = "cold kernel cache"
_SCALE = 0.01
_PATIENCE_SECONDS = 600.0
_LOOK_SECONDS = 0.005
_AS_INSTALLED = {"PYTHONDONTWRITEBYTECODE": ""}
"""Installed modules have bytecode; those of a checkout may lack it."""


def start_up_case(settings: Settings) -> Case[ServedBinlog]:
    """The case with a small binlog, so that only starting takes time."""
    return Case(
        name="start-up",
        title="from the command to the first committed row",
        group="start-up",
        material=lambda: binlog_of(BULK, _SCALE),
        offer=served,
        peers=[Started(settings.work, settings.workers), StartedCold(settings.work, settings.workers)],
        measures="seconds to the first row",
        compares=False,
    )


class Started(Peer[ServedBinlog]):
    """`binlog-engine run` until its first commit with rows."""

    name = WARM

    def __init__(self, work: Path, workers: int) -> None:
        self._work = work
        self._workers = workers

    def warm_up(self, subject: ServedBinlog) -> None:
        """Fills the cache of compiled kernels."""
        self.measure(subject)

    def measure(self, subject: ServedBinlog) -> Measurement:
        return self._measure(subject, {})

    def _measure(self, subject: ServedBinlog, environment: dict[str, str]) -> Measurement:
        with tempfile.TemporaryDirectory(dir=self._work) as folder:
            out = Path(folder) / "out"
            start = f"{subject.file}:4"
            command = command_line(
                subject.server, out, start=start, commit_interval=0, tls="disabled", workers=self._workers
            )
            begun = time.perf_counter()
            with EngineRun(command, out, environment=_AS_INSTALLED | environment) as engine:
                while not _has_rows(engine):
                    if not engine.running or time.perf_counter() - begun > _PATIENCE_SECONDS:
                        raise PeerError(f"the engine committed nothing: {engine.stderr[-300:]}")
                    time.sleep(_LOOK_SECONDS)
                seconds = time.perf_counter() - begun
                engine.catch_up(subject.server)
                processes = processes_of(engine.pid)
                engine.stop()
        memory = MemoryWatch()
        memory.take(processes)
        return Measurement(seconds, processes=processes, values=memory.values())


class StartedCold(Started):
    """The same, with an empty cache that is removed afterwards."""

    name = COLD
    remark = "every kernel is compiled"
    most_runs = 1

    def warm_up(self, subject: ServedBinlog) -> None:
        """Does nothing, since the cache must be empty."""

    def measure(self, subject: ServedBinlog) -> Measurement:
        with tempfile.TemporaryDirectory(dir=self._work) as cache:
            return self._measure(subject, {"XDG_CACHE_HOME": cache})


def _has_rows(engine: EngineRun) -> bool:
    last = engine.log.latest()
    return last is not None and last.last_seq > 0
