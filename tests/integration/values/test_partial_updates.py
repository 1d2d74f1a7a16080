"""Updates that log differences of JSON documents: rows as if the server had logged the documents."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.binlog import event_types as types
from engine.binlog.files import read_events
from engine.decode.columns.json.diffs import INSERT, REMOVE, REPLACE
from engine.decode.inspect.event_stream import decode_all as decode_events
from tests.servers import Server
from tests.support.batches import Decoded, decode_all, events_of, feed
from tests.support.binlog_builder import Part, binlog
from tests.support.decoded_parts import decode
from tests.support.json_differences import difference
from tests.support.made_events import SIGNED_INT, bitmap, gtid, image, integer, query, table_map, xid
from tests.support.made_events import payload as packed
from tests.support.made_events import rows as rows_event
from tests.support.partial_updates import BEFORE, FULL, NO_OPTIONS, TABLE, differences, document, update
from tests.support.transaction_pictures import batcher


def postimages(*parts: Part) -> list[dict[str, Any]]:
    return [row for row in change_rows(*parts) if row["_change_type"] == "update_postimage"]


def change_rows(*parts: Part) -> list[dict[str, Any]]:
    decoded = decode([gtid(1), query("BEGIN"), TABLE, *parts, xid()])
    assert decoded.error is None
    return decoded.rows["orders"]


def test_differences_are_applied_to_the_preimage() -> None:
    before = image([integer(1), document({"a": 1, "b": 2}), document([1, 2])])
    both = image(
        [integer(1), differences(difference(REPLACE, "$.a", 7)), differences(difference(REMOVE, "$[0]"))]
    )
    second = image([integer(1), document({"new": 1}), differences(difference(INSERT, "$[0]", 0))])
    neither = image([integer(1), document({}), None])
    rows = postimages(
        update(before, FULL + b"\x03" + both, before, FULL + b"\x02" + second, before, NO_OPTIONS + neither)
    )
    assert [(row["@1"], row["@2"], row["@3"]) for row in rows] == [
        (1, '{"a": 7, "b": 2}', "[2]"),
        (1, '{"new": 1}', "[0, 1, 2]"),
        (1, "{}", None),
    ]
    assert all(row["_absent_columns"] is None for row in rows)


def test_differences_without_a_preimage_are_listed_and_flagged() -> None:
    key, rest = bitmap([True, False, False]), bitmap([False, True, True])
    changed = [
        image([differences(difference(REPLACE, "$.a", 7)), document({"whole": 1})]),
        image([document({"whole": 2}), differences(difference(REMOVE, "$.b"))]),
        image([differences(), document({})]),
    ]
    images = []
    for number, (partial, after) in enumerate(zip((1, 2, 1), changed, strict=True)):
        images += [image([integer(number)]), FULL + bytes([partial]) + after]
    decoded = decode([gtid(1), query("BEGIN"), TABLE, update(*images, before=key, after=rest), xid()])
    rows = [row for row in decoded.rows["orders"] if row["_change_type"] == "update_postimage"]
    assert [(row["@2"], row["@3"], row["_absent_columns"]) for row in rows] == [
        ('[{"op": "replace", "path": "$.a", "value": 7}]', '{"whole": 1}', ["@1", "@2"]),
        ('{"whole": 2}', '[{"op": "remove", "path": "$.b"}]', ["@1", "@3"]),
        (None, "{}", ["@1", "@2"]),
    ]
    counters = [result.counters for result in decoded.results if result.counters]
    assert counters == [{"json_differences": 3}]


def test_later_columns_and_tables_without_json() -> None:
    """There is a bit for every JSON column of the table, in the image or not; without JSON there are none."""
    before = image([integer(1), document({"a": 1}), document([1])])
    without_first = bitmap([True, False, True])
    after = image([integer(2), differences(difference(REPLACE, "$[0]", 5))])
    (row,) = postimages(update(before, FULL + b"\x02" + after, after=without_first))
    assert (row["@1"], row["@2"], row["@3"], row["_absent_columns"]) == (2, None, "[5]", ["@2"])
    plain = table_map(8, [SIGNED_INT], table="plain")
    images = [image([integer(1)]), FULL + image([integer(2)])]
    event = rows_event(types.PARTIAL_UPDATE_ROWS_EVENT, 8, 1, images)
    decoded = decode([gtid(1), query("BEGIN"), plain, event, xid()])
    assert [row["@1"] for row in decoded.rows["plain"]] == [1, 2]


def test_partial_updates_in_a_compressed_transaction() -> None:
    before = image([integer(1), document({"a": 1}), None])
    after = FULL + b"\x01" + image([integer(1), differences(difference(REPLACE, "$.a", 2)), None])
    decoded = decode([gtid(1), packed([query("BEGIN"), TABLE, update(before, after), xid()])])
    assert [row["@2"] for row in decoded.rows["orders"]] == ['{"a": 1}', '{"a": 2}']


BROKEN = {
    "does not fit its document": BEFORE
    + FULL
    + b"\x01"
    + image([integer(1), differences(difference(REMOVE, "$.b")), None]),
    "was NULL": BEFORE + FULL + b"\x02" + image([integer(1), None, differences(difference(REMOVE, "$.b"))]),
    "ends early": BEFORE + FULL + b"\x01" + image([integer(1), None, None])[:-1],
    "has no postimage": BEFORE,
    "is no list of differences": BEFORE + FULL + b"\x01" + image([integer(1), document({"a": 1}), None]),
    "has a value too many": BEFORE + NO_OPTIONS + BEFORE + b"\x00",
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_ones_are_located(name: str) -> None:
    sound = [gtid(1), query("BEGIN"), TABLE, update(BEFORE, NO_OPTIONS + BEFORE), xid()]
    parts = [*sound, gtid(2), query("BEGIN"), TABLE, update(BROKEN[name])]
    decoded = decode([*parts, xid()])
    place = 4 + sum(map(len, binlog(parts)[:-1]))
    assert decoded.error is not None
    assert decoded.error.startswith(f"binlog.000001 at position {place}: in a row of shop.orders, ")
    assert len(decoded.rows["orders"]) == 2


def test_damage_anywhere_is_an_error_or_other_rows() -> None:
    after = image([integer(1), differences(difference(REPLACE, "$.a", 7)), document([1])])
    _, body = update(BEFORE, FULL + b"\x01" + after, BEFORE, NO_OPTIONS + BEFORE)
    for place in range(10, len(body)):
        for damaged in (body[:place], body[:place] + bytes([body[place] ^ 0x41]) + body[place + 1 :]):
            decoded = decode([gtid(1), TABLE, (types.PARTIAL_UPDATE_ROWS_EVENT, damaged), xid()])
            assert decoded.error is None or " at position " in decoded.error


CHANGES = [
    "SET j = JSON_SET(j, '$.a', 2)",
    "SET j = JSON_SET(j, '$.b[1]', 'x', '$.b[last]', NULL)",
    "SET j = JSON_REMOVE(j, '$.b[0]')",
    "SET j = JSON_SET(j, '$.\"a key\"', CAST('1.50' AS DECIMAL(5,2)))",
    """SET j = JSON_SET(j, '$."ü.\\\\"q"', JSON_OBJECT('x', 1.5e0))""",
    "SET j = JSON_SET(j, '$.b[7]', TIME'10:11:12.5')",
    "SET j = JSON_REPLACE(j, '$.c.d[0].e', REPEAT('x', 250))",
    "SET j = JSON_SET(j, '$.big', CAST(18446744073709551615 AS JSON)), k = JSON_SET(k, '$[0]', 7)",
    "SET j = JSON_REMOVE(j, '$.a', '$.b[last-1]')",
    "SET n = n + 1",
    "SET k = NULL WHERE id = 2",
    "SET k = '[]' WHERE id = 2",
    "SET j = JSON_SET(j, '$.long', REPEAT('y', 70000)) WHERE id = 3",
    "SET j = JSON_SET(j, '$.long', 1, '$.c', JSON_ARRAY(1, 2, JSON_OBJECT())) WHERE id = 3",
    "SET id = id + 10, j = JSON_SET(j, '$.moved', TRUE)",
]
DOCUMENT = {"a": 1, "b": [1, 2, 3], "c": {"d": [{"e": "v" * 300}]}, "pad": "p" * 500}
SELECT = "SELECT id, n, j, t, k FROM docs ORDER BY id"


@pytest.fixture(params=["mysql-9.7", "mysql-8.0"])
def documents_server(
    request: pytest.FixtureRequest, shared_server: Callable[[str], Server]
) -> Iterator[Server]:
    server = shared_server(request.param)
    (before,) = server.query("SELECT @@GLOBAL.binlog_row_metadata")[0]
    server.execute(
        "DROP DATABASE IF EXISTS documents",
        "CREATE DATABASE documents",
        "USE documents",
        "CREATE TABLE docs (id INT PRIMARY KEY, n INT, j JSON, t VARCHAR(20), k JSON)",
        "SET GLOBAL binlog_row_metadata = FULL",
        "SET SESSION binlog_row_value_options = PARTIAL_JSON",
    )
    yield server
    server.execute(
        f"SET GLOBAL binlog_row_metadata = '{before}'",
        "SET SESSION binlog_row_value_options = '', binlog_row_image = FULL",
        "DROP DATABASE documents",
    )
    if can_compress(server):
        server.execute("SET SESSION binlog_transaction_compression = OFF")


def can_compress(server: Server) -> bool:
    return server.flavor == "mysql-9.7"


def run_changes(server: Server) -> Iterator[list[tuple[Any, ...]]]:
    """Insert and update documents; yields the table after each update."""
    server.execute("DELETE FROM docs")
    server.flush_binlog()
    for number in (1, 2, 3):
        values = (number, number, json.dumps(DOCUMENT), "tail", json.dumps([1, 2, "k" * 100]))
        server.query("INSERT INTO docs VALUES (%s, %s, %s, %s, %s)", *values)
    for change in CHANGES:
        server.execute(f"UPDATE docs {change}")
        yield server.query(SELECT)


def decode_file(path: Path) -> Decoded:
    return decode_all(list(feed(batcher(marker=None), b"".join(events_of(path)), [])))


@pytest.mark.server
@pytest.mark.parametrize("compressed", ["OFF", "ON"])
def test_full_images_are_what_select_gives(documents_server: Server, compressed: str) -> None:
    server = documents_server
    if can_compress(server):
        server.execute(f"SET SESSION binlog_transaction_compression = {compressed}")
    elif compressed == "ON":
        pytest.skip("this server does not compress transactions")
    states = list(run_changes(server))
    path = server.flush_binlog()
    decoded = decode_file(path)
    assert decoded.error is None
    table: dict[int, tuple[Any, ...]] = {}
    changes = iter(decoded.rows["docs"])
    remaining = iter([None, None, None, *states])  # Three transactions that insert.
    kinds = set()
    for placed in decode_events((path.name, position, data) for position, data in read_events(path)):
        for shown in placed.rows or ():
            kinds.add(placed.event.type_name)
            row = next(changes)
            values = tuple(row[name] for name in ("id", "n", "j", "t", "k"))
            assert (values, row["_absent_columns"]) == (tuple(shown["values"].values()), None)
            if shown["change_type"] == "update_preimage":
                assert table.pop(row["id"]) == values
            else:
                table[row["id"]] = values
        if placed.event.type_name == "XID_EVENT":
            state = next(remaining)
            assert state is None or [table[number] for number in sorted(table)] == state
    assert (next(changes, None), next(remaining, None)) == (None, None)
    assert kinds == {"WRITE_ROWS_EVENT", "PARTIAL_UPDATE_ROWS_EVENT"}


@pytest.mark.server
def test_minimal_images_list_the_differences(documents_server: Server) -> None:
    server = documents_server
    server.execute("SET SESSION binlog_row_image = MINIMAL")
    list(run_changes(server))
    rows = [row for row in decode_file(server.flush_binlog()).rows["docs"] if row["_change_type"] != "insert"]
    first, listed = rows[0], rows[1]
    assert (first["id"], first["_absent_columns"]) == (1, ["n", "j", "t", "k"])
    assert json.loads(listed["j"]) == [{"op": "replace", "path": "$.a", "value": 2}]
    assert listed["_absent_columns"] == ["id", "n", "j", "t", "k"]
    operations = set()
    for row in rows:
        for column in ("j", "k"):
            if row[column] is not None and column in row["_absent_columns"]:
                operations |= {diff["op"] for diff in json.loads(row[column])}
    assert operations == {"replace", "insert", "remove"}
