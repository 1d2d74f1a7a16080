"""JSON: an encoder of the binary format, the kernel and its reference, damaged documents, a real server."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.binlog import event_types as types
from engine.binlog.double_text import double_text
from engine.binlog.field_types import FieldType
from engine.binlog.format_description import FormatDescription
from engine.config.table_filter import EVERY_TABLE
from engine.decode.arrow.codec import Counters, Options
from engine.decode.columns.json import text as reference
from engine.decode.columns.json.text import json_text
from engine.decode.inspect.event_stream import decode_all
from engine.decode.tables.table_decoder import TableDecoders
from engine.errors import EventError
from tests.support.binary_json import (
    decimal_content,
    documents,
    encode,
    nested,
    scalars,
    text_of,
    variable_length,
)
from tests.support.binlog_builder import binlog, make_event
from tests.support.column_cells import JUNK, column, decode
from tests.support.decoded_parts import decode as decode_parts
from tests.support.made_events import JSON as JSON_TYPE
from tests.support.made_events import SIGNED_INT, gtid, image, integer, query, rows, table_map, varchar, xid

JSON = column(FieldType.JSON, 4)


opaque = st.tuples(
    st.sampled_from([246, 7, 10, 11, 12, 15]), st.binary(min_size=8, max_size=8) | st.binary(max_size=20)
)


@given(st.lists(st.none() | documents.map(lambda value: [value]), max_size=8))
@example([[{"a": ["x" * 70000, {"b": 70000, "c": [1, -70000]}, "y" * 200]}]])
@example([["\u00e4\u20ac\U0001f600"], None, [{}], [[]], [""]])
def test_documents(values: list[Any]) -> None:
    """Each document is boxed in a list here, so that a NULL cell differs from the document `null`."""
    cells = [None if value is None else encode(value[0]) for value in values]
    wants = [None if value is None else text_of(value[0]) for value in values]
    counters = Counters()
    assert decode(JSON, cells, counters=counters).to_pylist() == wants
    assert [cell and json_text(cell) for cell in cells] == wants
    assert counters.values == {}
    for value, want in zip(values, wants, strict=True):
        assert value is None or (want is not None and json.loads(want) == value[0])


NEWDECIMAL, DATE, TIME, DATETIME, TIMESTAMP = 246, 10, 11, 12, 7
OPAQUE = [
    ((NEWDECIMAL, bytes([3, 2]) + b"\x81\x32"), "1.50"),
    ((NEWDECIMAL, bytes([3, 2]) + b"\x7e\xcd"), "-1.50"),
    ((TIME, struct.pack("<q", (23 << 12 | 24 << 6 | 25) << 24 | 500000)), '"23:24:25.500000"'),
    ((TIME, struct.pack("<q", -((838 << 12 | 59 << 6 | 59) << 24))), '"-838:59:59.000000"'),
    (
        (DATETIME, struct.pack("<q", ((2015 * 13 + 1) << 22 | 15 << 17 | 23 << 12 | 24 << 6 | 25) << 24 | 7)),
        '"2015-01-15 23:24:25.000007"',
    ),
    (
        (TIMESTAMP, struct.pack("<q", ((2015 * 13 + 1) << 22 | 15 << 17) << 24)),
        '"2015-01-15 00:00:00.000000"',
    ),
    ((DATE, struct.pack("<q", ((2015 * 13 + 12) << 22 | 31 << 17) << 24)), '"2015-12-31"'),
    ((15, b"\xc0\xff\xee"), '"base64:type15:wP/u"'),
    ((16, b""), '"base64:type16:"'),
    ((252, b"z" * 58), '"base64:type252:' + "enp6" * 19 + '\\neg=="'),
]


def test_values_of_sql_types() -> None:
    texts = [text for _, want in OPAQUE for text in (want, f"[1, {want}]")]
    cells = [encode(boxed) for value, _ in OPAQUE for boxed in (value, [1, value])]
    between = [None, encode("between"), *cells, encode([])]
    assert decode(JSON, between).to_pylist() == [None, '"between"', *texts, "[]"]


@given(st.data())
def test_decimals_of_all_sizes(data: st.DataObject) -> None:
    precision = data.draw(st.integers(1, 65))
    scale = data.draw(st.integers(0, min(precision, 30)))
    number = data.draw(st.integers(-(10**precision) + 1, 10**precision - 1))
    document = encode([(NEWDECIMAL, decimal_content(precision, scale, number)), "end"])
    digits = f"{abs(number):0{scale + 1}d}"
    text = digits[: len(digits) - scale] + ("." + digits[-scale:] if scale else "")
    want = f'[{"-" if number < 0 else ""}{text}, "end"]'
    assert decode_in_kernel(document) == want == json_text(document)


@given(
    st.tuples(st.sampled_from([DATE, TIME, DATETIME, TIMESTAMP]), st.binary(min_size=8, max_size=8))
    | st.tuples(st.sampled_from([13, 15, 16, 252]), st.binary(max_size=200))
)
def test_values_of_sql_types_are_those_of_the_reference(value: tuple[int, bytes]) -> None:
    document = encode({"value": value, "end": [None]})
    assert decode_in_kernel(document) == json_text(document)


def decode_in_kernel(document: bytes) -> str:
    """The text of a document that must not be left to the reference."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reference, "json_text", lambda document: pytest.fail("left to the reference"))
        return decode(JSON, [document])[0].as_py()


def test_an_empty_document_is_null() -> None:
    """An INSERT IGNORE of NULL into a NOT NULL column stores one."""
    assert decode(JSON, [b""]).to_pylist() == ["null"]


def test_as_deep_as_the_server_allows() -> None:
    document: Any = 0
    for _ in range(100):
        document = [document]
    assert decode(JSON, [encode(document)]).to_pylist() == [text_of(document)]
    with pytest.raises(EventError, match="nests deeper"):
        decode(JSON, [encode([document])])


DOUBLES = [
    (0.0, "0.0"),
    (-0.0, "-0.0"),
    (1.0, "1.0"),
    (1e14, "100000000000000.0"),
    (1e15, "1e15"),
    (1e20, "1e20"),
    (1234567890123456.5, "1234567890123456.5"),
    (9999999999999998.0, "9.999999999999998e15"),
    (1.5e-7, "0.00000015"),
    (1.23e-15, "0.00000000000000123"),
    (1.23e-16, "1.23e-16"),
    (5e-324, "5e-324"),
    (1.7976931348623157e308, "1.7976931348623157e308"),
    (-0.30000000000000004, "-0.30000000000000004"),
]


def test_doubles_as_the_server_prints_them() -> None:
    assert [double_text(value) for value, _ in DOUBLES] == [text for _, text in DOUBLES]
    assert decode(JSON, [encode(value) for value, _ in DOUBLES]).to_pylist() == [text for _, text in DOUBLES]


def test_whole_doubles_have_no_point_before_mysql_8() -> None:
    values = [*(value for value, _ in DOUBLES), [100.0, {"a": -7.0}], 100, "1.0"]
    wants = [*(text.removesuffix(".0") for _, text in DOUBLES), '[100, {"a": -7}]', "100", '"1.0"']
    cells = [encode(value) for value in values]
    assert decode(JSON, cells, Options(json_points=False)).to_pylist() == wants
    assert [json_text(cell, points=False) for cell in cells] == wants


def test_documents_are_printed_as_their_server_does() -> None:
    """Of files that contain the same events, and of decoders that have seen both."""
    table = table_map(7, [SIGNED_INT, JSON_TYPE])
    cells = [integer(1), varchar(encode([1.0, 2.5]), 4)]
    parts = [gtid(1), query("BEGIN"), table, rows(types.WRITE_ROWS_EVENT, 7, 2, [image(cells)]), xid()]
    tables = TableDecoders(Options(), EVERY_TABLE)
    for version, want in (("5.7.44-log", "[1, 2.5]"), ("8.0.36", "[1.0, 2.5]"), ("5.7.44-log", "[1, 2.5]")):
        events = binlog(parts, version)
        assert [row["@2"] for row in decode_parts(parts, version).rows["orders"]] == [want]
        (shown,) = (placed.rows for placed in decode_all(("f", 4, event) for event in events) if placed.rows)
        assert [row["values"]["@2"] for row in shown] == [want]
        decoder = tables.find(make_event(*table), FormatDescription.parse(events[0]).without_checksums(), {})
        assert decoder is not None
        assert decoder.columns[1].codec.form[1] == (version == "8.0.36")


def test_doubles_of_all_sizes() -> None:
    """The kernel's digits are those of Python's repr, over random bits and every power of two and ten."""
    random = np.random.default_rng(1).integers(0, 2**64, 20000, dtype=np.uint64).view(np.float64)
    with np.errstate(over="ignore"):
        powers = np.concatenate((2.0 ** np.arange(-1074, 1024), 10.0 ** np.arange(-323, 309)))
    values = np.concatenate((random, powers, np.nextafter(powers, 0), np.nextafter(powers, np.inf)))
    values = values[np.isfinite(values)].tolist()
    assert decode(JSON, [encode(value) for value in values]).to_pylist() == [double_text(v) for v in values]


NOT_UTF8 = {
    "no byte of UTF-8": b"\xff",
    "a continuation alone": b"\x80",
    "a character that is cut off": b"\xe2\x82",
    "overlong": b"\xc0\xaf",
    "overlong, of three bytes": b"\xe0\x80\xaf",
    "a surrogate": b"\xed\xa0\x80",
    "a pair of surrogates": b"\xed\xa0\xbd\xed\xb8\x80",
    "beyond Unicode": b"\xf4\x90\x80\x80",
}
LONG = "x" * 100


@pytest.mark.parametrize("stored", NOT_UTF8.values(), ids=NOT_UTF8)
@pytest.mark.parametrize("document", [["aZZc"], {"aZZc": 1}, "aZZc", {"k": [f"{LONG}ZZ{LONG}"]}], ids=repr)
def test_bytes_that_are_not_utf8(document: Any, stored: bytes) -> None:
    encoded = encode(json.loads(json.dumps(document).replace("ZZ", "Z" * len(stored))))
    place = encoded.index(b"Z" * len(stored))
    broken = encoded.replace(b"Z" * len(stored), stored)
    with pytest.raises(EventError, match=f"a JSON string is not UTF-8 .byte 0x{stored[0]:02x}") as caught:
        decode(JSON, [encode(["sound"]), broken])
    # After the first cell, the bytes between the cells, and the length of the second.
    assert caught.value.offset == 4 + len(encode(["sound"])) + len(JUNK) + 4 + place
    with pytest.raises(EventError, match="not UTF-8"):
        json_text(broken)


@pytest.mark.parametrize(
    "text", ["\ufffd", "\U0001f600", "\ud7ff\ue000", "\U0010ffff", "\x7f\x80\u07ff\u0800"]
)
def test_characters_at_the_limits_of_utf8(text: str) -> None:
    for document in ([text], {text: text}, text, LONG + text):
        assert decode_in_kernel(encode(document)) == text_of(document) == json_text(encode(document))


@given(
    st.binary(max_size=60)
    | st.lists(st.sampled_from([*NOT_UTF8.values(), b"abc", b"\xe2\x82\xac"])).map(b"".join)
)
def test_any_bytes_are_text_or_an_error(stored: bytes) -> None:
    documents = [
        bytes([12]) + variable_length(len(stored)) + stored,
        bytes([0]) + struct.pack("<HHHHBH", 1, 11 + len(stored), 11, len(stored), 4, 0) + stored,
    ]
    try:
        want = json.dumps(stored.decode(), ensure_ascii=False)
    except UnicodeDecodeError:
        for document in documents:
            for read in (json_text, lambda document: decode(JSON, [document])):
                with pytest.raises(EventError, match="not UTF-8"):
                    read(document)
    else:
        for document, text in zip(documents, (want, f"{{{want}: null}}"), strict=True):
            assert decode_in_kernel(document) == json_text(document) == text


HOSTILE = [
    bytes([2]),
    bytes([99]),
    bytes([4, 3]),
    bytes([4]),
    bytes([5, 1]),
    bytes([12]),
    bytes([12, 5]) + b"abc",
    bytes([12, 0x80, 0x80, 0x80, 0x80, 0x80, 1]),
    bytes([11]) + struct.pack("<d", float("inf")),
    bytes([15, 10, 3]) + b"abc",
    bytes([15, 246, 4]) + b"\xff\xff\xff\xff",
    bytes([2]) + struct.pack("<HH", 1, 4),
    bytes([2]) + struct.pack("<HH", 0, 9),
    bytes([2]) + struct.pack("<HHBH", 1, 7, 2, 0),
    bytes([2]) + struct.pack("<HHBH", 1, 7, 12, 7),
    bytes([0]) + struct.pack("<HHHHBH", 1, 11, 0, 1, 4, 0),
    bytes([0]) + struct.pack("<HHHHBH", 1, 11, 11, 9, 4, 0),
    bytes([3]) + struct.pack("<II", 2**32 - 1, 2**32 - 1),
]


@pytest.mark.parametrize("document", HOSTILE)
def test_broken_documents(document: bytes) -> None:
    with pytest.raises(EventError) as caught:
        decode(JSON, [encode([1]), document])
    assert caught.value.offset >= len(encode([1])) + 4 + 3


def test_a_document_that_multiplies_itself() -> None:
    """Sixty arrays, each of which holds the next one sixteen times."""
    document = encode([])[1:]
    for _ in range(60):
        header = 4 + 3 * 16
        document = (
            struct.pack("<HH", 16, header + len(document)) + struct.pack("<BH", 2, header) * 16 + document
        )
    with pytest.raises(EventError, match="its values overlap"):
        decode(JSON, [bytes([2]) + document])


@given(
    nested(scalars | opaque),
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), max_size=4),
    st.integers(0, 9),
)
def test_damaged_documents_agree_with_the_reference_or_raise(
    value: Any, damage: list[tuple[int, int]], cut: int
) -> None:
    damaged = bytearray(encode(value))
    for place, byte in damage:
        damaged[place % len(damaged)] = byte
    document = bytes(damaged[: len(damaged) - cut])
    try:
        want = json_text(document)
    except EventError:
        with pytest.raises(EventError):
            decode(JSON, [document])
    else:
        assert decode(JSON, [document]).to_pylist() == [want]
