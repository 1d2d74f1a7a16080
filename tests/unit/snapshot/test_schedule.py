"""Who reads what: chunks are cut by one reader at a time, refused ones come first, and a table ends once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.output.snapshot_progress import EVERYTHING, KeyRange, TableSnapshot
from engine.schema.changes import TableName
from engine.snapshot.schedule import Schedule
from engine.snapshot.table_source import TableSource
from engine.snapshot.table_work import CHUNK_BYTES, Table, Work
from tests.support.clock import Clock

CLOCK = Clock()


def source(*key: str, rows: int = 0) -> TableSource:
    """A table of the server, as far as a schedule looks at it, with an estimate of its rows."""
    return cast(
        TableSource,
        SimpleNamespace(key=None, key_columns=key, row_bytes=100, expected_rows=rows, has_views=True),
    )


def schedule_of(*tables: str, readers: int = 2) -> tuple[Schedule, list[tuple[str, KeyRange]]]:
    """A schedule, and the chunks that it says were cut."""
    cut: list[tuple[str, KeyRange]] = []
    schedule = Schedule(readers, lambda table, chunk: cut.append((table.table, chunk)), CLOCK)
    schedule.add((TableSnapshot("shop", table, "first", "waiting"), None) for table in tables)
    return schedule, cut


def take(schedule: Schedule) -> Work:
    work = schedule.take()
    assert work is not None
    return work


def prepare(schedule: Schedule, *key: str) -> Table:
    table = take(schedule).table
    schedule.prepared(table, source(*key))
    return table


def cut(schedule: Schedule, chunk: KeyRange) -> Work:
    """Take work that is not cut yet, and cut it."""
    work = take(schedule)
    assert work.range is None
    return schedule.cut(work, chunk)


def work_of(table: Table, chunk: KeyRange | None = None, *, is_locked: bool = False) -> Work:
    whole = table.undivided[0] if chunk is None and table.undivided else None
    return Work(table, chunk, table.source, table.generation, is_locked, whole)


def span(after: int | None, until: int | None) -> KeyRange:
    low, high = (None if each is None else (str(each),) for each in (after, until))
    return KeyRange(low, high)


def test_chunks_are_cut_one_after_the_other_and_read_side_by_side() -> None:
    schedule, cuts = schedule_of("a")
    prepare(schedule, "id")
    works = [cut(schedule, span(None, 10)), cut(schedule, span(10, None))]
    assert cuts == [("a", span(None, 10))]
    assert [schedule.finished(work) for work in works] == [False, True]
    assert schedule.tables() == []


def test_a_refused_chunk_comes_before_new_ones_and_a_locked_one_before_it() -> None:
    schedule, _ = schedule_of("a")
    table = prepare(schedule, "id")
    first, second = (cut(schedule, chunk) for chunk in (span(None, 1), span(1, 2)))
    schedule.give_back(first)
    schedule.give_back(second, locked=True)
    assert [take(schedule) for _ in range(3)] == [
        work_of(table, span(1, 2), is_locked=True),
        work_of(table, span(None, 1)),
        work_of(table),
    ]


def test_tables_are_prepared_together() -> None:
    schedule, _ = schedule_of("a", "b", "c")
    work = take(schedule)
    others = schedule.more_like(work, 1000)
    assert [each.table.snapshot.table for each in (work, *others)] == ["a", "b", "c"]
    for each in (work, *others):
        schedule.prepared(each.table, source("id", rows=10))
    assert take(schedule).table is work.table


def test_small_tables_are_read_together_up_to_a_size() -> None:
    sizes = {"a": 10, "b": 1000, "none": 0, "c": 20, "keyless": 10, "d": 50_000, "e": 30}
    schedule, cuts = schedule_of(*sizes, readers=1)
    work = take(schedule)
    for each in (work, *schedule.more_like(work, 1)):
        name = each.table.snapshot.table
        key = () if name == "keyless" else ("id",)
        schedule.prepared(each.table, source(*key, rows=sizes[name]))
    work = take(schedule)
    # With chunks of 2,000 rows `b` is not small, even less so if the estimate is too low.
    small = [work, *schedule.more_like(work, 2000)]
    assert [each.table.snapshot.table for each in small] == ["a", "none", "c", "e"]
    for each in small:
        schedule.cut(each, EVERYTHING)
    assert cuts == []
    # Together they count less than one chunk, so there is work left for other readers.
    assert take(schedule).table.snapshot.table == "b"
    assert schedule.more_like(work_of(small[0].table, EVERYTHING), 2000) == []
    # With chunks that are large enough, tables of 5 MB are small as well, but too much to be added.
    schedule, _ = schedule_of("d", "d", readers=1)
    for table in schedule.tables():
        table.source = source("id", rows=50_000)
    assert schedule.more_like(take(schedule), 1 << 30) == []


def test_tables_with_other_conditions_are_not_read_together() -> None:
    schedule, _ = schedule_of("a", "b")
    for request, table in (("second", "c"), ("second", "d"), ("third", "e")):
        schedule.add([(TableSnapshot("shop", table, request, "waiting"), f"of {request}")])
    found: list[list[str]] = []
    while len(found) < 3:
        work = take(schedule)
        found.append([each.table.snapshot.table for each in (work, *schedule.more_like(work, 1))])
    assert found == [["a", "b"], ["c", "d"], ["e"]]


@pytest.mark.parametrize(("is_likely", "most"), [(True, 20), (False, 2)])
def test_errors_are_not_taken_for_alterations_for_long(is_likely: bool, most: int) -> None:
    table = Table(TableSnapshot("shop", "a", "first", "running"), None)
    found = [table.found_altered(is_likely=is_likely) for _ in range(most + 1)]
    assert found == [True] * most + [False]


def test_a_small_table_that_was_larger_counts_as_what_it_is() -> None:
    schedule, _ = schedule_of("a", "b", readers=1)
    for table in schedule.tables():
        table.source = source("id", rows=10)
        cut(schedule, EVERYTHING)
    first, second = schedule.tables()
    assert first.share == second.share < 0.1
    first.took(EVERYTHING, 1_000_000, 3 * CHUNK_BYTES)
    assert first.share == 3


def test_a_busy_table_waits_while_others_are_read() -> None:
    schedule, _ = schedule_of("a", "b")
    first = prepare(schedule, "id")
    work = cut(schedule, EVERYTHING)
    second = prepare(schedule, "id")
    schedule.give_back(work, pause=0.5)
    assert take(schedule).table is second
    CLOCK.now += 0.6
    assert take(schedule) == work_of(first, EVERYTHING)


def test_tables_that_are_busy_for_long() -> None:
    schedule, _ = schedule_of("a", "b")
    busy = prepare(schedule, "id")
    schedule.give_back(cut(schedule, EVERYTHING), pause=0.5)
    prepare(schedule, "id")
    schedule.give_back(cut(schedule, EVERYTHING))
    CLOCK.now += 9
    works = [take(schedule), take(schedule)]
    assert {work.table.snapshot.table for work in works} == {"a", "b"}
    for work in works:
        schedule.give_back(work, pause=0.5 if work.table is busy else 0.0)
    assert schedule.busy_tables(10) == ()
    CLOCK.now += 2
    assert schedule.busy_tables(10) == (busy.snapshot.name,)
    (work,) = (work for work in (take(schedule), take(schedule)) if work.table is busy)
    schedule.finished(work)
    assert schedule.busy_tables(10) == ()


def test_locked_tables_come_after_others() -> None:
    schedule, _ = schedule_of("a", "b", "c")
    for _ in range(2):
        schedule.give_back(take(schedule), pause=0.5)
        # For so long the server waits for a lock.
        CLOCK.now += 1
    assert [take(schedule).table.snapshot.table for _ in range(3)] == ["c", "a", "b"]


def test_a_definition_that_changed_is_read_before_its_chunks() -> None:
    schedule, _ = schedule_of("a")
    table = prepare(schedule, "id")
    schedule.redefine(cut(schedule, EVERYTHING))
    assert table.source is None
    assert prepare(schedule, "id") is table
    assert take(schedule) == work_of(table, EVERYTHING)


def test_two_readers_find_that_a_definition_changed() -> None:
    schedule, _ = schedule_of("a")
    table = prepare(schedule, "id")
    early, late = (cut(schedule, chunk) for chunk in (span(None, 1), span(1, None)))
    schedule.redefine(early)
    assert late.source is not None
    prepare(schedule, "id")
    schedule.redefine(late)
    assert table.source is not None, "the new definition is forgotten"
    assert [take(schedule).range for _ in range(2)] == [span(None, 1), span(1, None)]


def test_chunks_from_before_a_table_was_begun_anew_are_not_read_again() -> None:
    schedule, cuts = schedule_of("a", readers=4)
    table = prepare(schedule, "id")
    works = [cut(schedule, span(number or None, number + 1)) for number in range(6)]
    cuts.clear()
    schedule.redefine(works[0])
    anew = TableSnapshot("shop", "a", "first", "running", key=("other",))
    schedule.prepared(take(schedule).table, source("other"), anew)
    schedule.give_back(works[1])
    schedule.redefine(works[2])
    schedule.uncut(works[3])
    schedule.divide(works[4], span(4, 5), span(5, 6))
    schedule.forget(works[4])
    assert not schedule.finished(works[5])
    assert (table.snapshot, table.under_way, cuts) == (anew, 0, [])
    assert schedule.finished(cut(schedule, EVERYTHING))


def test_a_table_that_is_begun_anew_again_and_again_waits_longer_and_longer() -> None:
    schedule, _ = schedule_of("a")
    begun = TableSnapshot("shop", "a", "first", "running", key=("id",))
    pauses = []
    for _ in range(13):
        table = take(schedule).table
        schedule.prepared(table, source("id"), begun)
        schedule.redefine(cut(schedule, EVERYTHING))
        pauses.append(max(0.0, table.not_before - CLOCK()))
        CLOCK.now += pauses[-1]
    assert pauses == pytest.approx([0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300])


def test_few_chunks_are_under_way() -> None:
    schedule, _ = schedule_of("a", readers=1)
    table = prepare(schedule, "id")
    works = [cut(schedule, span(number or None, number + 1)) for number in range(2)]
    # All that two chunks leave to do is to wait; after the end there is nothing either.
    schedule.finished(works[0])
    assert take(schedule) == work_of(table)


def test_a_chunk_that_is_too_large_is_divided() -> None:
    schedule, cuts = schedule_of("a")
    table = prepare(schedule, "id")
    schedule.uncut(cut(schedule, span(None, 1000)))
    cut(schedule, span(None, 10))
    assert cuts == [("a", span(None, 1000)), ("a", span(None, 10))]
    assert list(table.undivided) == [span(10, 1000), span(1000, None)]


def test_a_chunk_is_too_large_while_the_next_one_is_cut() -> None:
    """The end of a chunk is looked up on the server meanwhile."""
    schedule, cuts = schedule_of("a")
    table = prepare(schedule, "id")
    large = cut(schedule, span(None, 1000))
    next_one = take(schedule)
    schedule.uncut(large)
    assert schedule.cut(next_one, span(1000, 2000)).range == span(1000, 2000)
    assert cuts == [("a", span(None, 1000)), ("a", span(1000, 2000))]
    assert list(table.undivided) == [span(None, 1000), span(2000, None)]


def test_moved_rows_are_read_after_all_ranges() -> None:
    schedule, _ = schedule_of("a")
    prepare(schedule, "id")
    moved = (("7",), ("8",))
    for work in [cut(schedule, chunk) for chunk in (span(None, 10), span(10, None))]:
        assert not schedule.finished(work, moved)
    work = take(schedule)
    assert work.range == KeyRange(only=moved)
    schedule.uncut(work)
    works = [take(schedule) for _ in moved]
    assert [work.range for work in works] == [KeyRange(only=moved[:1]), KeyRange(only=moved[1:])]
    assert [schedule.finished(work) for work in works] == [False, True]


def test_moved_rows_of_an_earlier_run() -> None:
    schedule = Schedule(1, lambda name, chunk: None, CLOCK)
    left = TableSnapshot("shop", "a", "first", "running", left=(), key=("id",), moved=(("7",),))
    schedule.add([(left, None)])
    prepare(schedule, "id")
    assert take(schedule).range == KeyRange(only=(("7",),))


def test_the_rest_of_a_locked_chunk_is_locked_later() -> None:
    schedule, cuts = schedule_of("a")
    table = prepare(schedule, "id")
    first = schedule.divide(cut(schedule, EVERYTHING), span(None, 5), span(5, None))
    assert first.range == span(None, 5)
    assert cuts == [("a", span(None, 5))]
    assert take(schedule) == work_of(table, span(5, None), is_locked=True)


def test_a_table_without_a_key_is_read_by_one() -> None:
    schedule, _ = schedule_of("a", "b")
    first = prepare(schedule)
    assert cut(schedule, EVERYTHING).table is first
    assert take(schedule).table.snapshot.table == "b"


def test_a_dropped_table_and_a_stop_end_the_work() -> None:
    schedule, _ = schedule_of("a", "b")
    first = prepare(schedule, "id")
    work = cut(schedule, EVERYTHING)
    schedule.drop(first)
    assert [each.snapshot.table for each in schedule.tables()] == ["b"]
    assert not schedule.finished(work)
    schedule.stop()
    assert schedule.take() is None


def test_chunks_of_long_rows_have_fewer() -> None:
    table = Table(TableSnapshot("shop", "a", "first", "waiting"), None)
    assert table.chunk_rows(500) == 500
    table.source = source("id")
    assert table.chunk_rows(1 << 30) == CHUNK_BYTES // 100
    table.row_bytes = 40 << 20
    assert table.chunk_rows(500) == 1


@given(st.data())
def test_any_order_of_outcomes_reads_every_key_once(data: st.DataObject) -> None:
    """Readers cut, finish, give back and divide in any order; at the end each number was read once."""
    schedule, cuts = schedule_of("a", readers=3)
    table = prepare(schedule, "id")
    left = TableSnapshot("shop", "a", "first", "running", key=("id",))
    under_way: list[Work] = []
    read: list[int] = []

    def numbers(chunk: KeyRange) -> list[int]:
        low = -1 if chunk.after is None else int(chunk.after[0])
        return list(range(low + 1, 30 if chunk.until is None else int(chunk.until[0]) + 1))

    for _ in range(400):
        may_take = len(under_way) < 6 and bool(table.undivided or table.again or table.locked)
        if may_take and (not under_way or data.draw(st.booleans())):
            work = take(schedule)
            if work.range is None:
                whole = table.undivided[0]
                inside = numbers(whole)
                size = data.draw(st.integers(1, 8))
                cut = whole if len(inside) < size else KeyRange(whole.after, (str(inside[size - 1]),))
                work = schedule.cut(work, cut)
            under_way.append(work)
            continue
        if not under_way:
            break
        work = under_way.pop(data.draw(st.integers(0, len(under_way) - 1)))
        chunk = work.range
        assert chunk is not None
        outcome = data.draw(st.sampled_from(("finished", "finished", "again", "locked", "uncut")))
        if outcome == "finished":
            read += numbers(chunk)
            schedule.finished(work)
        elif outcome == "uncut":
            schedule.uncut(work)
        else:
            schedule.give_back(work, locked=outcome == "locked" or work.is_locked)
        for name, part in cuts:
            assert TableName("shop", name) == left.name
            left = left.divided(part)
        cuts.clear()
        if outcome == "finished":
            assert chunk in left.left or chunk.until == left.left[-1].until
            left = left.without(chunk)
    if not (under_way or table.undivided or table.again or table.locked):
        assert sorted(read) == list(range(30))
        assert left.left == ()
        assert schedule.tables() == []


@pytest.mark.parametrize(
    ("expected_rows", "row_bytes", "is_small"),
    [(1, 0, True), (250, 0, True), (251, 0, False), (250, 100, False), (0, 0, True)],
)
def test_only_a_small_table_of_which_nothing_was_read_is_not_cut(
    expected_rows: int, row_bytes: int, is_small: bool
) -> None:
    source: Any = SimpleNamespace(expected_rows=expected_rows, row_bytes=100)
    table = Table(TableSnapshot("shop", "t", "a", "running"), None, source=source, row_bytes=row_bytes)
    assert table.is_small(1000) is is_small
