"""Text in UTF-8, bytes, ENUM and SET."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.binlog.field_types import FieldType
from engine.decode.arrow.codec import Counters, Options
from engine.decode.columns import codec_for
from engine.errors import EngineError, EventError
from tests.support.column_cells import column, decode

UTF8MB4 = 255
BINARY = 63

WIDTHS = [
    (FieldType.VARCHAR, 255, -1),
    (FieldType.VARCHAR, 256, -2),
    (FieldType.VAR_STRING, 300, -2),
    (FieldType.STRING, 255, -1),
    (FieldType.STRING, 1020, -2),
    (FieldType.TINY_BLOB, 1, -1),
    (FieldType.BLOB, 2, -2),
    (FieldType.MEDIUM_BLOB, 3, -3),
    (FieldType.LONG_BLOB, 4, -4),
]


@pytest.mark.parametrize(("type_code", "metadata", "width"), WIDTHS)
def test_length_prefixes(type_code: FieldType, metadata: int, width: int) -> None:
    for collation in (UTF8MB4, BINARY):
        assert codec_for(column(type_code, metadata, collation=collation), Options()).width == width


@pytest.mark.parametrize("metadata", [0, 5])
def test_impossible_length_prefixes_name_the_column(metadata: int) -> None:
    with pytest.raises(EngineError, match="column c has lengths of"):
        codec_for(column(FieldType.BLOB, metadata), Options())


texts = st.lists(st.none() | st.text(max_size=40) | st.text("abc", max_size=40), max_size=20)


@given(texts, st.sampled_from([(FieldType.VARCHAR, 100), (FieldType.VARCHAR, 1000), (FieldType.BLOB, 3)]))
def test_utf8_text(values: list[str | None], stored: tuple[FieldType, int]) -> None:
    cells = [None if value is None else value.encode() for value in values]
    array = decode(column(*stored, collation=UTF8MB4), cells)
    assert array.type == pa.string()
    assert array.null_count == values.count(None)
    assert array.to_pylist() == values


edges = st.binary(max_size=3) | st.text(max_size=1).map(str.encode)
middles = st.builds(lambda size, last: b"a" * size + last, st.sampled_from([0, 505, 512, 8200]), edges)


@given(
    st.lists(st.none() | st.binary(max_size=20) | st.text().map(str.encode), max_size=10)
    | st.lists(st.builds(bytes.__add__, edges, middles), max_size=10)
)
def test_invalid_utf8_is_replaced_and_counted(values: list[bytes | None]) -> None:
    counters = Counters()
    array = decode(column(FieldType.VARCHAR, 60000, collation=UTF8MB4), values, counters=counters)
    wants = [None if value is None else value.decode("utf-8", "replace") for value in values]
    assert array.to_pylist() == wants
    replaced = sum(
        (w or "").count("\ufffd") - (v or b"").count(b"\xef\xbf\xbd")
        for v, w in zip(values, wants, strict=True)
    )
    assert counters.values == ({"invalid_characters": replaced} if replaced else {})


def test_characters_are_checked_within_their_cell() -> None:
    """Two halves of a character in neighbouring cells are two errors, though they end up side by side."""
    for size in (3, 30):
        counters = Counters()
        cells = [b"a" * size + b"\xc3", b"\xa4" + b"a" * size]
        assert decode(
            column(FieldType.VARCHAR, 100, collation=UTF8MB4), cells, counters=counters
        ).to_pylist() == [
            "a" * size + "\ufffd",
            "\ufffd" + "a" * size,
        ]
        assert counters.values == {"invalid_characters": 2}


@given(st.lists(st.none() | st.binary(max_size=40), max_size=20))
def test_bytes(values: list[bytes | None]) -> None:
    for stored in ((FieldType.VARCHAR, 1000), (FieldType.BLOB, 2)):
        array = decode(column(*stored, collation=BINARY), values)
        assert array.type == pa.binary()
        assert array.to_pylist() == values


@given(st.lists(st.none() | st.binary(max_size=12), max_size=20))
def test_fixed_length_bytes_are_padded(values: list[bytes | None]) -> None:
    array = decode(column(FieldType.STRING, 12, collation=BINARY), [v and v.rstrip(b"\0") for v in values])
    assert array.to_pylist() == [None if value is None else value.ljust(12, b"\0") for value in values]


def test_fixed_length_bytes_that_are_too_long() -> None:
    with pytest.raises(EventError) as caught:
        decode(column(FieldType.STRING, 3, collation=BINARY), [b"abc", b"abcd"])
    assert caught.value.offset == 7


def test_unknown_character_sets() -> None:
    assert decode(column(FieldType.BLOB, 2), [b"x"]).to_pylist() == [b"x"]
    assert decode(column(FieldType.VARCHAR, 2), [b"x"]).to_pylist() == ["x"]
    assert decode(column(FieldType.VARCHAR, 2, charset="binary", collation=UTF8MB4), [b"x"]).to_pylist() == [
        b"x"
    ]


@pytest.mark.parametrize("size", [31, 32, 33, 127, 128, 129, 255, 256, 257, 9000])
@pytest.mark.parametrize("collation", [UTF8MB4, BINARY])
def test_sizes_around_those_that_are_copied_at_once(size: int, collation: int) -> None:
    """Between neighbours that must stay as they are, in the middle of a batch and at its end."""
    cells = [b"first", bytes(1 + place % 127 for place in range(size)), b"", b"x" * size]
    array = decode(column(FieldType.BLOB, 2, collation=collation), cells)
    assert [value if collation == BINARY else value.encode() for value in array.to_pylist()] == cells


members = st.lists(st.text(max_size=5), min_size=1, max_size=64).map(tuple)


@given(members, st.data())
def test_enums(names: tuple[str, ...], data: st.DataObject) -> None:
    numbers = data.draw(st.lists(st.none() | st.integers(0, len(names)), max_size=20))
    for size in (1, 2):
        cells = [None if number is None else number.to_bytes(size, "little") for number in numbers]
        array = decode(column(FieldType.ENUM, size, members=names), cells)
        assert array.to_pylist() == [None if n is None else ("", *names)[n] for n in numbers]


@given(members, st.data())
def test_sets(names: tuple[str, ...], data: st.DataObject) -> None:
    masks = data.draw(st.lists(st.none() | st.integers(0, 2 ** len(names) - 1), max_size=20))
    cells = [None if mask is None else mask.to_bytes(8, "little") for mask in masks]
    array = decode(column(FieldType.SET, 8, members=names), cells)
    wants = [None if m is None else ",".join(n for bit, n in enumerate(names) if m >> bit & 1) for m in masks]
    assert array.to_pylist() == wants


@pytest.mark.parametrize(
    ("type_code", "metadata", "cell"), [(FieldType.ENUM, 1, b"\3"), (FieldType.SET, 8, b"\4" * 8)]
)
def test_members_that_the_definition_lacks(type_code: FieldType, metadata: int, cell: bytes) -> None:
    with pytest.raises(EventError, match="exceeds the 2 members") as caught:
        decode(column(type_code, metadata, members=("a", "b")), [cell[:0].ljust(len(cell), b"\1"), cell])
    assert caught.value.offset == 3 + len(cell) or type_code == FieldType.SET


@pytest.mark.parametrize("type_code", [FieldType.ENUM, FieldType.SET])
def test_members_that_take_much_more_room_than_their_numbers(type_code: FieldType) -> None:
    names = ("x" * 5000, "y" * 5000)
    size = 1 if type_code == FieldType.ENUM else 8
    array = decode(
        column(type_code, size, members=names), [number.to_bytes(size, "little") for number in (1, 2)] * 100
    )
    assert array.to_pylist() == list(names) * 100


@pytest.mark.parametrize(
    ("type_code", "size", "arrow_type"),
    [
        (FieldType.ENUM, 1, pa.int16()),
        (FieldType.ENUM, 2, pa.int32()),
        (FieldType.SET, 1, pa.int16()),
        (FieldType.SET, 2, pa.int32()),
        (FieldType.SET, 3, pa.int32()),
        (FieldType.SET, 4, pa.int64()),
        (FieldType.SET, 8, pa.decimal128(20, 0)),
    ],
)
def test_values_whose_members_are_not_known_are_numbers(
    type_code: FieldType, size: int, arrow_type: pa.DataType
) -> None:
    counters = Counters()
    numbers = [2, None, 0, 2 ** (8 * size) - 1]
    cells = [None if number is None else number.to_bytes(size, "little") for number in numbers]
    array = decode(column(type_code, size), cells, counters=counters)
    assert array.type == arrow_type
    assert array.to_pylist() == numbers
    assert counters.values == {"unnamed_members": 3}


@pytest.mark.parametrize(
    ("type_code", "metadata"),
    [(FieldType.ENUM, 3), (FieldType.SET, 5), (FieldType.SET, 9), (FieldType.SET, 0)],
)
def test_impossible_enum_sizes_name_the_column(type_code: FieldType, metadata: int) -> None:
    with pytest.raises(EngineError, match="column c is a"):
        codec_for(column(type_code, metadata), Options())
