"""When an engine counts as alive and as ready."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from engine.monitoring.figures import Figures, Intervals
from engine.monitoring.health import SILENCE_SECONDS, not_alive, not_ready
from tests.support.figures import FIGURES, silent

SLOW_COMMITS = replace(FIGURES, intervals=Intervals(heartbeat=5.0, commit=60.0))
QUICK = replace(FIGURES, intervals=Intervals(heartbeat=0.1, commit=0.0))


def test_an_engine_that_is_well() -> None:
    assert not_alive(FIGURES) == not_ready(FIGURES) == []


@pytest.mark.parametrize("name", ["sink", "decoder-0", "network"])
def test_a_silent_process_is_named(name: str) -> None:
    assert not_alive(silent(FIGURES, name, SILENCE_SECONDS - 1)) == []
    figures = silent(FIGURES, name, SILENCE_SECONDS + 1)
    (problem,) = not_alive(figures)
    assert problem.startswith(f"the {name} process (10") and problem.endswith("has not answered for 11 s")
    assert problem in not_ready(figures)


def test_a_process_that_has_not_reported_yet_is_starting() -> None:
    process = replace(FIGURES.processes[1], has_reported=False, silent_seconds=100.0)
    figures = replace(FIGURES, processes=(process,))
    assert not_alive(figures) == []
    assert not_ready(figures) == ["the run is starting (waiting for: sink)"]
    assert not_ready(replace(FIGURES, is_dumping=False)) == ["the run is starting (waiting for: the dump)"]


def test_without_a_server_it_is_alive_but_not_ready() -> None:
    figures = replace(FIGURES, is_running=False, processes=FIGURES.processes[:1])
    assert not_alive(figures) == []
    assert not_ready(figures) == [
        "there is no connection to a server at the moment",
        "the server went away; trying again in 0.5 s",
    ]


@pytest.mark.parametrize(
    ("figures", "limit"),
    [(FIGURES, 15.0), (SLOW_COMMITS, 180.0), (QUICK, 3.0)],
    ids=["usual", "slow", "quick"],
)
@pytest.mark.parametrize("value", ["stalled_seconds", "uncommitted_seconds"])
def test_progress_is_awaited_for_three_intervals(figures: Figures, limit: float, value: str) -> None:
    before: dict[str, Any] = {value: limit - 0.1}
    after: dict[str, Any] = {value: limit + 0.6}
    assert not_ready(replace(figures, **before)) == []
    (problem,) = not_ready(replace(figures, **after))
    assert f" {limit + 1:.0f} s" in problem or f" {limit + 0.6:.0f} s" in problem
