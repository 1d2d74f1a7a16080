"""The protocol's basic types: what is written reads back, and nothing is read past the end."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.net.protocol import wire
from engine.net.protocol.wire import ProtocolError, Reader


@given(st.integers(0, (1 << 64) - 1))
@example(250)
@example(251)
@example(0xFFFF)
@example(0x10000)
@example(0xFFFFFF)
@example(0x1000000)
def test_lenenc_int_round_trip(value: int) -> None:
    encoded = wire.lenenc_int_bytes(value)
    reader = Reader(encoded)
    assert reader.lenenc_int() == value
    assert reader.remaining == 0
    for end in range(len(encoded)):
        with pytest.raises(ProtocolError):
            Reader(encoded[:end]).lenenc_int()


def test_lenenc_int_takes_the_shortest_form() -> None:
    lengths = {250: 1, 251: 3, 0xFFFF: 3, 0x10000: 4, 0xFFFFFF: 4, 0x1000000: 9}
    assert {value: len(wire.lenenc_int_bytes(value)) for value in lengths} == lengths


@given(st.one_of(st.none(), st.binary(max_size=400)))
def test_cell_round_trip(cell: bytes | None) -> None:
    assert Reader(wire.lenenc_bytes_or_null(cell)).lenenc_bytes_or_null() == cell


@given(st.binary().filter(lambda value: 0 not in value), st.binary())
def test_nul_bytes_round_trip(value: bytes, rest: bytes) -> None:
    reader = Reader(wire.nul_bytes(value) + rest)
    assert (reader.nul_bytes(), reader.rest()) == (value, rest)
    assert Reader(value).nul_bytes_or_rest() == value


@pytest.mark.parametrize(
    "read",
    [
        lambda reader: reader.take(4),
        lambda reader: reader.uint(8),
        lambda reader: reader.nul_bytes(),
        lambda reader: reader.short_bytes(),
        lambda reader: reader.lenenc_bytes(),
    ],
)
def test_reading_past_the_end_fails(read: Callable[[Reader], object]) -> None:
    with pytest.raises(ProtocolError, match="malformed greeting"):
        read(Reader(b"\x63\x01\x02", "greeting"))


@pytest.mark.parametrize("marker", [0xFB, 0xFF])
def test_markers_are_no_integers(marker: int) -> None:
    with pytest.raises(ProtocolError, match="does not start a length-encoded integer"):
        Reader(bytes([marker]) + bytes(8)).lenenc_int()


def test_what_does_not_fit_is_not_written() -> None:
    with pytest.raises(ValueError):
        wire.short_bytes(bytes(256))
    with pytest.raises(ValueError):
        wire.nul_bytes(b"a\0b")
    with pytest.raises(ValueError):
        wire.lenenc_int_bytes(1 << 64)
