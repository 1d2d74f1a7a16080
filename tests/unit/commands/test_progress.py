"""What a person sees while a command works."""

from __future__ import annotations

import io

import pytest

from engine.commands.run_progress import Display
from engine.pipeline.reports import NetworkProgress, Report, SinkProgress, Totals


@pytest.mark.parametrize(
    ("file", "line"),
    [("binlog.000007", "3 rows, 1 commits, at binlog.000007:1270545"), ("", "3 rows, 1 commits")],
    ids=["known", "not yet named by the server"],
)
def test_a_line_has_the_position_if_it_is_known(
    file: str, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.commands.run_progress._PLAIN_SECONDS", 0.0)
    stream = io.StringIO()
    display = Display(stream)
    display.reported(Report("sink", SinkProgress(Totals(rows=3, commits=1), 0, None, 0, waiting=0)))
    display.reported(Report("network", NetworkProgress(0, file, 1270545)))
    assert stream.getvalue().splitlines()[-1] == line
