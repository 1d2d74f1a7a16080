"""What is done to an engine and around it: a table of faults by name.

A fault is done and undone when its function returns, except clocks, and calls that fail while the engine
starts. The engine may go on, or end with one sentence; then it is started again, as a service manager would.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

from engine.output.caught_up import read_caught_up
from tests.chaos.failing_calls import Calls, FailingCalls, Harm
from tests.chaos.own_disk import full
from tests.chaos.violation import Violation
from tests.servers import Server
from tests.support.engine_run import EngineRun, command_line, wait_until
from tests.support.proxy import NONE, Faults, Proxy

ROLES = (
    "binlog-engine",
    "binlog-network",
    "binlog-dec-0",
    "binlog-dec-1",
    "binlog-sink",
    "binlog-snapshot",
    "python",
)
"""As processes are called; `python` is the fork server or the resource tracker."""
_DUMPS = "SELECT id FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%%'"
_LONGEST_SECONDS = 1.5
_START_SECONDS = 5.0
_END_SECONDS = 10.0
_OTHER_SERVER_ID = 77
_MOST_PASSED = 40
"""Calls that are left alone before one fails: some commits."""
_MOST_PASSED_AT_START = 12
_SHORT_WRITES = 200
_HOUR, _DAY = 3600, 86400


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
    without_work: Callable[[], AbstractContextManager[None]]
    """Meanwhile there are no transactions and no snapshots."""
    flow: Callable[[], None]
    """Returns when all that is in the binlog now is committed; raises a violation if that takes too long."""
    flow_seconds: float
    """The limit."""
    calls: FailingCalls | None = None
    """Of the engine; None if no fault needs them."""

    @property
    def failing_calls(self) -> FailingCalls:
        assert self.calls is not None
        return self.calls

    def pause(self) -> None:
        """Some part of the longest time."""
        time.sleep(self.random.random() * _LONGEST_SECONDS)


Fault = Callable[[Scene], None]


def _pids(scene: Scene, role: str) -> list[int]:
    if role == ROLES[0]:
        # Not by name: a planted engine's is that of Python.
        return [scene.engine.pid] if scene.engine.running else []
    return [pid for name, pid in scene.engine.session().items() if name.startswith(role)]


def _signalled(number: signal.Signals, role: str) -> Fault:
    def fault(scene: Scene) -> None:
        # The engine may be about to start it: that of snapshots is there while one is read.
        with suppress(AssertionError):
            wait_until(lambda: _pids(scene, role), role, _START_SECONDS)
        if pids := _pids(scene, role):
            with suppress(ProcessLookupError):
                os.kill(scene.random.choice(pids), number)

    return fault


def _ended(number: signal.Signals, role: str) -> Fault:
    """A signal that ends the engine, which goes on for a moment: the next fault is not to meet its end."""
    send = _signalled(number, role)

    def fault(scene: Scene) -> None:
        send(scene)
        # A process that is just being started may miss it.
        with suppress(AssertionError):
            wait_until(lambda: not scene.engine.running, "end", _END_SECONDS)

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
    """The output's file system, which is one of its own, has no room for a while."""
    with full(scene.out.parent):
        scene.pause()


_OF_THE_LOCK = ("is in use by another binlog-engine", "another binlog-engine was still writing there")
"""What an engine says that finds the output locked."""


def _second_engine(scene: Scene) -> None:
    """Another engine for the same output: one of the two has to be refused."""
    # Its own server id, as the server would turn away another replica with the same one.
    arguments = command_line(scene.server, scene.out, port=scene.proxy.port, server_id=_OTHER_SERVER_ID)
    was_running = scene.engine.running
    with EngineRun(arguments, scene.out, command=scene.command) as other:
        # It takes over if the first one has just ended, or is about to connect again.
        wait_until(lambda: not (other.running and scene.engine.running), "refusal of a second engine")
        goes_on = scene.engine.running
        ended = other.stop()
    refusal = ended.stderr if goes_on else scene.engine.stderr
    # Without the lock the first commit after one of the other engine's is refused, which would hide that.
    if was_running and not any(words in refusal for words in _OF_THE_LOCK):
        raise Violation(f"the lock refused neither of two engines: {refusal}")


def _failed_call(calls: Calls, most_passed: int = _MOST_PASSED) -> Fault:
    """One such call fails with EIO."""

    def fault(scene: Scene) -> None:
        armed = scene.failing_calls
        armed.arm(calls, Harm.ERROR, passed=scene.random.randrange(most_passed))
        wait_until(lambda: not (armed.left and scene.engine.running), "call that fails")
        armed.disarm()

    return fault


def _start_fails(scene: Scene) -> None:
    """One of the first calls of the next start fails with EIO."""
    _all_killed(scene)
    scene.engine.wait_until_gone()
    passed = scene.random.randrange(_MOST_PASSED_AT_START)
    scene.failing_calls.arm(~Calls(0), Harm.ERROR, passed=passed)


def _short_writes(scene: Scene) -> None:
    """Many writes write less than all, which must not end the engine."""
    armed = scene.failing_calls
    armed.arm(Calls.WRITE, Harm.SHORT, times=_SHORT_WRITES)
    wait_until(lambda: not armed.left, "short writes", check=lambda: _must_run(scene))
    armed.disarm()


def _clock_stepped(seconds: int) -> Fault:
    """The wall clock of the engine steps, and stays like that; that must not end the engine."""

    def fault(scene: Scene) -> None:
        scene.failing_calls.step_clock(seconds)
        commits = scene.engine.log.latest_version()
        moved = lambda: scene.engine.log.latest_version() > commits + 1  # noqa: E731
        wait_until(moved, "commit after the step of the clock", check=lambda: _must_run(scene))

    return fault


def _clock_stepped_at_rest(seconds: int) -> Fault:
    """The same right after the last transaction, and none follows until the output is known to have all.

    Where work goes on, it hides a wait that has become an hour longer: with each transaction and each
    heartbeat a commit is due by the new time. What is only done now and then comes an hour later.
    """

    def fault(scene: Scene) -> None:
        with scene.without_work():
            scene.failing_calls.step_clock(seconds)
            scene.flow()
            wait_until(lambda: _notes_time(scene), "note that nothing is missing", scene.flow_seconds)
        if not scene.engine.running:
            raise Violation("the engine has ended after its clock was set")

    return fault


def _notes_time(scene: Scene) -> bool:
    """Whether the output says that everything was there a moment ago, by the engine's wall clock."""
    noted = read_caught_up(scene.out)
    return noted is not None and abs(noted / 1e6 - scene.failing_calls.now()) < _HOUR / 2


def _must_run(scene: Scene) -> None:
    if not scene.engine.running:
        raise Violation(f"the engine has ended: {scene.engine.stderr[-1000:]}")


FAULTS: Mapping[str, Fault] = {
    **{f"{role} killed": _ended(signal.SIGKILL, role) for role in ROLES[:-1]},
    "python killed": _signalled(signal.SIGKILL, "python"),
    **{f"{role} asked to end": _ended(signal.SIGTERM, role) for role in ROLES[:-1]},
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
    "EIO: write": _failed_call(Calls.WRITE),
    "EIO: fsync of a file": _failed_call(Calls.SYNC_FILE),
    "EIO: fsync of a folder": _failed_call(Calls.SYNC_FOLDER),
    "EIO: rename": _failed_call(Calls.RENAME, most_passed=5),
    "EIO: open": _failed_call(Calls.OPEN),
    "EIO: while it starts": _start_fails,
    "short writes": _short_writes,
    "clock an hour back": _clock_stepped(-_HOUR),
    "clock a day ahead": _clock_stepped(_DAY),
    "clock an hour back, then no work": _clock_stepped_at_rest(-_HOUR),
    "clock a day ahead, then no work": _clock_stepped_at_rest(_DAY),
}
OWN_DISK = frozenset({"disk full"})
"""Those that need an output with a file system of its own."""
FAILING_CALLS = frozenset(name for name in FAULTS if name.startswith(("EIO", "short", "clock")))
"""Those that need what `failing_calls` compiles."""
