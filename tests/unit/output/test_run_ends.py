"""Run-end encoded columns with a value per row."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.output.run_ends import run_end_decoded

NAMES = pa.list_(pa.string())
VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    NAMES: st.none() | st.lists(st.text(max_size=3), max_size=3),
    pa.string(): st.none() | st.text(max_size=3),
    pa.int64(): st.integers(-5, 5),
}


@pytest.mark.parametrize("kind", VALUES, ids=str)
@given(data=st.data())
def test_any_slice_has_the_values_of_its_rows(kind: pa.DataType, data: st.DataObject) -> None:
    runs = data.draw(st.lists(st.tuples(VALUES[kind], st.integers(1, 5)), max_size=8))
    rows = [value for value, length in runs for _ in range(length)]
    ends = [sum(length for _, length in runs[: number + 1]) for number in range(len(runs))]
    column = pa.RunEndEncodedArray.from_arrays(
        pa.array(ends, pa.int32()), pa.array([value for value, _ in runs], kind)
    )
    first = data.draw(st.integers(0, len(rows)))
    count = data.draw(st.integers(0, len(rows) - first))
    found = run_end_decoded(column.slice(first, count))
    assert found.type == kind
    assert found.to_pylist() == rows[first : first + count]


def test_another_column_is_returned_as_it_is() -> None:
    column = pa.array([1, 2])
    assert run_end_decoded(column) is column
