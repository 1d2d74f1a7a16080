"""Geometries and vectors."""

from __future__ import annotations

import struct

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.binlog.column import Column
from engine.binlog.field_types import FieldType
from engine.errors import EventError
from tests.support.column_cells import column, decode

GEOMETRY = column(FieldType.GEOMETRY, 4)
VECTORS = [column(FieldType.VECTOR, 4), column(FieldType.VARCHAR, 1000, declared="vector", charset="binary")]


@given(st.lists(st.none() | st.tuples(st.integers(0, 2**31 - 1), st.binary(max_size=40)), max_size=20))
def test_geometries(values: list[tuple[int, bytes] | None]) -> None:
    cells = [None if value is None else struct.pack("<I", value[0]) + value[1] for value in values]
    array = decode(GEOMETRY, cells)
    assert array.type == pa.struct([("srid", pa.int32()), ("wkb", pa.binary())])
    wants = [None if value is None else {"srid": value[0], "wkb": value[1]} for value in values]
    assert array.to_pylist() == wants


def test_an_empty_geometry() -> None:
    assert decode(GEOMETRY, [b"", None]).to_pylist() == [{"srid": 0, "wkb": b""}, None]


def test_a_geometry_too_short_for_its_srid() -> None:
    with pytest.raises(EventError) as caught:
        decode(GEOMETRY, [b"\0\0\0\0", b"abc"])
    assert caught.value.offset == 11


@pytest.mark.parametrize("vector", VECTORS)
@given(values=st.lists(st.none() | st.lists(st.floats(width=32, allow_nan=False), max_size=20), max_size=10))
def test_vectors(vector: Column, values: list[list[float] | None]) -> None:
    cells = [None if value is None else struct.pack(f"<{len(value)}f", *value) for value in values]
    array = decode(vector, cells)
    assert array.type == pa.list_(pa.float32())
    assert array.to_pylist() == values


@pytest.mark.parametrize("vector", VECTORS)
def test_a_vector_that_ends_inside_a_number(vector: Column) -> None:
    with pytest.raises(EventError, match="VECTOR"):
        decode(vector, [None, b"\0\0\0\0", b"abcde"])
