"""Which rows of a table with system versioning are its present ones."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from engine.spark.row_versions import are_present

PAST = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)
END, LATER_END = datetime(2038, 1, 19, 3, 14, 7, 999999, UTC), datetime(2106, 2, 7, 6, 28, 15, 999999, UTC)
TIMES = pa.timestamp("us", "UTC")


@pytest.mark.parametrize(
    ("start", "end", "present"),
    [
        (PAST, END, True),
        (PAST, LATER_END, True),
        (PAST, PAST, False),
        (PAST, END.replace(microsecond=0), False),
        (None, END, True),
        (None, PAST, False),
        (None, None, True),
    ],
)
def test_times(start: datetime | None, end: datetime | None, present: bool) -> None:
    assert _present(start, end, TIMES) is present
    assert _present(end, start, TIMES) is present
    assert _present(_text(start), _text(end), pa.string()) is present


def test_transactions() -> None:
    number = pa.decimal128(20, 0)
    assert _present(Decimal(19), Decimal(2**64 - 1), number)
    assert not _present(Decimal(19), Decimal(24), number)


def _present(start: Any, end: Any, data_type: pa.DataType) -> bool:
    columns = [pa.array([value], data_type) for value in (start, end)]
    return bool(are_present(pa.RecordBatch.from_arrays(columns, ["s", "e"]))[0].as_py())


def _text(time: datetime | None) -> str | None:
    return None if time is None else time.replace(tzinfo=None).isoformat(" ", "microseconds")
