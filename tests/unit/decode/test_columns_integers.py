"""Integers, years, floats and bits: encoded as MySQL stores them, decoded, compared."""

from __future__ import annotations

import math
import struct
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.binlog.field_types import FieldType
from engine.decode.arrow.codec import Options
from engine.decode.columns import codec_for, compile_all
from engine.errors import EngineError, EventError
from tests.support.column_cells import column, decode

SIZES = {
    FieldType.TINY: 1,
    FieldType.SHORT: 2,
    FieldType.INT24: 3,
    FieldType.LONG: 4,
    FieldType.LONGLONG: 8,
}
ARROW_TYPES = {
    (FieldType.TINY, False): pa.int8(),
    (FieldType.SHORT, False): pa.int16(),
    (FieldType.INT24, False): pa.int32(),
    (FieldType.LONG, False): pa.int32(),
    (FieldType.LONGLONG, False): pa.int64(),
    (FieldType.TINY, True): pa.int16(),
    (FieldType.SHORT, True): pa.int32(),
    (FieldType.INT24, True): pa.int32(),
    (FieldType.LONG, True): pa.int64(),
    (FieldType.LONGLONG, True): pa.decimal128(20, 0),
}


@pytest.mark.parametrize(("type_code", "unsigned"), ARROW_TYPES)
@given(data=st.data())
def test_integers_of_every_width_and_sign(type_code: FieldType, unsigned: bool, data: st.DataObject) -> None:
    bits = 8 * SIZES[type_code]
    low, high = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    extremes = st.sampled_from([low, high, low + 1, 0, 1, high // 2 + 1])
    numbers = data.draw(st.lists(st.none() | extremes | st.integers(low, high), max_size=20))
    cells = [
        None if n is None else n.to_bytes(SIZES[type_code], "little", signed=not unsigned) for n in numbers
    ]
    array = decode(column(type_code, unsigned=unsigned), cells)
    assert array.type == ARROW_TYPES[type_code, unsigned]
    assert array.null_count == numbers.count(None)
    assert array.to_pylist() == numbers


def test_unknown_signedness_is_signed() -> None:
    assert decode(column(FieldType.TINY), [b"\xff"]).to_pylist() == [-1]


def test_no_validity_bitmap_without_nulls() -> None:
    assert decode(column(FieldType.LONG), [b"\1\0\0\0"] * 9).buffers()[0] is None


def test_an_empty_column() -> None:
    for type_code in (FieldType.LONG, FieldType.YEAR, FieldType.VARCHAR, FieldType.DATE):
        assert len(decode(column(type_code), [])) == 0


def test_years() -> None:
    assert decode(column(FieldType.YEAR), [b"\0", b"\1", b"\xff", None]).to_pylist() == [0, 1901, 2155, None]


@given(st.lists(st.none() | st.floats(width=32), max_size=20), st.lists(st.none() | st.floats(), max_size=20))
def test_floats(singles: list[float | None], doubles: list[float | None]) -> None:
    for type_code, form, numbers in (
        (FieldType.FLOAT, "<f", singles),
        (FieldType.DOUBLE, "<d", doubles),
    ):
        cells = [None if number is None else struct.pack(form, number) for number in numbers]
        for got, want in zip(decode(column(type_code, len(form)), cells).to_pylist(), numbers, strict=True):
            assert got == want or (want is not None and math.isnan(got) and math.isnan(want))


@pytest.mark.parametrize("bits", [1, 2, 7, 8, 9, 24, 31, 63, 64])
@given(data=st.data())
def test_bits(bits: int, data: st.DataObject) -> None:
    numbers = data.draw(st.lists(st.none() | st.integers(0, 2**bits - 1), max_size=20))
    cells = [None if number is None else number.to_bytes((bits + 7) // 8, "big") for number in numbers]
    array = decode(column(FieldType.BIT, bits % 8 | bits // 8 << 8), cells)
    assert array.type == {1: pa.bool_(), 64: pa.decimal128(20, 0)}.get(bits, pa.int64())
    kinds = {1: bool, 64: Decimal}
    assert array.to_pylist() == [None if n is None else kinds.get(bits, int)(n) for n in numbers]


@pytest.mark.parametrize(("bits", "cell"), [(1, b"\x02"), (2, b"\x04"), (9, b"\x02\x00"), (63, b"\xff" * 8)])
def test_bits_that_the_column_does_not_have(bits: int, cell: bytes) -> None:
    with pytest.raises(EventError, match="more bits than its column"):
        decode(column(FieldType.BIT, bits % 8 | bits // 8 << 8), [cell])


@pytest.mark.parametrize("metadata", [0, 0x0801, 0x0008, 0x0900])
def test_bits_that_cannot_be_name_the_column(metadata: int) -> None:
    with pytest.raises(EngineError, match="column c is a BIT"):
        codec_for(column(FieldType.BIT, metadata), Options())


def test_an_unknown_type_names_the_column() -> None:
    with pytest.raises(EngineError, match="column c has type code 99"):
        codec_for(column(99), Options())


def test_every_kernel_compiles() -> None:
    compile_all()
