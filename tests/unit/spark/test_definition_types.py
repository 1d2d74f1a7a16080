"""Arrow types and values of columns from their definitions."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.binlog.table_definition import ColumnDefinition
from engine.errors import EngineError
from engine.spark.definition_types import arrow_type, value_of


def value(text: str, column_type: str) -> Any:
    column = ColumnDefinition("c", column_type)
    return value_of(text, column, arrow_type(column))


@pytest.mark.parametrize(
    "column_type, expected",
    [
        ("tinyint(3) unsigned", pa.int16()),
        ("mediumint unsigned", pa.int32()),
        ("int(6) unsigned zerofill", pa.int64()),
        ("bigint", pa.int64()),
        ("bigint(20) unsigned", pa.decimal128(20, 0)),
        ("decimal(38,2)", pa.decimal128(38, 2)),
        ("decimal(39,2)", pa.string()),
        ("float(7,4)", pa.float32()),
        ("bit(1)", pa.bool_()),
        ("bit(63)", pa.int64()),
        ("year(4)", pa.int16()),
        ("datetime(6)", pa.timestamp("us")),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("enum('unsigned')", pa.string()),
        ("varbinary(9)", pa.binary()),
        ("geomcollection", pa.struct([("srid", pa.int32()), ("wkb", pa.binary())])),
        ("vector(3)", pa.list_(pa.float32())),
        ("inet6", pa.string()),
    ],
)
def test_types(column_type: str, expected: pa.DataType) -> None:
    assert arrow_type(ColumnDefinition("c", column_type)) == expected


@pytest.mark.parametrize(
    "text, column_type, expected",
    [
        ("-007", "int(6) zerofill", -7),
        ("b'101'", "bit(8)", 5),
        ("b'1'", "bit(1)", True),
        ("b'0'", "bit(1)", False),
        ("0xff", "bigint(20) unsigned", Decimal(255)),
        ("9.90", "decimal(10,2)", Decimal("9.90")),
        ("1e-3", "double", 0.001),
        ("2024-02-29", "date", date(2024, 2, 29)),
        ("0000-00-00", "date", None),
        ("2024-00-10", "date", None),
        ("2024-02-29 01:02:03.5", "datetime(1)", datetime(2024, 2, 29, 1, 2, 3, 500_000)),
        ("2024-02-29", "datetime", datetime(2024, 2, 29)),
        ("2024-02-29 01:02:03", "timestamp", datetime(2024, 2, 29, 1, 2, 3, tzinfo=UTC)),
        ("0000-00-00 00:00:00", "datetime", None),
        ("-838:59:59", "time", -timedelta(hours=838, minutes=59, seconds=59)),
        ("00:00:01.25", "time(2)", timedelta(seconds=1.25)),
        ("ab", "binary(4)", b"ab\0\0"),
        ("0x6162", "varbinary(4)", b"ab"),
        ("0x6162", "varchar(9)", "0x6162"),
        ("ä", "enum('ä','b')", "ä"),
    ],
)
def test_values(text: str, column_type: str, expected: object) -> None:
    found = value(text, column_type)
    assert found == expected and type(found) is type(expected)
    assert pa.scalar(found, arrow_type(ColumnDefinition("c", column_type))).as_py() == expected


@given(
    st.text(),
    st.sampled_from(
        ["int", "bit(8)", "decimal(9,2)", "double", "date", "datetime", "time", "binary(3)", "point"]
    ),
)
def test_a_text_that_is_not_a_value_is_an_error_of_ours(text: str, column_type: str) -> None:
    try:
        value(text, column_type)
    except EngineError as error:
        assert "the default of the column `c`" in str(error)
