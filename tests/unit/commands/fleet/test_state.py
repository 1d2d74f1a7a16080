"""How sources are: what an observer has seen, the file that shows it, and the table of a terminal."""

from __future__ import annotations

import io
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from engine.binlog.position import BinlogPosition
from engine.commands.fleet.display import FleetDisplay
from engine.commands.fleet.source_state import SourceState, StateKeeper
from engine.commands.fleet.state_file import FleetState, StateFile
from engine.errors import EngineError
from engine.pipeline.observer import Happening
from engine.pipeline.outcome import Outcome
from engine.pipeline.reports import DumpStarted, Report, SinkProgress, Totals


def progress(rows: int, caught_up: float = 0.0) -> Report:
    totals = Totals(commits=1, rows=rows)
    body = SinkProgress(
        totals, 0, None, 0, 0, committed=BinlogPosition("b.1", 4), caught_up_us=int(caught_up * 1_000_000)
    )
    return Report("sink", body)


def test_a_source_through_its_life() -> None:
    keeper = StateKeeper("shop", "/out")
    assert keeper.state.stage == "starting" and keeper.state.lag(0.0) is None
    keeper.process_started("sink", 42)
    keeper.reported(Report("network", DumpStarted(1.0)))
    keeper.reported(progress(5, caught_up=1000.0))
    state = keeper.state
    assert (state.stage, state.rows, state.commits, dict(state.processes)) == ("running", 5, 1, {"sink": 42})
    assert state.lag(1001.0) == 0.0 and state.lag(1100.0) == 100.0
    keeper.run_ended(Outcome(error="lost"))
    keeper.warn("retry", "lost; trying again in 2.0 s", pause_seconds=2.0)
    state = keeper.state
    assert (state.stage, state.error, state.processes) == ("waiting", "lost; trying again in 2.0 s", {})
    assert state.retry_us is not None and 0 < state.retry_us / 1_000_000 - time.time() <= 2.0
    assert state.lag(1001.0) == 1.0
    # Rows add up over runs.
    keeper.reported(Report("network", DumpStarted(1.0)))
    keeper.reported(progress(7))
    assert keeper.state.rows == 12 and keeper.state.error is None
    keeper.ended()
    state = keeper.state
    assert state.stage == "ended"


def test_the_file_is_private_and_of_one_fleet(tmp_path: Path) -> None:
    file = StateFile(tmp_path / "root")
    assert file.running() is None and file.read() is None
    state = FleetState(os.getpid(), (SourceState("shop", "/out", processes={"sink": 1}),), 2, "wrong")
    with file.locked():
        assert file.running() == os.getpid() and file.read() is None
        file.write(state)
        assert StateFile(tmp_path / "root").read() == state
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "root").rglob("*")}
        assert modes == {"_fleet": 0o700, "lock": 0o600, "state.json": 0o600}
        with pytest.raises(EngineError, match=rf"a fleet runs in .*root already \(process {os.getpid()}\)"):
            StateFile(tmp_path / "root").locked().__enter__()
    assert file.read() is None


def test_the_lock_of_a_fleet_that_was_killed_is_free(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib\n"
        "from engine.commands.fleet.state_file import *\n"
        "file = StateFile(pathlib.Path(sys.argv[1]))\n"
        "with file.locked():\n"
        "    file.write(FleetState(1))\n"
        "    print(flush=True)\n"
        "    sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    file = StateFile(tmp_path)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline()
        assert file.running() == process.pid
        # Its content says another process id: it is not this fleet's.
        assert file.read() is None
        process.kill()
    assert file.running() is None
    with file.locked():
        assert file.running() == os.getpid()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_table_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    stream = Terminal()
    display = FleetDisplay(stream)
    states = [SourceState("shop", "/out", "running", rows=1234), SourceState("crm", "/o", error="x" * 80)]
    display.show(states)
    lines = stream.getvalue().splitlines()
    assert lines[0].split() == ["source", "state", "lag", "rows", "commits", "last", "error"]
    assert lines[1].split() == ["shop", "running", "1,234", "0"]
    assert len(lines[2]) == 59
    # A warning appears above the table, which is drawn again.
    display.happened(Happening("warning", "w", "careful"))
    after = stream.getvalue().splitlines()[3:]
    assert after[0].endswith("\x1b[Jbinlog-engine: warning: careful") and after[0].startswith("\x1b[3A")
    assert after[1:] == lines


def test_a_line_elsewhere() -> None:
    stream = io.StringIO()
    display = FleetDisplay(stream)
    display.show([SourceState("a", "/a", "running", rows=2), SourceState("b", "/b", "waiting", commits=1)])
    display.show([])
    assert stream.getvalue() == "2 sources (1 running, 1 waiting): 2 rows, 1 commits\n"
