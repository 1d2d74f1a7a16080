"""How long readers rest while the stream or a replica lags."""

from __future__ import annotations

import pytest

from engine.snapshot.back_off import BackOff, LagLimits
from engine.snapshot.rate import Rate
from tests.support.clock import Clock

LIMITS = LagLimits(stream=0.5, replica=2.0)
IN_TIME, LATE = 0.4, 0.6


class Case:
    """A back-off with a clock that the test sets."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.back_off = BackOff(LIMITS, self.clock)

    def say(self, lag: float, times: int = 1, every: float = 1.0) -> float:
        """Say a lag of the stream several times; returns the multiple of a batch's time that is rested."""
        for _ in range(times):
            self.back_off.stream_lag(lag)
            self.clock.now += every
        return self.back_off.rest(1.0)


@pytest.mark.parametrize(
    ("wanted", "interval", "stream", "replica"),
    [(None, 1.0, 1.5, 1.5), (None, 0.05, 0.15, 1.0), (None, 0.0, 0.1, 1.0), (5.0, 1.0, 5.0, 5.0)],
)
def test_limits_follow_the_commit_interval(
    wanted: float | None, interval: float, stream: float, replica: float
) -> None:
    limits = LagLimits.of(wanted, interval)
    assert (limits.stream, limits.replica) == pytest.approx((stream, replica))


def test_readers_rest_longer_the_more_often_the_stream_is_late() -> None:
    case = Case()
    assert case.say(IN_TIME) == 0
    first = case.say(LATE)
    assert first > 0
    assert case.say(LATE) == 2 * first
    assert 2 * first > case.say(IN_TIME) > first


def test_the_effect_of_longer_rests_is_waited_for() -> None:
    case = Case()
    first = case.say(LATE, every=0.1)
    assert case.say(LATE, times=3, every=0.1) == first
    assert case.say(LATE) == first
    assert case.say(LATE) == 2 * first


def test_reading_goes_on_and_recovers() -> None:
    case = Case()
    most = case.say(LATE, times=100)
    assert case.say(LATE) == most < 20
    assert case.say(IN_TIME, times=200) == 0


def test_a_replica_that_lags_or_does_not_replicate_stops_the_readers() -> None:
    back_off = Case().back_off
    for seconds, reason in ((2.0, None), (3.0, "db2:3306 lags 3 s"), (None, "db2:3306 does not replicate")):
        back_off.replica_lag("db2:3306", seconds)
        assert back_off.reason == reason
    back_off.replica_lag("db3:3306", 0.0)
    assert back_off.reason == "db2:3306 does not replicate"
    back_off.replica_lag("db2:3306", 0.0)
    assert back_off.reason is None


def test_the_longer_of_limit_and_rest_is_waited_for() -> None:
    case = Case()
    multiple = case.say(LATE)
    rate = Rate(rows=10, back_off=case.back_off, clock=case.clock)
    assert rate.spend(1, 0, took=10.0) == 10 * multiple
    assert rate.spend(100, 0, took=0.1) == pytest.approx(10.1)
