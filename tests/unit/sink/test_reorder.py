"""Results are returned in the order of their numbers, in whatever order they arrive."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import EngineError
from engine.sink.reorder import Reorder


@given(st.permutations(range(30)))
def test_order_is_restored_and_nothing_waits_needlessly(arrivals: list[int]) -> None:
    reorder: Reorder[str] = Reorder()
    out: list[str] = []
    for count, sequence in enumerate(arrivals, start=1):
        out.extend(reorder.push(sequence, f"batch {sequence}"))
        arrived = set(arrivals[:count])
        ready = next(n for n in range(31) if n not in arrived)
        assert len(out) == ready
        assert len(reorder) == count - ready
    assert out == [f"batch {n}" for n in range(30)]


@given(st.permutations(range(8)), st.integers(0, 7))
def test_a_number_that_came_before_is_refused(arrivals: list[int], again: int) -> None:
    reorder: Reorder[int] = Reorder()
    for sequence in arrivals:
        list(reorder.push(sequence, sequence))
        if sequence == again:
            with pytest.raises(EngineError, match=f"batch {again} "):
                reorder.push(again, again)
