"""The limit of a rate: what is received too early is waited for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.snapshot.rate import Rate
from tests.support.clock import Clock


def test_without_a_limit_there_is_no_wait() -> None:
    assert Rate(clock=Clock()).spend(1 << 40, 1 << 50) == 0


def test_the_stricter_limit_counts() -> None:
    assert Rate(rows=10, bytes_=1000, clock=Clock()).spend(20, 500) == 2.0
    assert Rate(rows=10, bytes_=1000, clock=Clock()).spend(5, 3000) == 3.0


def test_readers_wait_one_after_the_other() -> None:
    rate = Rate(rows=10, clock=Clock())
    assert [rate.spend(10, 0) for _ in range(3)] == [1.0, 2.0, 3.0]


def test_time_in_which_nothing_was_read_is_not_saved_up() -> None:
    clock = Clock()
    rate = Rate(rows=10, clock=clock)
    clock.now += 1000
    assert rate.spend(10, 0) == 1.0


@given(st.lists(st.tuples(st.integers(0, 500), st.floats(0, 5)), min_size=1), st.integers(1, 1000))
def test_no_more_than_the_limit_is_received(received: list[tuple[int, float]], limit: int) -> None:
    """At the end of the last wait, all rows together have taken the time that the limit gives them."""
    clock = Clock()
    rate = Rate(rows=limit, clock=clock)
    for rows, pause in received:
        clock.now += pause
        clock.now += rate.spend(rows, 0)
    assert clock.now >= sum(rows for rows, _ in received) / limit - 1e-6
