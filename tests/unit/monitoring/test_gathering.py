"""Monitors gather in a few threads, and one that waits does not hold up the others."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from engine.monitoring import gathering as gathering_module
from engine.monitoring.gathering import Gatherer
from tests.support.engine_run import wait_until

PATIENCE_SECONDS = 30.0


class Source:
    def __init__(self, ask: Callable[[], None]) -> None:
        self.ask = ask
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


class Sampled:
    """Has what gathering calls of a monitor, and counts the calls."""

    def __init__(self, work: Callable[[], object] = lambda: None) -> None:
        self.samples = 0
        self._work = work
        self.source = Source(lambda: None)

    def sample(self) -> None:
        self.samples += 1
        self._work()


def threads() -> int:
    return sum(thread.name == "gather" for thread in threading.enumerate())


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering_module, "_REPEAT_SECONDS", 0.02)


def test_many_monitors_take_few_threads() -> None:
    monitors = [Sampled() for _ in range(50)]
    with ExitStack() as stack:
        gatherer = stack.enter_context(Gatherer())
        for monitor in monitors:
            stack.enter_context(gatherer.gathering(monitor))  # type: ignore[arg-type]
        wait_until(lambda: all(monitor.samples > 3 for monitor in monitors), "samples of all")
        # A machine that stands still for a moment may have one started.
        assert threads() < 10
    assert threads() == 0
    assert [monitor.source.closed for monitor in monitors] == [1] * 50


def test_those_that_wait_hold_up_no_others() -> None:
    goes_on = threading.Event()
    waiting = [Sampled(lambda: goes_on.wait(PATIENCE_SECONDS)) for _ in range(3)]
    other = Sampled()
    with Gatherer() as gatherer, ExitStack() as stack:
        for monitor in (*waiting, other):
            stack.enter_context(gatherer.gathering(monitor))  # type: ignore[arg-type]
        wait_until(lambda: other.samples > 3, "samples of the one that does not wait")
        # None is asked twice at a time.
        assert [monitor.samples for monitor in waiting] == [1, 1, 1]
        goes_on.set()
        wait_until(lambda: all(monitor.samples > 3 for monitor in waiting), "samples of all")


def test_a_bug_is_shown_once_and_the_others_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    def broken() -> None:
        raise ValueError("a bug")

    bad, good = Sampled(broken), Sampled()
    with Gatherer() as gatherer, gatherer.gathering(bad), gatherer.gathering(good):  # type: ignore[arg-type]
        wait_until(lambda: good.samples > 3, "samples of the good one")
    assert bad.samples == 1
    assert capsys.readouterr().err.count("ValueError: a bug") == 1


def test_one_that_has_ended_gathers_no_more() -> None:
    ended, going = Sampled(), Sampled()
    with Gatherer() as gatherer, gatherer.gathering(going):  # type: ignore[arg-type]
        with gatherer.gathering(ended):  # type: ignore[arg-type]
            wait_until(lambda: ended.samples > 1, "samples")
        wait_until(lambda: ended.source.closed, "end")
        before, after = ended.samples, going.samples
        wait_until(lambda: going.samples > after + 3, "samples of the other one")
        assert ended.samples <= before + 1
