"""What is done to an engine and around it: a table of faults by name.

A fault is done and undone when its function returns. The engine may go on, or end with one sentence; then it
is started again, as a service manager would.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.chaos.violation import Violation
from tests.servers import Server
from tests.support.engine_run import EngineRun, command_line, wait_until
from tests.support.proxy import NONE, Faults, Proxy

ROLES = ("binlog-engine", "binlog-network", "binlog-dec-0", "binlog-dec-1", "binlog-sink", "python")
"""As processes are called; `python` is the fork server or the resource tracker."""
_DUMPS = "SELECT id FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%%'"
_LONGEST_SECONDS = 1.5
_OTHER_SERVER_ID = 77


@dataclass(frozen=True)
class Scene:
    """What faults are done to."""

    engine: EngineRun
    server: Server
    proxy: Proxy
    out: Path
    random: Random
    command: Sequence[str]
    """How engines are started."""

    def pause(self) -> None:
        """Some part of the longest time."""
        time.sleep(self.random.random() * _LONGEST_SECONDS)


Fault = Callable[[Scene], None]


def _signalled(number: signal.Signals, role: str) -> Fault:
    def fault(scene: Scene) -> None:
        pids = [pid for name, pid in scene.engine.session().items() if name.startswith(role)]
        if pids:
            with suppress(ProcessLookupError):
                os.kill(scene.random.choice(pids), number)

    return fault


def _stopped(role: str) -> Fault:
    stop, go_on = _signalled(signal.SIGSTOP, role), signal.SIGCONT

    def fault(scene: Scene) -> None:
        stop(scene)
        scene.pause()
        for pid in scene.engine.session().values():
            with suppress(ProcessLookupError):
                os.kill(pid, go_on)

    return fault


def _all_killed(scene: Scene) -> None:
    for pid in scene.engine.session().values():
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _server_restarts(scene: Scene) -> None:
    scene.server.restart()


def _server_crashes(scene: Scene) -> None:
    scene.server.kill()
    scene.pause()
    scene.server.start()


def _dump_killed(scene: Scene) -> None:
    for (thread,) in scene.server.query(_DUMPS):
        with suppress(Exception):
            scene.server.query(f"KILL {thread}")


def _rotated(scene: Scene) -> None:
    scene.server.flush_binlog()


def _network(faults: Faults) -> Fault:
    def fault(scene: Scene) -> None:
        scene.proxy.faults = faults
        scene.pause()
        scene.proxy.faults = NONE

    return fault


def _disk_full(scene: Scene) -> None:
    """Fill the output's file system, which is a small one of its own, and make room again."""
    filler = scene.out.parent / "filler"
    with suppress(OSError), filler.open("wb") as file:
        while True:
            file.write(bytes(1 << 20))
    scene.pause()
    filler.unlink()


def _second_engine(scene: Scene) -> None:
    """Another engine for the same output, which has to be refused."""
    # Its own server id, as the server would turn away another replica with the same one.
    arguments = command_line(scene.server, scene.out, port=scene.proxy.port, server_id=_OTHER_SERVER_ID)
    was_running = scene.engine.running
    with EngineRun(arguments, scene.out, command=scene.command) as other:
        # It takes over if the first one has just ended.
        wait_until(lambda: not (other.running and scene.engine.running), "refusal of a second engine")
        ended = other.stop()
    if was_running and not (scene.engine.running and "is in use" in ended.stderr):
        raise Violation(f"a second engine was not refused: {ended.stderr}")


FAULTS: Mapping[str, Fault] = {
    **{f"{role} killed": _signalled(signal.SIGKILL, role) for role in ROLES},
    **{f"{role} asked to end": _signalled(signal.SIGTERM, role) for role in ROLES[:-1]},
    **{f"{role} stopped for a while": _stopped(role) for role in ROLES},
    "all killed": _all_killed,
    "server restarted": _server_restarts,
    "server killed": _server_crashes,
    "dump killed": _dump_killed,
    "binlog rotated": _rotated,
    "network cuts": _network(Faults(cut=0.2)),
    "network stalls": _network(Faults(stall=0.3)),
    "network slow and in pieces": _network(Faults(split=0.5, delay=0.5)),
    "disk full": _disk_full,
    "second engine": _second_engine,
}
DISK_FULL = "disk full"
