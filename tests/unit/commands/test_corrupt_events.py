"""Which failures start another run, and what several runs add up to."""

from __future__ import annotations

import sys

import pytest

from engine.commands.corrupt_events import CorruptEventRereads, CorruptEventSkips
from engine.commands.run_progress import Display
from engine.pipeline.messages import Corruption
from engine.pipeline.outcome import Outcome
from engine.pipeline.reports import Usage
from tests.support.skipped_events import FILE, NEXT_FILE


def test_an_event_is_skipped_once(capsys: pytest.CaptureFixture[str]) -> None:
    """Skipping the same event again would never end; without --on-corrupt skip nothing is skipped."""
    met = Corruption(FILE, 120, "torn", "abc")
    skips = CorruptEventSkips(True, Display(sys.stderr))
    assert skips.take(Outcome(error=f"{FILE} at position 120: torn", corruption=met))
    assert f"{FILE} at position 120: torn; skipping it" in capsys.readouterr().err
    assert skips.take(Outcome(error="", corruption=Corruption(NEXT_FILE, 120, "torn", "abc")))
    assert not skips.take(Outcome(error="", corruption=met))
    assert not skips.take(Outcome(error="access denied"))
    assert not skips.take(Outcome(stopped=True, corruption=Corruption(FILE, 200, "torn", "")))
    assert [place.position for place in skips.events] == [120, 120]
    assert not CorruptEventSkips(False, Display(sys.stderr)).take(Outcome(error="", corruption=met))


def test_a_position_is_read_again_once() -> None:
    rereads = CorruptEventRereads()
    framing = Corruption(FILE, 200, "the packet is not part of a binlog stream", "", skippable=False)
    for met in (Corruption(FILE, 120, "torn", "abc"), framing, Corruption(NEXT_FILE, 120, "torn", "abc")):
        assert rereads.take(Outcome(error="", corruption=met))
        assert not rereads.take(Outcome(error="", corruption=met))
    assert not rereads.take(Outcome(error="access denied"))
    assert not CorruptEventSkips(True, Display(sys.stderr)).take(Outcome(error="", corruption=framing))


def test_what_several_runs_did_adds_up() -> None:
    first = Outcome(totals={"rows": 5, "commits": 1, "commit": 3}, seconds=1.5)
    second = Outcome(totals={"rows": 2, "skipped_corrupt_events": 1, "commit": 4}, seconds=0.5).add(first)
    assert second.totals == {"rows": 7, "commits": 1, "commit": 4, "skipped_corrupt_events": 1}
    assert second.seconds == 2.0
    assert Outcome(error="refused", retryable=True).add(second).totals == second.totals


def test_processes_of_several_runs_add_up() -> None:
    first = {"sink": Usage(70, 5, 1), "snapshot": Usage(60, 9, 2), "supervisor": Usage(40, 20, 3)}
    second = {"sink": Usage(50, 3, 2), "supervisor": Usage(45, 25, 4)}
    assert Outcome(processes=second).add(Outcome(processes=first)).processes == {
        "sink": Usage(70, 8, 3),
        "snapshot": Usage(60, 9, 2),
        "supervisor": Usage(45, 25, 4),
    }
