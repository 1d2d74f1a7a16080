"""The short form: a few faults on one server, and a planted fault that is noticed."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.commands.status import status
from engine.output.caught_up import read_caught_up
from tests.chaos.failing_calls import FailingCalls
from tests.chaos.faults import FAULTS
from tests.chaos.own_disk import own_disk
from tests.chaos.planted import command
from tests.chaos.trial import SAFE, Stuck, Trial
from tests.chaos.violation import Violation
from tests.chaos.workload import Client
from tests.servers import Server
from tests.support.engine_run import EngineRun, command_line, wait_until
from tests.support.preload import MISSING_COMPILER, can_compile
from tests.support.seeds import chosen_seed

pytestmark = [pytest.mark.server, pytest.mark.slow]

needs_compiler = pytest.mark.skipif(not can_compile(), reason=MISSING_COMPILER)
NAMES = ("binlog-sink killed", "binlog-network asked to end", "server killed", "network cuts", "all killed")
FAILING = ("EIO: fsync of a file", "short writes")
HOUR = 3600
BUSY_SECONDS = 0.7
"""Processor time that an engine without work does not use in a second, all processes together."""


@pytest.fixture(scope="module")
def server(own_server: Callable[..., Server]) -> Server:
    return own_server("mysql-9.7", SAFE)


def test_nothing_is_lost_and_nothing_comes_twice(server: Server, tmp_path: Path) -> None:
    assert set(NAMES) <= FAULTS.keys()
    trial = Trial(server, tmp_path / "out", seed=chosen_seed(7), names=NAMES)
    report = trial.run(len(NAMES))
    assert {each.fault for each in report.happenings} == set(NAMES)
    assert report.transactions and report.commits


def test_an_engine_that_was_asked_to_end_has_ended_before_the_next_fault(
    server: Server, tmp_path: Path
) -> None:
    names = ("binlog-engine asked to end", "binlog-dec-0 asked to end")
    # While it connects again, there may be no such process to ask.
    trial = Trial(server, tmp_path / "out", seed=chosen_seed(7), names=names, heartbeat_seconds=2.0)
    report = trial.run(6)
    assert {each.outcome for each in report.happenings} == {"ended, was started again"}


@needs_compiler
def test_calls_that_fail_lose_nothing(server: Server, tmp_path: Path) -> None:
    trial = Trial(server, tmp_path / "out", seed=chosen_seed(7), names=FAILING)
    outcomes = {each.fault: each.outcome for each in trial.run(len(FAILING)).happenings}
    assert outcomes == dict(zip(FAILING, ("ended, was started again", "went on"), strict=True))


@needs_compiler
def test_without_work_a_clock_that_steps_changes_nothing(server: Server, tmp_path: Path) -> None:
    """No process is busy, what comes is committed, and `status` knows that nothing is missing."""
    out = tmp_path / "out"
    server.execute("CREATE DATABASE IF NOT EXISTS quiet", "CREATE TABLE quiet.t (id INT AUTO_INCREMENT KEY)")
    arguments = command_line(server, out, commit_interval=0.05, heartbeat_seconds=0.25)
    with FailingCalls(out) as calls, EngineRun(arguments, out, environment=calls.environment) as engine:
        engine.catch_up(server)
        for step in (-1, 24, -1):
            calls.step_clock(step * HOUR)
            wait_until(
                lambda: abs((read_caught_up(out) or 0) / 1e6 - calls.now()) < HOUR / 2, "note of the new time"
            )
            before = processor_seconds(engine)
            time.sleep(1.0)
            assert processor_seconds(engine) - before < BUSY_SECONDS
            server.execute("INSERT INTO quiet.t VALUES ()")
            engine.catch_up(server)
        assert engine.stop().status == 0
    assert status(out).commit >= 3


def processor_seconds(engine: EngineRun) -> float:
    """What all processes of a run have used so far."""
    ticks = 0
    for pid in engine.session().values():
        user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        ticks += int(user) + int(system)
    return ticks / os.sysconf("SC_CLK_TCK")


def test_what_was_committed_before_anyone_asked_is_no_trial_that_is_stuck(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave = Client.__exit__

    def leave_slowly(client: Client, *error: Any) -> None:
        leave(client, *error)
        time.sleep(1.0)

    monkeypatch.setattr(Client, "__exit__", leave_slowly)
    trial = Trial(server, tmp_path / "out", seed=chosen_seed(7), names=["binlog rotated"], flow_seconds=30)
    assert trial.run(0).transactions


def test_a_full_disk_has_room_again(server: Server) -> None:
    with own_disk() as (folder, is_mounted):
        if not is_mounted:
            pytest.skip("only root can mount a file system")
        trial = Trial(server, folder / "out", seed=chosen_seed(7), names=["disk full"])
        (happening,) = trial.run(1).happenings
        assert happening.outcome == "ended, was started again"
        assert shutil.disk_usage(folder).free > 4 << 30


def test_a_planted_fault_is_noticed(server: Server, tmp_path: Path) -> None:
    trial = Trial(
        server,
        tmp_path / "out",
        seed=chosen_seed(7),
        names=("all killed",),
        command=command("position is behind"),
    )
    with pytest.raises(Violation, match="already"):
        trial.run(5)


def test_a_chunk_of_a_snapshot_that_is_lost_is_noticed(server: Server, tmp_path: Path) -> None:
    planted = command("a chunk is lost")
    trial = Trial(server, tmp_path / "out", seed=chosen_seed(7), names=("binlog rotated",), command=planted)
    with pytest.raises(Violation, match=r"the row was None|divides|lost"):
        trial.run(3)


@needs_compiler
def test_a_failed_fsync_that_is_ignored_is_noticed(server: Server, tmp_path: Path) -> None:
    planted, name = command("a failed fsync is ignored"), "EIO: fsync of a file"
    trial = Trial(server, tmp_path / "out", seed=chosen_seed(7), names=[name], command=planted)
    with pytest.raises(Violation, match="cannot be read"):
        trial.run(3)


@needs_compiler
def test_a_wall_clock_for_intervals_is_noticed(server: Server, tmp_path: Path) -> None:
    planted, name = command("the wall clock is used for intervals"), "clock an hour back, then no work"
    trial = Trial(
        server,
        tmp_path / "out",
        seed=chosen_seed(7),
        names=[name],
        command=planted,
        flow_seconds=30,
        # A new connection would have new waits.
        heartbeat_seconds=2.0,
    )
    with pytest.raises(Stuck, match="note that nothing is missing"):
        trial.run(1)
