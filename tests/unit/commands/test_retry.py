"""How long to wait before the next try: pauses grow, no two engines take the same, and there is an end."""

from __future__ import annotations

from itertools import pairwise

from engine.commands.retries import FIRST_PAUSE, LONGEST_PAUSE, Retries


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def pauses(retries: Retries, clock: Clock) -> list[float]:
    """All pauses until it is time to give up."""
    taken: list[float] = []
    while (pause := retries.next_pause()) is not None:
        taken.append(pause)
        clock.now += pause
    return taken


def test_pauses_grow_up_to_the_longest_until_the_limit() -> None:
    clock = Clock()
    taken = pauses(Retries(600.0, clock), clock)
    assert all(0 < pause <= LONGEST_PAUSE for pause in taken)
    for number, pause in enumerate(taken):
        whole = min(LONGEST_PAUSE, FIRST_PAUSE * 2**number)
        assert whole / 2 <= pause <= whole
    assert sum(taken[:-1]) < 600 <= sum(taken)
    assert taken[-1] >= LONGEST_PAUSE / 2


def test_engines_do_not_retry_at_the_same_times() -> None:
    clocks = [Clock() for _ in range(5)]
    assert len({pauses(Retries(60.0, clock), clock)[0] for clock in clocks}) == 5


def test_success_begins_anew() -> None:
    clock = Clock()
    retries = Retries(10.0, clock)
    before = pauses(retries, clock)
    assert retries.next_pause() is None
    retries.succeeded()
    pause = retries.next_pause()
    assert pause is not None and pause <= FIRST_PAUSE
    assert any(earlier < later for earlier, later in pairwise(before))


def test_a_limit_of_zero_means_no_second_try() -> None:
    assert Retries(0.0, Clock()).next_pause() is None
