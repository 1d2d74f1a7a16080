"""The figures that follow from what the supervisor reports."""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest

from engine.binlog.position import BinlogPosition
from engine.errors import EngineError
from engine.monitoring import source_watch
from engine.monitoring.figures import BinlogFiles
from engine.monitoring.history import SAMPLE_SECONDS, Sample
from engine.monitoring.monitor import Monitor
from engine.net.client.side_connection import SideConnection
from engine.pipeline.durations import NO_DURATIONS
from engine.pipeline.observer import Happening, Observer
from engine.pipeline.outcome import Outcome
from engine.pipeline.reports import (
    DecoderProgress,
    DumpStarted,
    NetworkProgress,
    Report,
    SinkProgress,
    Totals,
)
from engine.records import replaced
from tests.support.figures import plan

HERE = BinlogPosition("binlog.000003", 150)


class Listener(Observer):
    def __init__(self) -> None:
        self.happenings: list[Happening] = []

    def happened(self, happening: Happening) -> None:
        self.happenings.append(happening)


@pytest.fixture
def monitor(tmp_path: Path) -> Monitor:
    """Of a run that has just started."""
    monitor = Monitor(tmp_path, "6ecc8988", Listener())
    begin(monitor, tmp_path)
    return monitor


def begin(monitor: Monitor, out: Path) -> None:
    monitor.run_started(plan(out))
    for name in ("sink", "decoder-0", "network"):
        monitor.process_started(name, os.getpid())


def sink(monitor: Monitor, **values: Any) -> None:
    progress = SinkProgress(Totals(), 0, None, 0, waiting=0, committed=HERE)
    monitor.reported(Report("sink", replaced(progress, **values)))


def network(monitor: Monitor, position: BinlogPosition = HERE, **values: Any) -> None:
    progress = NetworkProgress(1000, position.file, position.position)
    monitor.reported(Report("network", replaced(progress, **values)))


def just_now() -> int:
    return time.time_ns() // 1000


def lag_of(monitor: Monitor) -> float:
    lag = monitor.figures().lag_seconds
    assert lag is not None
    return lag


def test_lag_is_0_while_the_server_says_that_there_is_nothing(monitor: Monitor) -> None:
    sink(monitor, caught_up_us=just_now())
    network(monitor)
    assert monitor.figures().lag_seconds == 0.0


@pytest.mark.parametrize(
    ("sink_says", "network_at"),
    [
        ({}, BinlogPosition("binlog.000003", 151)),
        ({}, BinlogPosition("binlog.000004", 4)),
        ({"uncommitted_seconds": 0.5}, HERE),
        ({"committed": None}, HERE),
    ],
    ids=["more was received", "another file was begun", "a commit is due", "another server's position"],
)
def test_lag_is_not_0_when_anything_came_since(
    monitor: Monitor, sink_says: dict[str, float | None], network_at: BinlogPosition
) -> None:
    sink(monitor, **{"caught_up_us": just_now() - 2_000_000, **sink_says})
    network(monitor, network_at)
    assert 2.0 <= lag_of(monitor) < 3.0


def test_lag_grows_from_the_last_event_or_the_last_word_of_the_server(monitor: Monitor) -> None:
    assert monitor.figures().lag_seconds is None
    sink(monitor, committed_timestamp=int(time.time()) - 100)
    network(monitor)
    assert 99 < lag_of(monitor) < 102
    sink(monitor, committed_timestamp=int(time.time()) - 100, caught_up_us=just_now() - 50_000_000)
    assert 50 <= lag_of(monitor) < 51


def test_a_clock_that_was_set_back_hides_no_lag(monitor: Monitor) -> None:
    sink(monitor, caught_up_us=just_now() + 3600_000_000)
    sink(monitor, committed_timestamp=int(time.time()) - 100)
    network(monitor)
    assert 99 < lag_of(monitor) < 102


def test_without_a_run_nobody_has_said_that_there_is_nothing(monitor: Monitor) -> None:
    sink(monitor, caught_up_us=just_now())
    network(monitor)
    monitor.run_ended(Outcome())
    figures = monitor.figures()
    assert figures.lag_seconds is not None and 0 < figures.lag_seconds < 1
    assert not figures.is_running and [process.name for process in figures.processes] == ["supervisor"]


def test_counters_go_on_over_runs(monitor: Monitor, tmp_path: Path) -> None:
    totals = Totals(commits=1, rows=10, bytes=100, transactions=5)
    for number in range(1, 4):
        sink(monitor, totals=totals, commit_seconds=NO_DURATIONS.with_one(0.2))
        network(monitor, received=1000, waited_seconds=0.5)
        figures = monitor.figures()
        assert figures.totals == Totals(number, 10 * number, 100 * number, 5 * number)
        assert (figures.received_bytes, figures.waited_seconds) == (1000 * number, 0.5 * number)
        assert sum(figures.commit_seconds.counts) == number == figures.attempts
        monitor.run_ended(Outcome())
        assert monitor.figures().totals == figures.totals
        begin(monitor, tmp_path)


def test_a_process_is_silent_since_its_last_report(monitor: Monitor) -> None:
    assert not any(process.has_reported for process in monitor.figures().processes[1:])
    monitor.reported(Report("decoder-0", DecoderProgress()))
    monitor.reported(Report("network", DumpStarted(time.monotonic())))
    figures = monitor.figures()
    reported = {process.name: process.has_reported for process in figures.processes}
    assert reported == {"supervisor": True, "sink": False, "decoder-0": True, "network": True}
    assert figures.is_dumping
    assert all(process.silent_seconds < 1 for process in figures.processes)
    supervisor = figures.processes[0]
    assert supervisor.resident_bytes is not None and supervisor.resident_bytes > 1 << 20
    assert supervisor.open_files is not None and supervisor.open_files > 2


def test_it_is_stalled_until_the_sink_advances(monitor: Monitor, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = time.monotonic()
    sink(monitor, taken=1)
    monkeypatch.setattr(time, "monotonic", lambda: clock + 20)
    sink(monitor, taken=1)
    assert monitor.figures().stalled_seconds >= 19
    for advance in (
        {"taken": 2},
        {"taken": 2, "caught_up_us": 1},
        {"taken": 2, "caught_up_us": 1, "commit": 1},
    ):
        sink(monitor, **advance)
        assert monitor.figures().stalled_seconds == 0


@pytest.mark.parametrize(
    ("position", "behind", "headroom_bytes", "has_headroom"),
    [
        (HERE, 50, 350, True),
        (BinlogPosition("binlog.000002", 40), 260, 140, True),
        (BinlogPosition("binlog.000001", 4), 396, 4, True),
        (BinlogPosition("binlog.000003", 300), 0, 500, True),
        (BinlogPosition("binlog.000000", 90), 400, 0, False),
    ],
    ids=["last file", "file before", "oldest", "further than when asked", "purged"],
)
def test_the_position_is_compared_with_the_server(
    monitor: Monitor, position: BinlogPosition, behind: int, headroom_bytes: int, has_headroom: bool
) -> None:
    begun = int(time.time()) - 3600
    files = (("binlog.000001", 100), ("binlog.000002", 100), ("binlog.000003", 200))
    monitor.source.figures = BinlogFiles(files, begun)
    monitor.source.asked = time.monotonic()
    sink(monitor, committed=position, caught_up_us=just_now())
    server = monitor.figures().server
    assert (server.behind_bytes, server.headroom_bytes) == (behind, headroom_bytes)
    assert server.headroom_seconds is not None
    assert 3599 < server.headroom_seconds < 3602 if has_headroom else server.headroom_seconds == 0


def test_a_server_that_does_not_say_is_a_warning_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listener = Listener()
    monitor = Monitor(tmp_path, "", listener)
    monkeypatch.setattr(source_watch, "_ASK_SECONDS", 0.0)
    reasons = iter(["access denied", "access denied", "it is gone"])

    def refuse(*_: object) -> NoReturn:
        raise EngineError(next(reasons))

    monkeypatch.setattr(SideConnection, "ask", refuse)
    monitor.run_started(plan(tmp_path))
    for _ in range(3):
        monitor.source.ask()
    assert [happening.message.rpartition(": ")[2] for happening in listener.happenings] == [
        "access denied",
        "it is gone",
    ]
    assert monitor.figures().server.error == "it is gone"
    assert monitor.figures().notice_counts == {"warning": 2, "error": 0}


def test_the_disk_is_full_when_its_free_space_is_used_up(monitor: Monitor) -> None:
    assert monitor.figures().disk_left_seconds is None
    monitor.tail.read()
    free = monitor.tail.figures.disk_free_bytes
    assert free is not None
    sample = Sample.of(monitor.figures())
    for number in range(5):
        shrunk = free + (4 - number) * 10_000
        monitor.history.add(replace(sample, time=sample.time + 10 * number, disk_free_bytes=shrunk))
    assert monitor.figures().disk_left_seconds == pytest.approx(free / 1000)
    monitor.history.add(replace(sample, time=sample.time + 60, disk_free_bytes=free + 80_000))
    assert monitor.figures().disk_left_seconds == float("inf")


def test_a_file_that_grows_uses_up_the_disk() -> None:
    # A file system in memory, as others write to the disk, too.
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        monitor = Monitor(Path(folder), "6ecc8988", Listener())
        monitor.tail.read()
        before = Sample.of(monitor.figures())
        written = 32 << 20
        (Path(folder) / "data").write_bytes(bytes(written))
        monitor.tail.read()
        after = Sample.of(monitor.figures())
        monitor.history.add(replace(before, time=after.time - 100))
        monitor.history.add(after)
        assert after.disk_free_bytes is not None
        used_up = after.disk_free_bytes / (written / 100)
        assert monitor.figures().disk_left_seconds == pytest.approx(used_up, rel=0.2)


def test_warnings_are_kept_and_counted(monitor: Monitor) -> None:
    monitor.inform("run_started", "of no interest here")
    for number in range(60):
        monitor.warn("retry", f"warning {number}")
    figures = monitor.figures()
    assert figures.notice_counts == {"warning": 60, "error": 0}
    assert [notice.message for notice in figures.notices] == [f"warning {n}" for n in range(10, 60)]


def test_the_log_is_read_when_the_sink_has_committed(
    monitor: Monitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or with a sample, every ten seconds: in an object store, to look costs requests."""
    reads = []
    monkeypatch.setattr(monitor.tail, "read", lambda: reads.append(1))
    monitor.sample()
    monitor.sample()
    assert len(reads) == 1
    for commit in (0, 0, 1, 1):
        sink(monitor, commit=commit)
        monitor.sample()
        monitor.sample()
    assert len(reads) == 3
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + SAMPLE_SECONDS)
    monitor.sample()
    monitor.sample()
    assert len(reads) == 4
    assert len(monitor.history.columns()["time"]) == 2
