"""Statements that changed table definitions, through the decoder: their entries, and what the sink needs."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from engine.binlog.position import BinlogPosition
from engine.config.decode_options import DecodeOptions
from engine.pipeline.messages import StatementFacts
from engine.schema.changes import SchemaChange, TableName
from tests.support.batches import Decoded, decode_all, feed, packets_of
from tests.support.binlog_builder import MARIADB, MYSQL, Part, binlog
from tests.support.made_events import SOURCE, gtid, mariadb_gtid, payload, query, xid
from tests.support.schema_changes import ITEMS, ORDERS, defined
from tests.support.transaction_pictures import batcher

COMMIT_TIME = 1_700_000_123_456_789
EVENT_TIME = 1_700_000_000_000_000
TRUNCATE: list[Part] = [gtid(2, COMMIT_TIME), query("TRUNCATE orders")]
INSERT: list[Part] = [gtid(1, COMMIT_TIME), query("BEGIN"), query("INSERT INTO orders VALUES (1)"), xid()]


def change(position: int, **parts: Any) -> SchemaChange:
    place = BinlogPosition("binlog.000001", position)
    return SchemaChange(
        "statement", place, **({"statement": "TRUNCATE orders", "emptied": (ORDERS,)} | parts)
    )


def decode(
    parts: list[Part],
    *changes: SchemaChange,
    version: str = MYSQL,
    break_at: int | None = None,
    options: DecodeOptions | None = None,
) -> Decoded:
    """Decode them as one batch, with `changes` in its status."""
    events = binlog(parts, version)
    batches = list(feed(batcher(), packets_of(events), []))
    header = batches[0].header
    status = replace(header.status, schema_changes=changes)
    batch = replace(batches[0], header=replace(header, status=status))
    if break_at is not None:
        batch.data[int(batch.index[break_at, 0]) + 19] ^= 1
    return decode_all([batch], options)


def positions(parts: list[Part], version: str = MYSQL) -> list[int]:
    """Where the entries of the events feed are."""
    return [row["_pos"] for row in decode(parts, version=version).rows[""]]


@pytest.mark.parametrize(
    ("parts", "version", "facts"),
    [
        (TRUNCATE, MYSQL, StatementFacts(f"{SOURCE}:2", COMMIT_TIME)),
        ([gtid(2), query("TRUNCATE orders")], MYSQL, StatementFacts(f"{SOURCE}:2", EVENT_TIME)),
        ([query("TRUNCATE orders")], MYSQL, StatementFacts(None, EVENT_TIME)),
        ([mariadb_gtid(7, flags=1), query("TRUNCATE orders")], MARIADB, StatementFacts("0-5-7", EVENT_TIME)),
    ],
)
def test_the_facts_are_those_of_the_events_entry(
    parts: list[tuple[int, bytes]], version: str, facts: StatementFacts
) -> None:
    (position,) = positions(parts, version)
    decoded = decode(parts, change(position), version=version)
    assert decoded.results[0].statement == facts
    (entry,) = decoded.rows[""]
    assert (entry["_gtid"], entry["_commit_timestamp"].timestamp()) == (
        facts.gtid,
        pytest.approx(facts.commit_timestamp / 1_000_000),
    )


def test_only_the_last_event_closes_a_batch() -> None:
    parts = [*TRUNCATE, *INSERT]
    first, *_ = positions(parts)
    assert decode(parts, change(first)).results[0].statement is None
    parts = [*INSERT, *TRUNCATE]
    *_, last = positions(parts)
    assert decode(parts, change(last)).results[0].statement is not None
    assert decode(parts).results[0].statement is None
    assert decode(parts, replace(change(last), source="server")).results[0].statement is None


@pytest.mark.parametrize("bookkeeping", [False, True])
def test_a_statement_inside_of_a_compressed_transaction(bookkeeping: bool) -> None:
    """CREATE TABLE … SELECT: its events have the transaction's position, and rows follow it."""
    text = "CREATE TABLE orders (id INT) START TRANSACTION"
    parts = [gtid(2), payload([query("BEGIN"), query(text), xid()])]
    options = DecodeOptions(bookkeeping_events=bookkeeping)
    (position,) = {row["_pos"] for row in decode(parts).rows[""]}
    created = change(position, statement=text, emptied=(), tables=(defined(ORDERS, 1, "id"),))
    decoded = decode(parts, created, options=options)
    assert decoded.results[0].statement is None
    entries = [json.loads(row["data"]) for row in decoded.rows[""]]
    assert ["tables" in entry for entry in entries] == [entry.get("statement") == text for entry in entries]
    assert len(entries) == (4 if bookkeeping else 1)


def test_the_entry_has_the_tables_that_the_statement_concerns() -> None:
    parts = [*INSERT, *TRUNCATE]
    before, position = positions(parts)
    whole = TableName("old", "")
    concerned = change(
        position,
        tables=(defined(ITEMS, 3, "id"), defined(ORDERS, 2)),
        emptied=(ORDERS, whole),
        rewritten=(TableName("shop", "more"),),
    )
    entries = decode(parts, concerned).rows[""]
    assert [row["_pos"] for row in entries] == [before, position]
    assert "tables" not in json.loads(entries[0]["data"])
    data = json.loads(entries[1]["data"])
    assert data["tables"] == [
        {"database": "shop", "table": "items", "version": 3},
        {"database": "shop", "table": "orders", "version": 2},
        {"database": "old", "table": ""},
        {"database": "shop", "table": "more"},
    ]
    assert data["statement"] == "TRUNCATE orders"
    (entry,) = decode(TRUNCATE, change(positions(TRUNCATE)[0], emptied=())).rows[""]
    assert "tables" not in json.loads(entry["data"])


def test_changes_after_a_broken_event_are_left_out() -> None:
    parts = [*TRUNCATE, *INSERT, gtid(3), query("DROP TABLE items")]
    first, _, last = positions(parts)
    changes = change(first), change(last, statement="DROP TABLE items", emptied=(ITEMS,))
    result = decode(parts, *changes, break_at=4).results[0]
    assert result.status.failure is not None
    assert result.status.schema_changes == changes[:1]
    assert result.statement is not None
