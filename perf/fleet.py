"""Quiet sources: the memory, processes and processor time of a fleet, and of a command for each source.

All sources follow one server, which has nothing more for them once they are up to date.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from engine.output.commit_log import CommitLog
from perf.case import Case, Settings, no_material
from perf.measurement import Measurement, PeerError
from perf.memory import PROPORTIONAL, processor_seconds, usages_of
from perf.peer import Peer
from tests.servers import Server, get_server
from tests.support.engine_run import EngineRun, command_line

SOURCES = 20
_QUIET_SECONDS = 10.0
_PATIENCE_SECONDS = 300.0
_LOOK_SECONDS = 0.05


def fleet_case(settings: Settings) -> Case[Server]:
    """The case; `settings.workers` is the number of shared decoders."""
    return Case(
        name="fleet",
        title=f"{SOURCES} quiet sources",
        group="fleet",
        material=no_material,
        offer=_quiet_server,
        peers=[AsFleet(settings), AsServedFleet(settings), AsCommands(settings)],
        measures="seconds until all have committed",
        compares=False,
    )


@contextmanager
def _quiet_server(_: None) -> Iterator[Server]:
    with get_server("mysql-9.7") as server:
        server.execute(
            "CREATE DATABASE quiet",
            "CREATE TABLE quiet.t (id INT PRIMARY KEY)",
            "INSERT INTO quiet.t VALUES (1)",
        )
        yield server


class AsFleet(Peer[Server]):
    """All sources in a fleet."""

    name = "binlog-engine fleet"
    _first_lines: Sequence[str] = ()

    def __init__(self, settings: Settings) -> None:
        self._work = settings.work
        self._workers = settings.workers or 1

    def measure(self, subject: Server) -> Measurement:
        with tempfile.TemporaryDirectory(dir=self._work) as folder, ExitStack() as running:
            root = Path(folder) / "changes"
            begun = time.perf_counter()
            engines = self._start(subject, root, running)
            outs = [root / _name(number) for number in range(SOURCES)]
            while not all(_has_rows(out) for out in outs):
                if not all(engine.running for engine in engines):
                    raise PeerError(f"the engine ended: {engines[0].stderr[-300:]}")
                if time.perf_counter() - begun > _PATIENCE_SECONDS:
                    raise PeerError(f"not all sources have committed: {engines[0].stderr[-300:]}")
                time.sleep(_LOOK_SECONDS)
            seconds = time.perf_counter() - begun
            values = _quiet(engines)
            for engine in engines:
                engine.stop()
        return Measurement(seconds, values=values)

    def _start(self, server: Server, root: Path, running: ExitStack) -> list[EngineRun]:
        file = root.parent / "fleet.toml"
        lines = [f"root = {json.dumps(str(root))}", f"decoders = {self._workers}"]
        lines += [*self._first_lines, "[defaults]"]
        lines += [f"{name} = {json.dumps(value)}" for name, value in _settings(server).items()]
        lines += [f"[source.{_name(number)}]" for number in range(SOURCES)]
        file.write_text("\n".join(lines))
        return [running.enter_context(EngineRun(["fleet", str(file)], root))]


class AsServedFleet(AsFleet):
    """The same with what `http` gathers, while no one asks for it."""

    name = "binlog-engine fleet --http"
    _first_lines = ('http = "0"',)


class AsCommands(AsFleet):
    """A command for each source, with a decoder each."""

    name = f"{SOURCES} × binlog-engine run"

    def _start(self, server: Server, root: Path, running: ExitStack) -> list[EngineRun]:
        engines = []
        for number in range(SOURCES):
            out = root / _name(number)
            command = command_line(server, out, **{**_settings(server), "workers": 1})
            engines.append(running.enter_context(EngineRun(command, out)))
        return engines


def _settings(server: Server) -> dict[str, object]:
    return {"host": server.host, "port": server.port, "user": server.user, "tables": "quiet.*"}


def _name(number: int) -> str:
    return f"s{number:02}"


def _has_rows(out: Path) -> bool:
    last = CommitLog(out).latest()
    return last is not None and last.last_seq > 0


def _quiet(engines: Sequence[EngineRun]) -> dict[str, float]:
    """What the commands and all their processes use while there is nothing to do."""
    before = _processor_seconds(engines)
    time.sleep(_QUIET_SECONDS)
    used = _processor_seconds(engines) - before
    usages = [usage for engine in engines for usage in usages_of(engine.pid)]
    return {
        "processes": float(len(usages)),
        PROPORTIONAL: sum(usage.proportional_memory or 0 for usage in usages) / 1e6,
        "threads": float(sum(len(os.listdir(f"/proc/{pid}/task")) for pid in _processes(engines))),  # noqa: PTH208
        "% of a core": 100 * used / _QUIET_SECONDS,
    }


def _processor_seconds(engines: Sequence[EngineRun]) -> float:
    return sum(map(processor_seconds, _processes(engines)))


def _processes(engines: Sequence[EngineRun]) -> list[int]:
    return [pid for engine in engines for pid in engine.session().values()]
