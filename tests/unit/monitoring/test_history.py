"""The last hour: bounded, with the rates that follow from it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from engine.monitoring.history import HISTORY_SECONDS, SAMPLE_SECONDS, History, Sample
from tests.support.figures import FIGURES, NOW


def history_of(values: list[float | None], name: str = "disk_free_bytes") -> History:
    history = History()
    for number, value in enumerate(values):
        sample = replace(Sample.of(FIGURES), time=NOW + number * SAMPLE_SECONDS)
        fields: dict[str, Any] = {name: value}
        history.add(replace(sample, **fields))
    return history


def test_a_sample_has_what_the_figures_say() -> None:
    columns = history_of([5]).columns()
    assert columns["time"] == [NOW] and columns["disk_free_bytes"] == [5]
    assert (columns["rows"], columns["commits"], columns["behind_bytes"]) == ([13], [2], [50])
    assert columns["resident_bytes"] == [4 << 20]


def test_it_holds_an_hour() -> None:
    columns = history_of(list(range(1000))).columns()
    assert len(columns["time"]) == HISTORY_SECONDS / SAMPLE_SECONDS + 1
    first, last = columns["time"][0], columns["time"][-1]
    assert first is not None and last is not None and last - first == HISTORY_SECONDS
    assert columns["disk_free_bytes"][-1] == 999


@pytest.mark.parametrize(
    ("values", "rate"),
    [
        ([], None),
        ([100], None),
        ([100, 90, 80], None),
        ([100, 90, 80, 70], -1.0),
        ([None, 100, 110, None, 130], 1.0),
        ([None] * 10, None),
        # Only the last ten minutes count.
        ([0.0] * 100 + [float(10 * n) for n in range(1, 62)], 1.0),
    ],
)
def test_the_present_rate(values: list[float | None], rate: float | None) -> None:
    assert history_of(values).rate("disk_free_bytes") == rate


@pytest.mark.parametrize("step", [60, 3600, 86400])
def test_the_clock_is_set_back(step: int) -> None:
    """The rate is the same again soon, and the times go up."""
    history = history_of([100_000 - n for n in range(200)])
    for n in range(200, 260):
        sample = replace(Sample.of(FIGURES), time=NOW + n * SAMPLE_SECONDS - step)
        history.add(replace(sample, disk_free_bytes=100_000 - n))
    times = [time for time in history.columns()["time"] if time is not None]
    assert times == sorted(times)
    assert history.rate("disk_free_bytes") == pytest.approx(-1 / SAMPLE_SECONDS, rel=0.2)
