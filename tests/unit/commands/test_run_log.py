"""The lines of the log: one for each happening, in both formats, and nothing of it without a format."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NoReturn

import pytest

from engine.commands.logged import logged
from engine.commands.narrator import Narrator
from engine.commands.pipeline_run import show_run
from engine.commands.run_log import RunLog
from engine.commands.run_progress import Display
from engine.config.setting_groups import LogSettings, PipelineSettings
from engine.config.settings import DecodeSettings
from engine.errors import EngineError
from engine.pipeline.observer import Happening, Observer, Observers
from engine.pipeline.outcome import Outcome
from engine.pipeline.reports import (
    DumpStarted,
    NetworkProgress,
    Report,
    ReportBody,
    SinkProgress,
    SinkReady,
    SnapshotProgress,
    Totals,
)
from tests.support.engine_run import wait_until
from tests.support.figures import PASSWORD, plan

RETRY = Happening(
    "warning", "retry", "the server\nwent away; trying again", {"pause_seconds": 0.4, "who": 'a "b"'}
)


def written(log_format: Literal["text", "json"], level: str, *happenings: Happening) -> list[str]:
    stream = io.StringIO()
    log = RunLog(stream, log_format, level, "6ecc8988")
    for happening in happenings:
        log.write(happening)
    return stream.getvalue().splitlines()


def test_text_is_one_line() -> None:
    (line,) = written("text", "info", RETRY)
    moment, rest = line.split(" ", 1)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", moment)
    assert rest == (
        "WARNING 6ecc8988 retry: the server went away; trying again "
        r'pause_seconds=0.4 who="a \"b\""'
    )


def test_json_is_one_object_a_line() -> None:
    (line,) = written("json", "info", RETRY)
    entry = json.loads(line)
    assert entry.pop("time").endswith("Z")
    assert entry == {
        "level": "warning",
        "run": "6ecc8988",
        "event": "retry",
        "message": "the server\nwent away; trying again",
        "pause_seconds": 0.4,
        "who": 'a "b"',
    }


@pytest.mark.parametrize(("level", "count"), [("debug", 4), ("info", 3), ("warning", 2), ("error", 1)])
def test_levels(level: str, count: int) -> None:
    happenings = [Happening(each, "x", each) for each in ("debug", "info", "warning", "error")]
    lines = written("json", level, *happenings)
    assert [json.loads(line)["level"] for line in lines] == [each.level for each in happenings[-count:]]


def narrated(display: Display, folder: Path) -> None:
    observers = Observers(display, Narrator(display))
    observers.run_started(plan(folder))
    observers.process_started("sink", 17)
    reports: list[tuple[str, ReportBody]] = [
        ("sink", SinkReady(-1, None)),
        ("network", DumpStarted(0.0)),
        ("network", NetworkProgress(0, "binlog.000003", 150)),
        ("sink", SinkProgress(Totals(rows=3, commits=1, bytes=9), 0, None, 0, waiting=0)),
        ("sink", SinkProgress(Totals(rows=3, commits=1, bytes=9), 0, None, 0, waiting=0)),
        ("snapshot", SnapshotProgress(tables=2, done=2, rows=7, finished=True)),
        ("snapshot", SnapshotProgress(tables=2, done=2, rows=7, finished=True)),
    ]
    for process, body in reports:
        observers.reported(Report(process, body))
    observers.run_ended(Outcome(stopped=True))


def test_a_run_in_the_log(tmp_path: Path) -> None:
    stream = io.StringIO()
    narrated(Display(stream, RunLog(stream, "json", "debug", "6ecc8988")), tmp_path)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [(line["level"], line["event"]) for line in lines] == [
        ("info", "run_started"),
        ("debug", "process_started"),
        ("debug", "sink_ready"),
        ("info", "dump_started"),
        ("debug", "committed"),
        ("info", "snapshot_ended"),
        ("info", "run_ended"),
    ]
    assert (lines[0]["source"], lines[0]["start"], lines[0]["attempt"]) == ("db1:3306", "binlog.000003:4", 1)
    assert (lines[4]["commit"], lines[4]["rows"], lines[5]["rows"]) == (0, 3, 7)
    assert PASSWORD not in stream.getvalue()


def test_without_a_log_only_warnings_are_shown(tmp_path: Path) -> None:
    stream = io.StringIO()
    display = Display(stream)
    narrated(display, tmp_path)
    display.warn("retry", "it went away", pause_seconds=1)
    assert stream.getvalue() == "binlog-engine: warning: it went away\n"


def test_requests_of_tables_that_are_not_there_are_warned_of_once(tmp_path: Path) -> None:
    stream = io.StringIO()
    narrator = Narrator(Display(stream))
    narrator.run_started(plan(tmp_path))
    for empty in ((), ("shop.product",), ("shop.product",), ("shop.product", "a.b, a.c")):
        narrator.reported(Report("snapshot", SnapshotProgress(empty_requests=empty, finished=True)))
    assert [line.partition(" was asked for")[0] for line in stream.getvalue().splitlines()] == [
        "binlog-engine: warning: a snapshot of shop.product",
        "binlog-engine: warning: a snapshot of a.b, a.c",
    ]


def test_progress_is_a_line_of_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.commands.run_progress._LOGGED_SECONDS", 0.0)
    stream = io.StringIO()
    display = Display(stream, RunLog(stream, "json", "info", ""))
    display.reported(Report("sink", SinkProgress(Totals(rows=3, commits=1), 0, None, 0, waiting=0)))
    entry = json.loads(stream.getvalue())
    assert (entry["event"], entry["message"], entry["rows"]) == ("progress", "3 rows, 1 commits", 3)


def decode_settings(folder: Path, **log: Any) -> DecodeSettings:
    return DecodeSettings(files=(), pipeline=PipelineSettings(out=folder), log=LogSettings(**log))


def test_an_error_is_the_last_line_of_the_log(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def refuse(observer: Observer) -> NoReturn:
        raise EngineError("it is gone")

    settings = decode_settings(tmp_path, log_format="json")

    def shown(work: Callable[[Observer], Outcome]) -> int:
        return logged(settings.log, lambda log: show_run(work, settings, log))

    assert shown(refuse) == 1
    failed = Outcome(error="torn", traceback="Traceback …", totals={"rows": 3})
    assert shown(lambda observer: failed) == 1
    assert shown(lambda observer: Outcome(stopped=True)) == 0
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert [(line["level"], line["event"]) for line in lines] == [
        ("error", "failed"),
        ("info", "ended"),
        ("error", "failed"),
        ("info", "ended"),
    ]
    assert [line["message"] for line in lines if line["event"] == "failed"] == ["it is gone", "torn"]
    assert (lines[1]["rows"], lines[2]["traceback"], lines[3]["stopped"]) == (3, "Traceback …", True)
    # Each command has an id of its own.
    assert len({line["run"] for line in lines}) == 3


def test_what_processes_write_to_standard_error_is_in_the_log(capfd: pytest.CaptureFixture[str]) -> None:
    said = "binlog-engine: compiling kernels: 3 of 80, 5 s"
    script = "import sys; print('before', file=sys.stderr); 1 / 0"

    def command(log: RunLog) -> NoReturn:
        subprocess.run(["printf", "%s\\n", said], stdout=2, check=True)
        # The next piece comes after a pause.
        (line,) = map(json.loads, wait_until(lambda: capfd.readouterr().err, "line").splitlines())
        assert (line["level"], line["event"], line["message"]) == ("info", "stderr", said)
        subprocess.run([sys.executable, "-c", script], check=False)
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", "/nowhere")

    assert logged(LogSettings(log_format="json"), command) == 1
    crash, failed = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert (crash["level"], crash["event"]) == ("warning", "stderr")
    assert crash["message"].startswith("before\nTraceback") and "ZeroDivisionError" in crash["message"]
    sentence = "/nowhere cannot be used: No such file or directory"
    assert (failed["level"], failed["event"], failed["message"]) == ("error", "failed", sentence)
    os.write(2, b"after\n")
    assert capfd.readouterr().err == "after\n"


def test_without_a_log_an_error_is_raised(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(EngineError, match=r"^torn$"):
        show_run(lambda observer: Outcome(error="torn"), decode_settings(tmp_path))
    assert capsys.readouterr().err == "0 rows and 0 transactions in 0 commits, 0.00 s\n"


def test_http_needs_a_valid_address(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(EngineError, match="--http wants HOST:PORT or PORT"):
        show_run(lambda observer: Outcome(), decode_settings(tmp_path), http="nowhere")
