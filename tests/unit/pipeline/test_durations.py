"""Durations by class."""

from __future__ import annotations

from engine.pipeline.durations import BOUNDS, NO_DURATIONS


def test_each_bound_is_in_its_own_class() -> None:
    durations = NO_DURATIONS
    for bound in BOUNDS:
        durations = durations.with_one(bound)
    assert durations.counts == (1,) * len(BOUNDS) + (0,)
    assert durations.with_one(BOUNDS[-1] + 1).counts[-1] == 1
    assert durations.seconds == sum(BOUNDS)
    both = durations + durations
    assert (both.counts[:2], both.seconds) == ((2, 2), 2 * durations.seconds)
