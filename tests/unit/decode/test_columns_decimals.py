"""DECIMAL columns against an encoder after MySQL's `decimal2bin`."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.binlog.field_types import FieldType
from engine.decode.arrow.codec import Options
from engine.decode.columns import codec_for
from engine.errors import EngineError, EventError
from tests.support.column_cells import column, decode

BYTES_OF_DIGITS = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)


def encode(unscaled: int, precision: int, scale: int) -> bytes:
    """The stored form of unscaled * 10 ** -scale."""
    digits = str(abs(unscaled)).rjust(precision, "0")
    whole, fraction = digits[: precision - scale], digits[precision - scale :]
    first = len(whole) % 9
    groups = [whole[:first], *[whole[at : at + 9] for at in range(first, len(whole), 9)]]
    groups += [fraction[at : at + 9] for at in range(0, len(fraction), 9)]
    stored = bytearray().join(
        int(group or 0).to_bytes(BYTES_OF_DIGITS[len(group)], "big") for group in groups
    )
    if unscaled < 0:
        stored = bytearray(byte ^ 0xFF for byte in stored)
    stored[0] ^= 0x80
    return bytes(stored)


@st.composite
def decimal_columns(draw: st.DrawFn) -> tuple[int, int, list[int | None]]:
    precision = draw(st.integers(1, 65))
    scale = draw(st.integers(0, min(precision, 38)))
    limit = 10**precision - 1
    extremes = st.sampled_from([limit, -limit, 0, 1, -1, 10 ** (precision // 2)])
    return precision, scale, draw(st.lists(st.none() | extremes | st.integers(-limit, limit), max_size=10))


def as_text(unscaled: int, scale: int) -> str:
    return format(Decimal((unscaled < 0, tuple(map(int, str(abs(unscaled)))), -scale)), "f")


@given(decimal_columns())
def test_decimals_of_every_precision(case: tuple[int, int, list[int | None]]) -> None:
    precision, scale, numbers = case
    cells = [None if number is None else encode(number, precision, scale) for number in numbers]
    array = decode(column(FieldType.NEWDECIMAL, precision | scale << 8), cells)
    assert array.type == (pa.decimal128(precision, scale) if precision <= 38 else pa.string())
    want = [None if number is None else as_text(number, scale) for number in numbers]
    assert [
        None if value is None else format(value, "f" * (precision <= 38)) for value in array.to_pylist()
    ] == want


def test_a_documented_example() -> None:
    """1234567890.1234 as DECIMAL(14,4), from the comment of `decimal2bin`."""
    for stored, want in (
        ("81 0D FB 38 D2 04 D2", "1234567890.1234"),
        ("7E F2 04 C7 2D FB 2D", "-1234567890.1234"),
    ):
        assert decode(column(FieldType.NEWDECIMAL, 14 | 4 << 8), [bytes.fromhex(stored)])[
            0
        ].as_py() == Decimal(want)


@pytest.mark.parametrize("precision", [18, 38, 65])
def test_digits_that_are_none(precision: int) -> None:
    codec_bytes = codec_for(column(FieldType.NEWDECIMAL, precision), Options()).width
    good = encode(1, precision, 0)
    with pytest.raises(EventError) as caught:
        decode(column(FieldType.NEWDECIMAL, precision), [good, b"\xff" * codec_bytes])
    assert caught.value.offset == codec_bytes + 3


@pytest.mark.parametrize("group", range(3))
def test_digits_that_are_none_in_any_group(group: int) -> None:
    """DECIMAL(12,2): groups of one, nine and two digits, of which one is out of its range."""
    stored = bytearray(encode(0, 12, 2))
    stored[(0, 1, 5)[group]] |= 0x7F
    with pytest.raises(EventError, match="invalid digits"):
        decode(column(FieldType.NEWDECIMAL, 12 | 2 << 8), [bytes(stored)])


def test_decimals_of_old_are_refused_by_name() -> None:
    with pytest.raises(EngineError, match="column c is a DECIMAL from before MySQL"):
        codec_for(column(FieldType.DECIMAL), Options())


@pytest.mark.parametrize("metadata", [0, 66, 5 | 6 << 8, 255 | 255 << 8])
def test_impossible_precisions_name_the_column(metadata: int) -> None:
    with pytest.raises(EngineError, match="column c is an impossible DECIMAL"):
        codec_for(column(FieldType.NEWDECIMAL, metadata), Options())
