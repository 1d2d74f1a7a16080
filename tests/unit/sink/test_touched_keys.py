"""Keys that the stream changes while chunks are read: of every image and type, of finished transactions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from engine.sink.touched_keys import TouchedKeys, untouched
from tests.support.change_batches import Change, changes, insert

INTEGERS = pa.schema([("id", pa.int64()), ("v", pa.int64())])


def chunk(columns: pa.Schema, *rows: Sequence[Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(
        [dict(zip(columns.names, row, strict=True)) for row in rows], schema=columns
    )


def kept(touched: TouchedKeys, columns: Sequence[str], rows: pa.RecordBatch, mark: int = 0) -> list[bool]:
    found = touched.since(mark)
    assert found is not None
    return untouched(rows, found, columns).to_pylist()


def test_every_image_touches_its_key() -> None:
    touched = TouchedKeys(["id"])
    rows: list[Change] = [
        insert(1, 0),
        ("delete", (2, 0), None),
        ("update_preimage", (3, 0), None),
        ("update_postimage", (4, 0), None),
    ]
    touched.add(changes(INTEGERS, *rows))
    touched.keep()
    assert kept(touched, ["id"], chunk(INTEGERS, *((n, 0) for n in range(6)))) == [True, *[False] * 4, True]


def test_only_finished_transactions_count() -> None:
    touched = TouchedKeys(["id"])
    touched.add(changes(INTEGERS, insert(1, 0)))
    assert touched.since(0) is None
    touched.drop()
    touched.add(changes(INTEGERS, insert(2, 0)))
    touched.keep()
    assert kept(touched, ["id"], chunk(INTEGERS, (1, 0), (2, 0))) == [True, False]


def test_a_mark_leaves_out_what_was_before() -> None:
    touched = TouchedKeys(["id"])
    marks = []
    for number in range(4):
        marks.append(touched.count)
        touched.add(changes(INTEGERS, insert(number, 0)))
        touched.keep()
    rows = chunk(INTEGERS, *((n, 0) for n in range(4)))
    assert kept(touched, ["id"], rows, marks[2]) == [True, True, False, False]
    touched.forget(marks[1])
    touched.forget(marks[0])
    assert kept(touched, ["id"], rows, marks[2]) == [True, True, False, False]
    assert kept(touched, ["id"], rows, marks[1]) == [True, False, False, False]
    assert touched.count == 4
    assert touched.since(touched.count) is None


def test_composite_keys_are_compared_as_a_whole() -> None:
    columns = pa.schema([("a", pa.int32()), ("b", pa.string()), ("v", pa.int64())])
    touched = TouchedKeys(["a", "b"])
    touched.add(changes(columns, insert(1, "x", 0), insert(2, "y", 0)))
    touched.keep()
    rows = chunk(columns, (1, "x", 0), (1, "y", 0), (2, "x", 0), (2, "y", 0), (1, "X", 0))
    assert kept(touched, ["a", "b"], rows) == [False, True, True, False, True]


@pytest.mark.parametrize(
    ("kind", "changed", "other"),
    [
        (pa.string(), "a", "A"),
        (pa.string(), "a", "a "),
        (pa.large_string(), "ä", "a"),
        (pa.binary(), b"a\0", b"a"),
        (pa.uint64(), (1 << 64) - 1, (1 << 64) - 2),
        (pa.float64(), 0.1, 0.2),
        (pa.float32(), 0.5, 0.25),
        (pa.decimal128(30, 10), Decimal("1.5"), Decimal("1.4999999999")),
        (pa.decimal256(60, 2), Decimal("-1.5"), Decimal("1.5")),
        (pa.date32(), date(2024, 1, 1), date(2024, 1, 2)),
        (pa.timestamp("us"), datetime(2024, 1, 1), datetime(2024, 1, 1, 0, 0, 0, 1)),
        (pa.timestamp("us", "UTC"), datetime(2024, 1, 1), datetime(2024, 1, 1, 0, 0, 0, 1)),
        (pa.time64("us"), time(1), time(1, 0, 0, 1)),
        (pa.duration("us"), 5, 6),
        (pa.int16(), 1999, 2000),
    ],
)
@pytest.mark.parametrize("composite", [False, True])
def test_keys_of_every_type(kind: pa.DataType, changed: Any, other: Any, composite: bool) -> None:
    columns = pa.schema([("k", kind), ("id", pa.int64())])
    key = ["k", "id"] if composite else ["k"]
    touched = TouchedKeys(key)
    touched.add(changes(columns, insert(changed, 1)))
    touched.keep()
    assert kept(touched, key, chunk(columns, (changed, 1), (other, 1))) == [False, True]


def test_partial_images_are_reported() -> None:
    touched = TouchedKeys(["id"])
    touched.add(changes(INTEGERS, ("delete", (1, None), ["v"])))
    touched.keep()
    found = touched.since(0)
    assert found is not None and (found.partial, found.unclear) == (False, False)
    touched.add(
        changes(INTEGERS, ("update_preimage", (2, None), ["v"]), ("update_postimage", (None, 5), ["id"]))
    )
    touched.keep()
    found = touched.since(0)
    assert found is not None and (found.partial, found.unclear) == (True, False)
    # The key that the image after the update lacks is that of the image before it.
    assert kept(touched, ["id"], chunk(INTEGERS, (1, 0), (2, 0), (3, 0))) == [False, False, True]


def test_a_key_that_is_null_is_not_known() -> None:
    touched = TouchedKeys(["id"])
    touched.add(changes(INTEGERS, insert(None, 5)))
    touched.keep()
    found = touched.since(0)
    assert found is not None and found.unclear


def test_rows_without_the_key_column_are_not_known() -> None:
    touched = TouchedKeys(["other"])
    touched.add(changes(INTEGERS, insert(1, 5)))
    touched.keep()
    found = touched.since(0)
    assert found is not None and found.unclear


def test_a_column_that_changed_its_type_in_between() -> None:
    touched = TouchedKeys(["id"])
    narrow = pa.schema([("id", pa.int32()), ("v", pa.int64())])
    touched.add(changes(narrow, insert(1, 5)))
    touched.add(changes(INTEGERS, insert(2, 5)))
    touched.keep()
    assert kept(touched, ["id"], chunk(INTEGERS, (1, 0), (2, 0), (3, 0))) == [False, False, True]
