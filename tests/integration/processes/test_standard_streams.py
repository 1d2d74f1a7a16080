"""Standard input, output and error that are closed, take nothing, or whose encoding lacks characters."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.binlog.samples import sample_binlogs
from engine.output.commit_log import CommitLog
from tests.support.engine_run import COMMAND

TEXT = "größe € \U0001f600"
PRINTS_TEXT = f"""
import json
from engine.pipeline.standard_streams import prepare_standard_streams
prepare_standard_streams()
print(json.dumps({TEXT!r}, ensure_ascii=False))
"""


def closed(redirection: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """What became of a command that a shell starts with this redirection."""
    shell = ["sh", "-c", f'exec "$0" "$@" {redirection}', COMMAND, *arguments]
    return subprocess.run(shell, capture_output=True, text=True, timeout=120)


def test_a_closed_input() -> None:
    ended = closed("<&-", "check", "--host=127.0.0.1", "--port=1", "--user=u")
    assert (ended.returncode, ended.stderr) == (1, "")
    assert "nothing listens on 127.0.0.1:1" in ended.stdout


@pytest.mark.parametrize("redirection", ["2>&-", "<&- >&- 2>&-"])
def test_closed_outputs(redirection: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ended = closed(redirection, "decode", str(sample_binlogs()[0]), "--out", str(out), "--workers=1")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    assert CommitLog(out).latest_version() >= 0


@pytest.mark.parametrize("log", [(), ("--log-format=json",)], ids=str)
def test_a_log_on_a_full_disk_ends_nothing(log: tuple[str, ...], tmp_path: Path) -> None:
    out = tmp_path / "out"
    ended = closed("2>/dev/full", "decode", str(sample_binlogs()[0]), "--out", str(out), "--workers=1", *log)
    assert (ended.returncode, ended.stdout) == (0, "")
    assert CommitLog(out).latest_version() >= 0


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_every_character_can_be_written(encoding: str) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    said = subprocess.run(
        [sys.executable, "-c", PRINTS_TEXT], env=environment, capture_output=True, check=True
    )
    assert json.loads(said.stdout.decode(encoding)) == TEXT
