"""Compressed events: they decode to the very rows that the plain events decode to."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.binlog import event_types as types
from tests.support.batches import Decoded
from tests.support.binlog_builder import MARIADB, Part, binlog
from tests.support.decoded_parts import decode
from tests.support.made_events import (
    LONG_VARCHAR,
    SIGNED_INT,
    bitmap,
    gtid,
    image,
    integer,
    mariadb_gtid,
    payload,
    query,
    rows,
    table_map,
    varchar,
    xid,
)
from tests.support.transaction_pictures import FILE

Changed = list[tuple[str, list[tuple[bytes | None, bytes | None]]]]
"""Kinds of changes, and the cells of their rows."""

COLUMNS: list[int | tuple[int, int]] = [SIGNED_INT, LONG_VARCHAR]
TABLE = table_map(7, COLUMNS)

cells = st.tuples(
    st.integers(-(2**31), 2**31 - 1).map(integer) | st.none(),
    st.binary(max_size=300).map(lambda value: varchar(value, 2)) | st.none(),
)
changes = st.lists(
    st.tuples(st.sampled_from(["write", "update", "delete"]), st.lists(cells, min_size=1, max_size=5)),
    min_size=1,
    max_size=4,
)

V2 = {kind: getattr(types, f"{kind.upper()}_ROWS_EVENT") for kind in ("write", "update", "delete")}
V1 = {kind: getattr(types, f"{kind.upper()}_ROWS_EVENT_V1") for kind in V2}
COMPRESSED = {
    "version 1": {kind: getattr(types, f"{kind.upper()}_ROWS_COMPRESSED_EVENT_V1") for kind in V2},
    "version 2": {kind: getattr(types, f"{kind.upper()}_ROWS_COMPRESSED_EVENT") for kind in V2},
}


def events_of(codes: dict[str, int], changed: Changed) -> list[Part]:
    return [
        rows(codes[kind], 7, 2, [image(row) for row in images for _ in range(1 + (kind == "update"))])
        for kind, images in changed
    ]


def without_places(decoded: Decoded) -> list[dict[str, Any]]:
    """The rows, but for the positions that compression changes."""
    assert decoded.error is None
    return [{**row, "_pos": None} for row in decoded.rows["orders"]]


def plain_transaction(number: int, changed: Changed) -> list[Part]:
    return [gtid(number), query("BEGIN"), TABLE, *events_of(V2, changed), xid()]


@settings(max_examples=30)
@given(st.lists(changes, min_size=1, max_size=3), st.booleans())
def test_a_compressed_transaction_holds_what_the_plain_one_does(
    transactions: list[Changed], compress: bool
) -> None:
    plain, packed = [], []
    for number, changed in enumerate(transactions, 1):
        begin, *inner = plain_transaction(number, changed)
        plain += [begin, *inner]
        packed += [begin, payload(inner, compress)]
    assert without_places(decode(packed)) == without_places(decode(plain))


@settings(max_examples=30)
@given(changes, st.sampled_from(sorted(COMPRESSED)))
def test_mariadb_compressed_rows_are_the_plain_ones(changed: Changed, version: str) -> None:
    parts = [
        [mariadb_gtid(1), TABLE, *events_of(codes, changed), xid()] for codes in (V1, COMPRESSED[version])
    ]
    plain, packed = (without_places(decode(events, MARIADB)) for events in parts)
    assert packed == plain


def test_mariadb_compressed_rows_of_a_wide_table_and_a_partial_image() -> None:
    columns = 300
    table = table_map(7, [SIGNED_INT] * columns)
    present = bitmap(place % 3 == 0 for place in range(columns))
    content = [image([integer(place) for place in range(100)])]
    plain, packed = (
        without_places(
            decode([mariadb_gtid(1), table, rows(code, 7, columns, content, present=present), xid()], MARIADB)
        )
        for code in (types.WRITE_ROWS_EVENT_V1, types.WRITE_ROWS_COMPRESSED_EVENT)
    )
    assert packed == plain
    assert plain[0]["@4"] == 1 and len(plain[0]["_absent_columns"]) == 200


def test_rows_of_a_payload_have_its_position_and_keep_their_order() -> None:
    changed: Changed = [("write", [(integer(value), None) for value in range(3)])]
    begin, *inner = plain_transaction(1, changed)
    decoded = decode([begin, payload(inner)])
    events = binlog([begin, payload(inner)])
    assert {row["_pos"] for row in decoded.rows["orders"]} == {4 + len(events[0]) + len(events[1])}
    assert [row["_seq"] for row in decoded.rows["orders"]] == [1, 2, 3]
    assert sum(result.transactions for result in decoded.results) == 1


def test_statements_in_a_payload_keep_their_last_bytes() -> None:
    """The events inside have no checksums, though those outside do."""
    decoded = decode([gtid(1), payload([query("BEGIN"), query("CREATE TABLE t (a int)"), xid()])])
    assert [entry["statement"] for entry in decoded.rows[""] if entry["type"] == "QUERY_EVENT"] == [
        "CREATE TABLE t (a int)"
    ]


BROKEN_ROWS = rows(types.WRITE_ROWS_EVENT, 7, 2, [b"\x00" + integer(1) + b"\xff\xffno"])
HOLDS_A_BROKEN_EVENT = {
    "rows that do not fit": [query("BEGIN"), TABLE, BROKEN_ROWS, xid()],
    "rows without a table map": [query("BEGIN"), rows(types.WRITE_ROWS_EVENT, 8, 2, []), xid()],
    "a statement that lies": [(types.QUERY_EVENT, bytes(8) + b"\xff" + bytes(4)), xid()],
    "a table map that ends early": [
        query("BEGIN"),
        (types.TABLE_MAP_EVENT, TABLE[1][:20]),
        BROKEN_ROWS,
        xid(),
    ],
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", HOLDS_A_BROKEN_EVENT)
def test_a_broken_event_inside_a_payload_is_located_after_the_valid_ones(name: str) -> None:
    sound = [part for number in (1, 2, 3) for part in _packed(number)]
    parts = [*sound, gtid(4), payload(HOLDS_A_BROKEN_EVENT[name]), *_packed(5)]
    decoded = decode(parts)
    events = binlog(parts)
    place = 4 + sum(map(len, events[: 1 + len(sound) + 1]))
    assert decoded.error is not None and decoded.error.startswith(f"{FILE} at position {place}: ")
    assert len(decoded.rows["orders"]) == 3
    result = next(result for result in decoded.results if result.status.failure)
    assert result.transactions == 3
    assert result.status.resume.position == 4 + sum(map(len, events[: 1 + len(sound)]))


def _packed(number: int) -> list[Part]:
    begin, *inner = plain_transaction(number, [("write", [(integer(number), None)])])
    return [begin, payload(inner)]


NO_ROWS = rows(types.WRITE_ROWS_EVENT_V1, 7, 2, [])[1]
LIES = {
    "more bytes than it claims": payload([xid()], claims=5),
    "compression 7 is unknown": (types.TRANSACTION_PAYLOAD_EVENT, b"\x02\x01\x07\x01\x01\x00\x00"),
    "bytes expected": (types.TRANSACTION_PAYLOAD_EVENT, payload([xid()])[1][:-9]),
    "claims 4294967295 bytes": (types.WRITE_ROWS_COMPRESSED_EVENT_V1, NO_ROWS + b"\x84\xff\xff\xff\xff"),
    "cannot be expanded": (types.WRITE_ROWS_COMPRESSED_EVENT_V1, NO_ROWS + b"\x81\x05zlib?"),
}


@pytest.mark.parametrize("reason", LIES)
def test_compressed_events_with_wrong_sizes_are_refused(reason: str) -> None:
    decoded = decode([*_packed(1), gtid(2), TABLE, LIES[reason], xid()])
    assert decoded.error is not None and reason in decoded.error
    assert decoded.error.startswith(f"{FILE} at position ")
    assert len(decoded.rows["orders"]) == 1
