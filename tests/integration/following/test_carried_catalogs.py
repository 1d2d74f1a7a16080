"""What the server says of its tables travels with the rows that it is true for, however batches are cut."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.binlog import event_types as types
from engine.binlog.table_definition import ColumnDefinition, pack, table_key
from engine.binlog.table_map import TableMap
from engine.config.decode_options import DecodeOptions
from engine.net.batching import table_book
from engine.net.batching.batcher import Batcher
from engine.output.reader import Changes
from tests.servers import Server as RealServer
from tests.support.batches import decode_all, feed, packets_of
from tests.support.binlog_builder import Part, binlog
from tests.support.engine_run import drain, end_of_binlog
from tests.support.made_events import SIGNED_INT, gtid, image, integer, payload, query, rows, table_map, xid

SIZES = [250, 400, 700, 1 << 16]


def described(*names: str) -> bytes:
    """INT columns of these names."""
    return pack(ColumnDefinition(name, "int") for name in names)


class Server:
    """In place of a server whose tables change while we read; it is asked as a batcher asks."""

    def __init__(self, answers: list[bytes | None]) -> None:
        self.answers: Iterator[bytes | None] = iter(answers)
        self.asked: list[str] = []

    def __call__(self, description: TableMap) -> bytes | None:
        self.asked.append(description.table)
        return next(self.answers)


def transaction(
    number: int, columns: int, *, table: str = "orders", table_id: int = 7, rows_events: int = 1
) -> list[Part]:
    """Rows whose values are all `number`."""
    values = [image([integer(number)] * columns)]
    events = [rows(types.WRITE_ROWS_EVENT, table_id, columns, values) for _ in range(rows_events)]
    return [
        gtid(number),
        query("BEGIN"),
        table_map(table_id, [SIGNED_INT] * columns, table=table),
        *events,
        xid(),
    ]


def statement(number: int, text: str) -> list[Part]:
    return [gtid(number), query(text)]


def values_of(
    parts: list[Part], server: Server, batch_bytes: int, table: str = "orders"
) -> list[dict[str, Any]]:
    reader = Batcher(server, file="f", checksum_algorithm=1, batch_bytes=batch_bytes, opens_compressed=True)
    decoded = decode_all(list(feed(reader, packets_of(binlog(parts)), [])))
    assert decoded.error is None
    return [
        {name: value for name, value in row.items() if not name.startswith("_")}
        for row in decoded.rows.get(table, [])
    ]


@pytest.mark.parametrize("batch_bytes", SIZES)
def test_a_column_is_added(batch_bytes: int) -> None:
    parts = [*transaction(1, 1), *statement(2, "ALTER TABLE orders ADD b INT"), *transaction(3, 2)]
    found = values_of(parts, Server([described("a"), described("a", "b")]), batch_bytes)
    assert found == [{"a": 1}, {"a": 3, "b": 3}]


@pytest.mark.parametrize("batch_bytes", SIZES)
def test_a_column_is_renamed(batch_bytes: int) -> None:
    """The binlog shows no difference at all."""
    rename = statement(3, "ALTER TABLE orders RENAME COLUMN a TO z")
    parts = [*transaction(1, 1), *transaction(2, 1), *rename, *transaction(4, 1), *transaction(5, 1)]
    server = Server([described("a"), described("z")])
    assert values_of(parts, server, batch_bytes) == [{"a": 1}, {"a": 2}, {"z": 4}, {"z": 5}]
    assert server.asked == ["orders", "orders"]


@pytest.mark.parametrize("batch_bytes", SIZES)
def test_names_are_lost_and_found(batch_bytes: int) -> None:
    """With --unknown-columns number a table whose catalog does not fit has none."""
    parts = [
        *(*transaction(1, 1), *statement(2, "ALTER TABLE orders ADD b INT")),
        *(*transaction(3, 2), *statement(4, "ALTER TABLE orders DROP b")),
        *transaction(5, 1),
    ]
    found = values_of(parts, Server([described("a"), None, described("c")]), batch_bytes)
    assert found == [{"a": 1}, {"@1": 3, "@2": 3}, {"c": 5}]


@pytest.mark.parametrize("batch_bytes", SIZES)
def test_a_transaction_larger_than_a_batch_keeps_its_names(batch_bytes: int) -> None:
    parts = [*transaction(1, 1, rows_events=60), *transaction(2, 1)]
    server = Server([described("a")])
    assert values_of(parts, server, batch_bytes) == [{"a": 1}] * 60 + [{"a": 2}]
    assert server.asked == ["orders"]


@pytest.mark.parametrize("batch_bytes", SIZES)
def test_another_table_is_altered(batch_bytes: int) -> None:
    parts = [
        *transaction(1, 1),
        *transaction(2, 1, table="notes", table_id=8),
        *statement(3, "ALTER TABLE notes RENAME COLUMN n TO m"),
        *transaction(4, 1, table="notes", table_id=9),
        *transaction(5, 1),
    ]
    answers: list[bytes | None] = [described("a"), described("n"), described("m"), described("a")]
    assert values_of(parts, Server(answers), batch_bytes) == [{"a": 1}, {"a": 5}]
    assert values_of(parts, Server(answers), batch_bytes, "notes") == [{"n": 2}, {"m": 4}]


@pytest.mark.parametrize("batch_bytes", SIZES)
def test_more_tables_than_are_remembered(monkeypatch: pytest.MonkeyPatch, batch_bytes: int) -> None:
    monkeypatch.setattr(table_book, "MOST_DESCRIPTIONS", 3)
    parts = [
        part
        for number in range(1, 60)
        for part in transaction(number, 1, table=f"t{number % 10}", table_id=number % 10)
    ]
    server = Server([described("a")] * 60)
    for place in range(10):
        found = values_of(parts, server, batch_bytes, f"t{place}")
        assert found == [{"a": number} for number in range(1, 60) if number % 10 == place]
        server = Server([described("a")] * 60)


def test_altered_tables_are_cut_apart_at_a_transaction() -> None:
    parts = [*transaction(1, 1), *statement(2, "ALTER TABLE orders ADD b INT"), *transaction(3, 2)]
    reader = Batcher(Server([described("a"), described("a", "b")]), file="f", checksum_algorithm=1)
    first, second, last = feed(reader, packets_of(binlog(parts)), [])
    assert first.header.status.ends_transaction
    assert first.header.packed_columns == {table_key("shop", "orders"): described("a")}
    assert second.header.packed_columns == {table_key("shop", "orders"): described("a", "b")}
    assert last.header.status.end_of_stream


@pytest.mark.parametrize("batch_bytes", SIZES)
@pytest.mark.parametrize("compress", [True, False])
def test_tables_of_compressed_transactions_are_asked_about(batch_bytes: int, compress: bool) -> None:
    parts = []
    for number in (1, 2):
        begin, *inner = transaction(number, 1)
        parts += [begin, payload(inner, compress)]
    parts += statement(3, "ALTER TABLE orders RENAME COLUMN a TO z")
    begin, *inner = transaction(4, 1)
    parts += [begin, payload(inner, compress), *transaction(5, 1)]
    server = Server([described("a"), described("z")])
    assert values_of(parts, server, batch_bytes) == [{"a": 1}, {"a": 2}, {"z": 4}, {"z": 5}]
    assert server.asked == ["orders", "orders"]


def test_columns_without_names_are_refused_where_names_are_needed() -> None:
    """As when a server's binlog_row_metadata is no longer FULL, as it was before in the file."""
    begin, *inner = transaction(1, 1)
    reader = Batcher(lambda description: None, file="f", checksum_algorithm=1)
    batches = list(feed(reader, packets_of(binlog([begin, payload(inner)])), []))
    assert decode_all(batches).error is None
    error = decode_all(batches, DecodeOptions(names_needed=True)).error
    assert error is not None and "names or character sets of shop.orders's columns are not in" in error


@pytest.mark.server
def test_compressed_transactions_of_a_real_server(mysql97: RealServer, tmp_path: Path) -> None:
    mysql97.execute("DROP DATABASE IF EXISTS packed", "CREATE DATABASE packed", "USE packed")
    mysql97.execute("CREATE TABLE t (id INT PRIMARY KEY, e ENUM('x', 'y'), n INT UNSIGNED)")
    mysql97.execute(
        "SET SESSION binlog_transaction_compression = ON", "INSERT INTO t VALUES (1, 'y', 4294967295)"
    )
    mysql97.execute("SET SESSION binlog_transaction_compression = OFF", "INSERT INTO t VALUES (2, 'x', 0)")
    drain(mysql97, tmp_path / "out", tables="packed.*")
    found = Changes(tmp_path / "out").read("packed", "t").select(["id", "e", "n"]).to_pylist()
    assert found == [{"id": 1, "e": "y", "n": 4294967295}, {"id": 2, "e": "x", "n": 0}]


@pytest.mark.server
def test_names_that_only_some_compressed_transactions_have(mysql97: RealServer, tmp_path: Path) -> None:
    """The server's setting says nothing of what it wrote before."""
    settings = ("MINIMAL", "FULL", "MINIMAL", "FULL")
    mysql97.execute("DROP DATABASE IF EXISTS packed", "CREATE DATABASE packed", "USE packed")
    mysql97.execute(*(f"CREATE TABLE t{number} (id INT PRIMARY KEY)" for number in range(len(settings))))
    start = "{}:{}".format(*end_of_binlog(mysql97))
    before = mysql97.query("SELECT @@GLOBAL.binlog_row_metadata")[0][0]
    mysql97.execute("SET SESSION binlog_transaction_compression = ON")
    try:
        for number, metadata in enumerate(settings):
            mysql97.execute(f"SET GLOBAL binlog_row_metadata = {metadata}")
            mysql97.execute(f"INSERT INTO t{number} VALUES ({number})")
            if number == 1:
                mysql97.flush_binlog()
        drain(mysql97, tmp_path, start=start, tables="packed.*")
    finally:
        mysql97.execute("SET SESSION binlog_transaction_compression = OFF")
        mysql97.execute(f"SET GLOBAL binlog_row_metadata = {before}")
    for number in range(len(settings)):
        assert Changes(tmp_path).read("packed", f"t{number}").column("id").to_pylist() == [number]
