"""The row walk over hand-made rows events: every version, bitmap and length prefix, and wrong lengths."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.binlog import event_types as types
from engine.binlog.event_table import EventTable, EventTableError, open_events
from engine.decode.arrow.codec import ABSENT_CELL, NULL_CELL
from engine.decode.rows.walk import walk_rows
from engine.decode.rows.walked_tables import RowLayout, Rows
from engine.output.change_schema import DELETE, INSERT, UPDATE_POSTIMAGE, UPDATE_PREIMAGE
from tests.support.binlog_builder import Part, make_event
from tests.support.made_events import bitmap, image, integer, rows, varchar

WRITES = {1: types.WRITE_ROWS_EVENT_V1, 2: types.WRITE_ROWS_EVENT}
UPDATES = {1: types.UPDATE_ROWS_EVENT_V1, 2: types.UPDATE_ROWS_EVENT}
DELETES = {1: types.DELETE_ROWS_EVENT_V1, 2: types.DELETE_ROWS_EVENT}


def table_of(parts: list[Part]) -> EventTable:
    """The events side by side, nothing after the last one."""
    index, content = [], b""
    for code, body in parts:
        index.append((len(content), code))
        content += make_event(code, body, 4 + len(content), checksum=False)
    table, error = open_events("f", np.frombuffer(content, np.uint8), np.array(index, np.uint32), 0, 4, 0)
    assert error is None
    return table


def walk(parts: list[Part], widths: list[int]) -> tuple[Rows, list[list[bytes | str | None]]]:
    """What the walk finds, and each cell as its bytes (with its length prefix), None or "absent"."""
    table = table_of(parts)
    found = walk_rows(table, np.arange(len(parts)), RowLayout.of(widths))
    return found, [
        [_cell(table, at, width) for at, width in zip(row, widths, strict=True)]
        for row in found.cells.tolist()
    ]


def _cell(table: EventTable, at: int, width: int) -> bytes | str | None:
    if at == NULL_CELL:
        return None
    if at == ABSENT_CELL:
        return "absent"
    if width > 0:
        return bytes(table.data[at : at + width])
    length = int.from_bytes(bytes(table.data[at : at - width]), "little")
    return bytes(table.data[at : at - width + length])


def one(code: int, columns: int, images: list[bytes], **options: Any) -> Part:
    return rows(code, 7, columns, images, **options)


ROW = [integer(7), varchar(b"seven")]
OTHER = [integer(-8), varchar(b"")]


@pytest.mark.parametrize("version", [1, 2])
def test_kinds_and_counts(version: int) -> None:
    parts = [
        one(WRITES[version], 2, [image(ROW), image(OTHER)]),
        one(UPDATES[version], 2, [image(ROW), image(OTHER)]),
        one(DELETES[version], 2, [image(OTHER)]),
    ]
    found, cells = walk(parts, [4, -1])
    assert cells == [ROW, OTHER, ROW, OTHER, OTHER]
    assert found.counts.tolist() == [2, 2, 1]
    assert found.change_types.tolist() == [INSERT, INSERT, UPDATE_PREIMAGE, UPDATE_POSTIMAGE, DELETE]
    assert found.images.tolist() == [0] * 5


@pytest.mark.parametrize("extra", [b"", b"\x00\x04ndb", b"\x01\x05\x00", b"\xff" * 300])
def test_extra_row_info_is_stepped_over(extra: bytes) -> None:
    _, cells = walk([one(types.WRITE_ROWS_EVENT, 2, [image(ROW)], extra=extra)], [4, -1])
    assert cells == [ROW]


@pytest.mark.parametrize("prefix", [1, 2, 3, 4])
@pytest.mark.parametrize("length", [0, 1, 255, 256, 65535, 65536, 1 << 20])
def test_length_prefixes(prefix: int, length: int) -> None:
    if length < 1 << 8 * prefix:
        value = varchar(bytes(length), prefix)
        _, cells = walk([one(types.WRITE_ROWS_EVENT, 2, [image([value, integer(1)])] * 2)], [-prefix, 4])
        assert cells == [[value, integer(1)]] * 2


@pytest.mark.parametrize("columns", [1, 7, 8, 9, 250, 251, 252, 255, 256, 4096])
def test_column_counts(columns: int) -> None:
    row = [integer(place) if place % 3 else None for place in range(columns)]
    _, cells = walk([one(types.WRITE_ROWS_EVENT_V1, columns, [image(row)])], [4] * columns)
    assert cells == [row]


def test_the_matrix_grows_with_rows_of_nulls() -> None:
    """Such a row takes a byte where the walk expects thirteen."""
    parts = [one(types.WRITE_ROWS_EVENT, 3, [image([None] * 3)] * 1000) for _ in range(3)]
    parts.append(one(types.WRITE_ROWS_EVENT, 3, [image([integer(1)] * 3)]))
    found, cells = walk(parts, [4, 4, 4])
    assert found.counts.tolist() == [1000, 1000, 1000, 1]
    assert cells[2999:] == [[None] * 3, [integer(1)] * 3]


PRESENT = [[True, False, False], [False, True, False], [False, False, True], [True, True, False], [True] * 3]


@pytest.mark.parametrize("before", PRESENT)
@pytest.mark.parametrize("after", PRESENT)
def test_partial_images(before: list[bool], after: list[bool]) -> None:
    """MINIMAL and NOBLOB: each image carries the columns of its own bitmap."""
    row = [integer(1), None, integer(3)]

    def carried(present: list[bool]) -> bytes:
        return image([cell for cell, there in zip(row, present, strict=True) if there])

    def expected(present: list[bool]) -> list[bytes | str | None]:
        return [cell if there else "absent" for cell, there in zip(row, present, strict=True)]

    part = one(
        types.UPDATE_ROWS_EVENT,
        3,
        [carried(before), carried(after)] * 2,
        present=bitmap(before),
        present_after=bitmap(after),
    )
    found, cells = walk([part, part], [4, 4, 4])
    assert cells == [expected(before), expected(after)] * 4
    numbers = found.images.tolist()[:2]
    for number, present in zip(numbers, (before, after), strict=True):
        if number:
            assert bytes(found.bitmaps[number - 1]) == bitmap(present)
        else:
            assert all(present)
    assert (numbers[0] == numbers[1]) == (before == after)


def test_images_without_any_column() -> None:
    nothing = bitmap([False])
    write = one(types.WRITE_ROWS_EVENT, 1, [b""], present=nothing)
    update = one(types.UPDATE_ROWS_EVENT, 1, [b"", b""], present=nothing, present_after=nothing)
    found, cells = walk([write, update], [4])
    assert cells == [["absent"]] * 3
    assert found.counts.tolist() == [1, 2]


@pytest.mark.parametrize("empty", ["before", "after"])
def test_updates_of_which_one_image_has_no_column(empty: str) -> None:
    full, nothing = bitmap([True]), bitmap([False])
    present = {"present": nothing, "present_after": full} if empty == "before" else {}
    present = present or {"present": full, "present_after": nothing}
    filled = image([integer(5)])
    images = [b"", filled] * 2 if empty == "before" else [filled, b""] * 2
    found, cells = walk([one(types.UPDATE_ROWS_EVENT, 1, images, **present)], [4])
    pair = [["absent"], [integer(5)]]
    assert cells == (pair if empty == "before" else pair[::-1]) * 2
    assert found.counts.tolist() == [4]


def test_events_without_rows() -> None:
    found, cells = walk([one(types.WRITE_ROWS_EVENT, 2, []), one(types.DELETE_ROWS_EVENT, 2, [])], [4, -1])
    assert cells == []
    assert found.counts.tolist() == [0, 0]


def test_many_distinct_bitmaps() -> None:
    """A bitmap that was seen long ago may get another number, but not another meaning."""
    columns = 12
    parts: list[Part] = []
    expected: list[list[bytes | str]] = []
    for number in range(1, 400):
        present = [bool(number >> place & 1) for place in range(columns)]
        carried = [integer(number)] * sum(present)
        parts.append(one(types.WRITE_ROWS_EVENT, columns, [image(carried)], present=bitmap(present)))
        expected.append([integer(number) if there else "absent" for there in present])
    found, cells = walk(parts + parts, [4] * columns)
    assert cells == expected * 2
    for row, number in zip(cells, found.images.tolist(), strict=True):
        assert bytes(found.bitmaps[number - 1]) == bitmap([cell != "absent" for cell in row])


fields = st.sampled_from([1, 2, 4, 8, -1, -2, -3, -4])
row_widths = st.lists(fields, min_size=1, max_size=20)


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[int], list[list[list[bytes | None]]]]:
    widths = draw(row_widths)
    cell = {
        width: (
            st.binary(min_size=width, max_size=width)
            if width > 0
            else st.binary(max_size=40).map(partial(varchar, prefix=-width))
        )
        for width in widths
    }
    row = st.tuples(*(st.none() | cell[width] for width in widths)).map(list)
    return widths, draw(st.lists(st.lists(row, min_size=1, max_size=4), min_size=1, max_size=4))


@settings(max_examples=60)
@given(tables())
def test_what_was_put_in_is_found(made: tuple[list[int], list[list[list[bytes | None]]]]) -> None:
    widths, events = made
    parts = [one(types.WRITE_ROWS_EVENT, len(widths), [image(row) for row in event]) for event in events]
    _, cells = walk(parts, widths)
    assert cells == [row for event in events for row in event]


@settings(max_examples=60)
@given(tables(), st.data())
def test_an_event_that_is_cut_off_is_refused_or_ends_with_a_row(
    made: tuple[list[int], list[list[list[bytes | None]]]], data: st.DataObject
) -> None:
    widths, events = made
    code, body = one(types.WRITE_ROWS_EVENT, len(widths), [image(row) for row in events[0]])
    cut = data.draw(st.integers(8, len(body)))
    try:
        _, cells = walk([(code, body[:cut])], widths)
    except EventTableError:
        return
    assert cells == events[0][: len(cells)]


def lying(body: bytes) -> Part:
    return types.WRITE_ROWS_EVENT, bytes(6) + b"\1\0" + body


LIES = {
    "no extra row info": (lying(b""), "in the middle"),
    "half of the extra row info's length": (lying(b"\2"), "in the middle"),
    "extra row info shorter than its length": (lying(b"\1\0\1\1" + integer(1)), "in the middle"),
    "extra row info beyond the event": (lying(b"\xff\xff\1\1\0" + integer(1)), "in the middle"),
    "no column count": (lying(b"\2\0"), "in the middle"),
    "half of the column count": (lying(b"\2\0\xfc\1"), "in the middle"),
    "another column count": (lying(b"\2\0\2\3\0" + integer(1) * 2), "a different number of columns"),
    "no bitmap": (lying(b"\2\0\1"), "in the middle"),
    "no cell": (lying(b"\2\0\1\1\0"), "after the end of the rows event"),
    "half a cell": (lying(b"\2\0\1\1\0\1\2"), "after the end of the rows event"),
    "half a row": (lying(b"\2\0\1\1\0" + integer(1) + b"\0\1"), "after the end of the rows event"),
    "bytes after an image without columns": (lying(b"\2\0\1\0" + b"\0\0"), "bytes left"),
    "an update without its postimage": (
        one(types.UPDATE_ROWS_EVENT, 1, [image([integer(1)])]),
        "in the middle",
    ),
    "an update without its second bitmap": (
        (types.UPDATE_ROWS_EVENT, bytes(6) + b"\1\0\2\0\1\1"),
        "in the middle",
    ),
}


@pytest.mark.parametrize("name", LIES)
def test_events_that_lie_are_located(name: str) -> None:
    part, reason = LIES[name]
    sound = one(types.WRITE_ROWS_EVENT, 1, [image([integer(1)])])
    with pytest.raises(EventTableError, match=reason) as refused:
        walk([sound, part], [4])
    assert refused.value.event == 1


@pytest.mark.parametrize("prefix", [1, 2, 3, 4])
@pytest.mark.parametrize("missing", [1, 2, 200])
def test_lengths_beyond_the_event(prefix: int, missing: int) -> None:
    length = (1 << 8 * prefix) - 1 if missing == 200 else 20 + missing
    cell = length.to_bytes(prefix, "little") + bytes(20)
    with pytest.raises(EventTableError, match="after the end of the rows event"):
        walk([one(types.WRITE_ROWS_EVENT, 1, [image([cell])])], [-prefix])


@pytest.mark.parametrize("prefix", [1, 2, 3, 4])
def test_a_length_that_is_cut_off(prefix: int) -> None:
    for size in range(prefix):
        with pytest.raises(EventTableError, match="after the end of the rows event"):
            walk([one(types.WRITE_ROWS_EVENT, 1, [image([bytes(size)])])], [-prefix])


@pytest.mark.parametrize(
    "code", [code for code, kind in types.ROWS_EVENTS.items() if kind.version == 0], ids=types.event_name
)
def test_rows_of_before_mysql_5_1_18_are_refused(code: int) -> None:
    with pytest.raises(EventTableError, match=r"MySQL before 5\.1\.18"):
        walk([one(code, 1, [image([integer(1)])])], [4])


@pytest.mark.parametrize("columns", [251, 253, 254, 255])
def test_a_number_of_columns_in_a_form_that_no_server_writes(columns: int) -> None:
    """From 251 on it takes three bytes; one byte above 250 is the mark of another form."""
    row = image([integer(1)] * columns)
    code, body = one(types.WRITE_ROWS_EVENT_V1, columns, [row])
    assert body[8:11] == bytes([0xFC, columns, 0])
    with pytest.raises(EventTableError, match="a different number of columns"):
        walk([(code, body[:8] + bytes([columns]) + body[11:])], [4] * columns)


def test_more_values_than_a_batch_can_have(monkeypatch: pytest.MonkeyPatch) -> None:
    nulls = image([None] * 2)
    # There is room for 40 values at first, and for twice as many once these rows are found to be more.
    parts = [one(types.WRITE_ROWS_EVENT, 2, [image(ROW)]), one(types.WRITE_ROWS_EVENT, 2, [nulls] * 40)]
    monkeypatch.setattr("engine.decode.rows.walk._MOST_CELLS", 79)
    with pytest.raises(EventTableError, match="more than 2,147,483,647 values") as error:
        walk(parts, [4, -1])
    assert not error.value.corrupt


def test_an_event_beyond_the_offsets_of_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [one(types.WRITE_ROWS_EVENT, 2, [image(ROW)])] * 2
    end = len(table_of(parts).data)
    monkeypatch.setattr("engine.decode.rows.walk.LARGEST_DATA", end - 1)
    with pytest.raises(EventTableError, match="more than 2 GiB") as error:
        walk(parts, [4, -1])
    assert error.value.event == 1
