"""Which rows a snapshot has to read once more, because partial row images gave them another key."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.sink.moved_keys import MOST_MOVED, MovedKeys, keys_of
from tests.support.change_batches import Change, changes, insert

COLUMNS = pa.schema([("id", pa.int64()), ("v", pa.int64())])
PAIR = pa.schema([("a", pa.int64()), ("b", pa.string()), ("v", pa.int64())])


def moved(was: int, now: int) -> list[Change]:
    """An update with the images that MINIMAL has."""
    lacks = ["v"] if was != now else ["id", "v"]
    return [
        ("update_preimage", (was, None), ["v"]),
        ("update_postimage", (now if was != now else None, None), lacks),
    ]


def updated(was: int, now: int) -> list[Change]:
    """An update with full images."""
    return [("update_preimage", (was, 1), None), ("update_postimage", (now, 1), None)]


def kept(found: MovedKeys) -> list[int]:
    return [int(key[0]) for key in found.keys]


def test_a_row_that_moves_on_has_its_last_key() -> None:
    found = MovedKeys(["id"])
    found.add(changes(COLUMNS, *moved(1, 2), *moved(2, 3), *moved(7, 7)))
    assert kept(found) == []
    assert found.keep(reads_ranges=True)
    assert kept(found) == [3]


def test_transactions_that_are_rolled_back_do_not_count() -> None:
    found = MovedKeys(["id"])
    found.add(changes(COLUMNS, *moved(1, 2)))
    found.drop()
    assert not found.keep(reads_ranges=True)
    assert kept(found) == []


@pytest.mark.parametrize("change", [updated(5, 5), updated(5, 6), [insert(5, 0)], [("delete", (5, 0), None)]])
def test_a_row_with_a_full_image_is_not_kept(change: list[tuple[str, tuple[int, int], None]]) -> None:
    found = MovedKeys(["id"], [("5",), ("9",)])
    found.add(changes(COLUMNS, *change))
    found.keep(reads_ranges=True)
    assert kept(found) == [9]


def test_a_partial_change_that_leaves_the_key_keeps_it() -> None:
    found = MovedKeys(["id"], [("5",)])
    found.add(changes(COLUMNS, *moved(5, 5), insert(6, 0)))
    found.keep(reads_ranges=False)
    assert kept(found) == [5]


def test_after_all_ranges_only_kept_rows_are_followed() -> None:
    found = MovedKeys(["id"], [("5",)])
    found.add(changes(COLUMNS, *moved(1, 2), *moved(5, 6)))
    found.keep(reads_ranges=False)
    assert kept(found) == [6]


def test_rows_of_a_chunk_are_not_kept() -> None:
    found = MovedKeys(["id"], [("5",), ("6",), ("7",)])
    assert found.were_read(changes(COLUMNS, insert(6, 0), insert(8, 0)))
    assert not found.were_read(changes(COLUMNS, insert(8, 0)))
    found.forget([("7",), ("1",)])
    assert kept(found) == [5]


def test_a_part_of_the_key_that_did_not_change() -> None:
    found = MovedKeys(["a", "b"])
    found.add(
        changes(
            PAIR,
            ("update_preimage", (1, "x", None), ["v"]),
            ("update_postimage", (None, "y", None), ["a", "v"]),
        )
    )
    found.keep(reads_ranges=True)
    assert found.keys == (("1", "_utf8mb4 x'79'"),)


def test_what_cannot_be_read_is_a_problem() -> None:
    found = MovedKeys(["id"])
    assert found.problem is None
    found.add(changes(COLUMNS, *(change for n in range(MOST_MOVED + 1) for change in moved(n, -n - 1))))
    found.keep(reads_ranges=True)
    assert "more than 1000" in (found.problem or "")
    found = MovedKeys(["id"])
    found.add(changes(COLUMNS, ("update_postimage", (None, None), ["v"])))
    found.keep(reads_ranges=True)
    assert "not valid" in (found.problem or "")


KEYS = st.integers(0, 5)
STEPS = st.lists(
    st.tuples(st.sampled_from(("insert", "delete", "full", "partial")), KEYS, KEYS, st.booleans()),
    max_size=30,
)


@given(st.sets(KEYS), st.sets(KEYS), STEPS)
def test_every_row_that_the_output_lacks_is_kept(
    there: set[int], lacking: set[int], steps: list[tuple[str, int, int, bool]]
) -> None:
    """A model that knows which rows are not whole in the output; transactions end at random."""
    whole = {key: key not in lacking for key in there}
    found = MovedKeys(["id"], [(str(key),) for key in there & lacking])
    for batch in _batches(whole, steps):
        found.add(batch)
        found.keep(reads_ranges=False)
    assert {key for key, is_whole in whole.items() if not is_whole} <= set(kept(found))


def _batches(whole: dict[int, bool], steps: list[tuple[str, int, int, bool]]) -> Iterator[pa.RecordBatch]:
    rows: list[Change] = []
    for kind, key, other, ends in steps:
        if kind == "insert" and key not in whole:
            whole[key] = True
            rows.append(insert(key, 0))
        elif kind == "delete" and key in whole:
            del whole[key]
            rows.append(("delete", (key, None), ["v"]))
        elif kind in ("full", "partial") and key in whole and (key == other or other not in whole):
            whole[other] = whole.pop(key) or kind == "full"
            rows += moved(key, other) if kind == "partial" else updated(key, other)
        if ends and rows:
            yield changes(COLUMNS, *rows)
            rows = []
    if rows:
        yield changes(COLUMNS, *rows)


def test_literals_of_every_type() -> None:
    values = {
        "1": pa.array([1], pa.int16()),
        "18446744073709551615": pa.array([Decimal(2**64 - 1)], pa.decimal128(20, 0)),
        "-0.0000000001": pa.array([Decimal("-1E-10")], pa.decimal128(30, 10)),
        "_utf8mb4 x'c3a4'": pa.array(["ä"]),
        "x'00ff'": pa.array([b"\x00\xff"]),
        "0.10000000149011612e0": pa.array([0.1], pa.float32()),
        "1e+300": pa.array([1e300]),
        "'2024-02-29'": pa.array([date(2024, 2, 29)]),
        "'0900-01-01 00:00:01.000002'": pa.array([datetime(900, 1, 1, 0, 0, 1, 2)], pa.timestamp("us")),
        "'2024-01-01 00:00:00'": pa.array([datetime(2024, 1, 1)], pa.timestamp("us", "UTC")),
        "'-838:59:59.000001'": pa.array([-timedelta(hours=838, minutes=59, seconds=59, microseconds=1)]),
        "NULL": pa.array([None], pa.date32()),
    }
    found = [keys_of(pa.record_batch([column], ["k"]), ["k"]) for column in values.values()]
    assert found == [[(literal,)] for literal in values]
