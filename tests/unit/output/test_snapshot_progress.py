"""The state of snapshots: ranges that are cut and read in any order, changes that are added up."""

from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.output.snapshot_progress import (
    EVERYTHING,
    NO_CHANGE,
    NO_SNAPSHOTS,
    KeyRange,
    SnapshotChange,
    SnapshotRequest,
    SnapshotState,
    TableSnapshot,
)

RUNNING = TableSnapshot("shop", "orders", "first", "running", key=("id",))
NUMBERS = range(100)


def covered(ranges: tuple[KeyRange, ...]) -> list[int]:
    """The numbers that are in ranges of integer keys, in their order."""
    return [
        number
        for each in ranges
        for number in NUMBERS
        if (each.after is None or number > int(each.after[0]))
        and (each.until is None or number <= int(each.until[0]))
    ]


@given(st.data())
def test_what_is_left_is_what_was_not_read(data: st.DataObject) -> None:
    """Chunks are cut from the first range that is not cut yet, or from a chunk; and read in any order."""
    table, read = RUNNING, set()
    for _ in range(data.draw(st.integers(0, 20))):
        if not table.left:
            break
        each = data.draw(st.sampled_from(table.left))
        inside = covered((each,))
        if data.draw(st.booleans()) and len(inside) > 1:
            part = KeyRange(each.after, (str(data.draw(st.sampled_from(inside[:-1]))),))
            table = table.divided(part)
            assert part in table.left
        else:
            read |= set(inside)
            table = table.without(each)
        assert covered(table.left) == [number for number in NUMBERS if number not in read]
        assert table.state == ("running" if table.left else "done")


def test_a_chunk_that_is_the_whole_range_divides_nothing() -> None:
    assert RUNNING.divided(EVERYTHING) == RUNNING


@pytest.mark.parametrize("state", ["failed", "cancelled"])
def test_rows_that_come_after_the_end_do_not_begin_it_anew(state: Literal["failed", "cancelled"]) -> None:
    after = TableSnapshot("shop", "orders", "first", state).without(EVERYTHING)
    assert (after.state, after.left) == (state, ())


def request(number: int) -> SnapshotRequest:
    return SnapshotRequest(str(number), number, ("shop.*",))


def table(name: str, rows: int, number: int = 0) -> TableSnapshot:
    return TableSnapshot("shop", name, str(number), "running", rows=rows)


def test_the_latest_snapshot_of_a_table_counts() -> None:
    state = NO_SNAPSHOTS.after(SnapshotChange((request(1), request(2)), (table("a", 1, 1), table("b", 2, 1))))
    state = state.after(SnapshotChange(tables=(table("a", 0, 2),)))
    assert state == SnapshotState((request(1), request(2)), (table("a", 0, 2), table("b", 2, 1)))
    assert state.of_request(request(1)) == (table("b", 2, 1),)
    assert state.after(SnapshotChange(ended=("1",))).requests == (request(2),)
    assert state.after(NO_CHANGE) is state
