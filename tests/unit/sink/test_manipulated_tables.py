"""When tables are read again that data manipulation statements change."""

from __future__ import annotations

from itertools import pairwise

from engine.schema.changes import TableName
from engine.sink.manipulated_tables import FIRST_WAIT, LONGEST_WAIT, ManipulatedTables

A, B = TableName("shop", "a"), TableName("shop", "b")


def test_the_first_change_is_due_at_once() -> None:
    tables = ManipulatedTables()
    tables.changed([A], 5.0)
    tables.changed([B], 5.0)
    assert tables.due(5.0) == (A, B)
    assert tables.due(1e9) == ()


def test_a_table_that_changes_all_the_time_is_due_less_and_less_often() -> None:
    tables, times = ManipulatedTables(), []
    for second in range(0, 1_000_000, 10):
        tables.changed([A], float(second))
        if tables.due(float(second)):
            times.append(second)
    waits = [later - earlier for earlier, later in pairwise(times)]
    assert waits[:4] == [FIRST_WAIT, 2 * FIRST_WAIT, 4 * FIRST_WAIT, 8 * FIRST_WAIT]
    assert waits[-1] == LONGEST_WAIT and waits == sorted(waits)


def test_the_last_change_is_not_forgotten() -> None:
    tables = ManipulatedTables()
    tables.changed([A], 0.0)
    assert tables.due(0.0) == (A,)
    tables.changed([A], 1.0)
    assert tables.due(FIRST_WAIT - 1) == ()
    assert tables.due(FIRST_WAIT) == (A,)
    assert tables.due(1e9) == ()


def test_after_a_long_time_without_changes_the_next_one_is_the_first() -> None:
    tables = ManipulatedTables()
    for time in (0.0, FIRST_WAIT, 3 * FIRST_WAIT):
        tables.changed([A], time)
        assert tables.due(time) == (A,)
    later = 3 * FIRST_WAIT + LONGEST_WAIT
    assert tables.due(later) == ()
    tables.changed([A], later)
    assert tables.due(later) == (A,)
    tables.changed([A], later)
    assert tables.due(later + FIRST_WAIT) == (A,)
