"""Literals of values, as SQL text; that servers read the same values from them is tested on servers."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.output.sql_text import quoted_name, quoted_text
from engine.sql.json_documents import json_literal
from engine.sql.literals import value_format

ESCAPES = {"0": "\0", "n": "\n", "r": "\r", "Z": "\x1a"}


def field(kind: pa.DataType, mysql_type: str) -> pa.Field:
    return pa.field("v", kind, metadata={"mysql_type": mysql_type})


@pytest.mark.parametrize(
    "kind,mysql_type,value,literal",
    [
        (pa.int64(), "bigint", -5, "-5"),
        (pa.bool_(), "bit(1)", True, "1"),
        (pa.int16(), "year", 0, "'0000'"),
        (pa.float32(), "float", pa.scalar(1.1, pa.float32()).as_py(), "1.100000023841858e0"),
        (pa.float64(), "double", -1e-300, "-1e-300"),
        (pa.decimal128(10, 2), "decimal(10,2)", Decimal("1E+3"), "1000"),
        (pa.string(), "decimal(65,30)", "-0.000000000000000000000000000001", None),
        (pa.string(), "date", "0000-00-00", "'0000-00-00'"),
        (pa.date32(), "date", date(1, 2, 3), "'0001-02-03'"),
        (pa.timestamp("us"), "datetime(6)", datetime(2020, 1, 2, 3, 4, 5, 6), "'2020-01-02 03:04:05.000006'"),
        (pa.timestamp("us", "UTC"), "timestamp", datetime(2020, 1, 2, tzinfo=UTC), "'2020-01-02 00:00:00'"),
        (pa.duration("us"), "time(6)", -timedelta(hours=838, microseconds=1), "'-838:00:00.000001'"),
        (pa.binary(), "blob", b"\x00\xff", "x'00ff'"),
        (
            pa.struct([("srid", pa.int32()), ("wkb", pa.binary())]),
            "geometry",
            {"srid": 1, "wkb": b"\x01"},
            "x'0100000001'",
        ),
        (pa.list_(pa.float32()), "vector", [1.0], "x'0000803f'"),
        (pa.uint16(), "enum", 3, "3"),
        (pa.string(), "enum", "it's", "'it''s'"),
    ],
)
def test_each_kind_of_value(kind: pa.DataType, mysql_type: str, value: Any, literal: str | None) -> None:
    assert value_format(field(kind, mysql_type)).value(value) == (value if literal is None else literal)


def test_null() -> None:
    values = value_format(field(pa.string(), "varchar(3)"))
    assert values.value(None) == "NULL"
    assert values.condition("`a`", None) == "`a` IS NULL"


@given(st.text())
def test_a_text_is_read_back_as_a_server_reads_it(text: str) -> None:
    literal = quoted_text(text)
    assert not {"\n", "\r", "\0"} & set(literal)
    inside, read, position = literal[1:-1], "", 0
    while position < len(inside):
        character, following = inside[position], inside[position + 1 : position + 2]
        if character == "\\":
            read += ESCAPES.get(following, following)
        elif character == "'":
            assert following == "'"
            read += "'"
        else:
            read += character
        position += 2 if character in "\\'" else 1
    assert read == text


def test_names() -> None:
    assert quoted_name("a`b") == "`a``b`"


DOCUMENTS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.text()
    | st.floats(-1e15, 1e15, exclude_min=True, exclude_max=True),
    lambda inside: st.lists(inside) | st.dictionaries(st.text(), inside),
    max_leaves=20,
)


@given(DOCUMENTS)
def test_documents_without_decimals_are_their_text(document: Any) -> None:
    """Python and MySQL print a double with the same digits; only exponents look different."""
    text = json.dumps(document, ensure_ascii=False)
    assert json_literal(text) == quoted_text(text)


def test_decimals_in_documents() -> None:
    assert json_literal('{"a b": [1.50, 2.0, 1.5]}') == (
        "JSON_REPLACE('{\"a b\": [1.50, 2.0, 1.5]}', '$.\"a b\"[0]', 1.50)"
    )
    assert json_literal("123456789012345678901234567890") == (
        "JSON_REPLACE('123456789012345678901234567890', '$', 123456789012345678901234567890)"
    )
    assert json_literal('"1.50"') == "'\"1.50\"'"


@pytest.mark.parametrize(
    ("text", "is_decimal"),
    [
        ("0.000000000000001", False),
        ("0.0000000000000001", True),
        ("98.95752212770212", False),
        ("98.957522127702113", True),
        ("123456789012345.0", False),
        ("1234567890123456.0", True),
        ("1234567890123456.7", True),
        ("1e-16", False),
    ],
)
def test_a_number_that_a_double_would_print_otherwise_is_a_decimal(text: str, is_decimal: bool) -> None:
    assert json_literal(text) == (f"JSON_REPLACE('{text}', '$', {text})" if is_decimal else f"'{text}'")
