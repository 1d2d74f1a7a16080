"""The server is asked about tables before the stream comes to them: only the number of questions changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from engine.binlog import event_types as types
from engine.binlog.table_definition import ColumnDefinition, pack, table_key
from engine.binlog.table_map import TableMap
from engine.config.decode_options import DecodeOptions
from engine.config.table_filter import TableFilter
from engine.errors import BinlogError, EngineError
from engine.net.batching.batcher import Batcher
from engine.net.batching.outgoing_batch import OutgoingBatch
from tests.support.batches import decode_all, feed, packets_of
from tests.support.binlog_builder import Part, binlog
from tests.support.made_events import SIGNED_INT, gtid, image, integer, query, rows, table_map, xid

SIZES = [250, 700, 1 << 16]


def described(*names: str) -> bytes:
    """INT columns of these names."""
    return pack(ColumnDefinition(name, "int") for name in names)


class Server:
    """Has tables, keeps count of the questions, and answers the next one differently on request.

    Tables that it does not have cannot be named.
    """

    def __init__(self, **answers: list[bytes]) -> None:
        self.answers = answers
        self.asked: list[list[str]] = []

    def describe(self, wanted: TableMap) -> bytes | None:
        self.asked.append([wanted.table])
        if wanted.table not in self.answers:
            raise EngineError(f"the columns of {wanted.table} have no names")
        return self._next(wanted.table)

    def describe_ahead(self, wanted: Mapping[int, TableMap]) -> dict[int, bytes | None]:
        self.asked.append([each.table for each in wanted.values()])
        return {key: self._next(each.table) for key, each in wanted.items() if each.table in self.answers}

    def _next(self, table: str) -> bytes:
        answers = self.answers[table]
        return answers.pop(0) if len(answers) > 1 else answers[0]

    def batches(self, parts: list[Part], **options: Any) -> list[OutgoingBatch]:
        batcher = Batcher(
            self.describe, file="f", checksum_algorithm=1, describe_ahead=self.describe_ahead, **options
        )
        return list(feed(batcher, packets_of(binlog(parts)), []))


def transaction(number: int, table: str, table_id: int = 7) -> list[Part]:
    written = rows(types.WRITE_ROWS_EVENT, table_id, 1, [image([integer(number)])])
    return [gtid(number), query("BEGIN"), table_map(table_id, [SIGNED_INT], table=table), written, xid()]


def renaming(number: int, table: str) -> list[Part]:
    return [gtid(number), query(f"ALTER TABLE {table} RENAME COLUMN x TO z")]


def values_of(batches: list[OutgoingBatch]) -> dict[str, list[dict[str, Any]]]:
    decoded = decode_all(batches)
    assert decoded.error is None
    return {
        table: [{name: value for name, value in row.items() if not name.startswith("_")} for row in found]
        for table, found in decoded.rows.items()
        if table
    }


def test_one_question_is_enough() -> None:
    parts = [part for number, table in enumerate("abcabcd", 1) for part in transaction(number, table)]
    server = Server(a=[described("x")], b=[described("y")], c=[described("x")], d=[described("z")])
    assert values_of(server.batches(parts)) == {
        "a": [{"x": 1}, {"x": 4}],
        "b": [{"y": 2}, {"y": 5}],
        "c": [{"x": 3}, {"x": 6}],
        "d": [{"z": 7}],
    }
    assert server.asked == [["a", "b", "c", "d"]]


def test_a_batch_describes_the_tables_that_it_uses() -> None:
    tables = [f"t{number}" for number in range(1, 60)]
    parts = [part for number, table in enumerate(tables, 1) for part in transaction(number, table)]
    server = Server(**{table: [described("x")] for table in tables})
    batches = server.batches(parts, batch_bytes=2000)
    assert len(batches) > 5
    for batch in batches:
        used = {
            table_key("shop", table)
            for table in tables
            if f"\x04shop\0{chr(len(table))}{table}\0".encode() in bytes(batch.data)
        }
        assert used <= batch.header.packed_columns.keys()
        assert len(batch.header.packed_columns) < len(tables) / 2
    assert sum(map(len, server.asked)) == len(tables)


@pytest.mark.parametrize("batch_bytes", SIZES)
def test_not_beyond_a_statement_that_may_alter_a_table(batch_bytes: int) -> None:
    parts = [*transaction(1, "a"), *renaming(2, "b"), *transaction(3, "b"), *transaction(4, "a")]
    server = Server(a=[described("x")], b=[described("z")])
    assert values_of(server.batches(parts, batch_bytes=batch_bytes)) == {
        "a": [{"x": 1}, {"x": 4}],
        "b": [{"z": 3}],
    }
    assert server.asked[0] == ["a"]
    assert server.asked[1][0] == "b"


@pytest.mark.parametrize("batch_bytes", SIZES)
def test_a_table_that_a_batch_has_otherwise(batch_bytes: int) -> None:
    """The answer cannot be used while the batch has rows with the other columns; it is asked for again."""
    parts = [
        *(*transaction(1, "a"), *transaction(2, "b"), *renaming(3, "b")),
        *(*transaction(4, "a"), *transaction(5, "b"), *transaction(6, "a")),
    ]
    server = Server(a=[described("x")], b=[described("x"), described("z")])
    found = values_of(server.batches(parts, batch_bytes=batch_bytes))
    assert found == {"a": [{"x": 1}, {"x": 4}, {"x": 6}], "b": [{"x": 2}, {"z": 5}]}


def test_a_definition_that_is_not_in_use_but_known() -> None:
    """Two definitions of one name without a statement between them, as when it was not logged."""
    wider = [
        *(gtid(3), query("BEGIN"), table_map(8, [SIGNED_INT, SIGNED_INT], table="b")),
        *(rows(types.WRITE_ROWS_EVENT, 8, 2, [image([integer(3), integer(4)])]), xid()),
    ]
    parts = [*transaction(1, "a"), *transaction(2, "b"), *wider]
    server = Server(a=[described("x")], b=[described("x"), described("x", "y")])
    assert values_of(server.batches(parts))["b"] == [{"x": 2}, {"x": 3, "y": 4}]


def test_the_server_is_not_asked_about_unwanted_tables() -> None:
    parts = [part for number, table in enumerate("abc", 1) for part in transaction(number, table, number)]
    server = Server(a=[described("x")], c=[described("x")])
    batches = server.batches(parts, decode=DecodeOptions(tables=TableFilter(("shop.a", "shop.c"))))
    assert values_of(batches) == {"a": [{"x": 1}], "c": [{"x": 3}]}
    assert server.asked == [["a", "c"]]


def test_a_table_that_cannot_be_named_ends_the_stream_where_it_comes() -> None:
    parts = [part for number, table in enumerate("abc", 1) for part in transaction(number, table)]
    server = Server(a=[described("x")], b=[described("x")])
    batcher = Batcher(server.describe, file="f", checksum_algorithm=1, describe_ahead=server.describe_ahead)
    with pytest.raises(EngineError, match="the columns of c have no names"):
        list(feed(batcher, packets_of(binlog(parts)), []))
    assert values_of(list(batcher.finish())) == {"a": [{"x": 1}], "b": [{"x": 2}]}


@pytest.mark.parametrize("place", [20, 40, -1])
def test_damage_ends_the_stream_where_it_is(place: int) -> None:
    """Of a table map that was looked at ahead of time: in its id, in its names, in its checksum."""
    events = binlog([part for number, table in enumerate("abc", 1) for part in transaction(number, table)])
    damaged = bytearray(events[8])
    damaged[place] ^= 0x80
    server = Server(a=[described("x")], b=[described("x")], c=[described("x")])
    batcher = Batcher(server.describe, file="f", checksum_algorithm=1, describe_ahead=server.describe_ahead)
    with pytest.raises(BinlogError) as raised:
        list(feed(batcher, packets_of([*events[:8], bytes(damaged), *events[9:]]), []))
    assert events[8][4] == types.TABLE_MAP_EVENT
    assert raised.value.position == 4 + sum(map(len, events[:8]))
    assert values_of(list(batcher.finish())) == {"a": [{"x": 1}]}


def test_an_event_of_several_packets_is_joined_only_once() -> None:
    """Its parts are joined in place, which must not happen ahead of time."""
    large = types.ROWS_QUERY_LOG_EVENT, b"\xff" + bytes(range(256)) * (1 << 17)
    parts = [*transaction(1, "a"), gtid(2), query("BEGIN"), large, *transaction(2, "b")[2:]]
    events = binlog(parts)
    server = Server(a=[described("x")], b=[described("x")])
    (batch, _) = server.batches(parts, batch_bytes=48 << 20)
    sizes = [
        int.from_bytes(batch.data[start + 9 : start + 13].tobytes(), "little") for start in batch.index[:, 0]
    ]
    found = [
        batch.data[start : start + size].tobytes()
        for start, size in zip(batch.index[:, 0], sizes, strict=True)
    ]
    assert found == events
    assert server.asked == [["a"], ["b"]]
