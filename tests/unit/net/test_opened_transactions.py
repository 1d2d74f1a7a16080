"""Compressed transactions that the network process opens: for their tables, and for what decoders need."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.binlog import event_types as types
from engine.binlog.events.payload import ENDS_INSIDE, LARGEST_WHOLE
from engine.binlog.position import BinlogPosition
from engine.binlog.table_map import TableMap
from engine.errors import EventError
from engine.net.batching.batcher import Batcher
from engine.net.batching.opened_transaction import OpenedTransaction, open_transaction
from engine.net.batching.outgoing_batch import OutgoingBatch
from engine.net.batching.schema_follower import Definitions, SchemaFollower
from engine.schema.model import SchemaModel
from tests.support import made_events as made
from tests.support.batches import decode_all, feed, packets_of
from tests.support.binlog_builder import PLAIN, Part, binlog, make_event
from tests.support.skipped_events import BEGIN, FILE

COLUMNS = 1000
WIDE = made.table_map(7, [made.SIGNED_INT] * COLUMNS)
FIRST, LAST = (made.bitmap(at == place for at in range(COLUMNS)) for place in (0, COLUMNS - 1))
DELETE, UPDATE, WRITE = types.DELETE_ROWS_EVENT, types.UPDATE_ROWS_EVENT, types.WRITE_ROWS_EVENT


def partial(code: int, *numbers: int) -> Part:
    """Rows of a wide table that have one column, as `binlog_row_image` MINIMAL leaves them."""
    images = [made.image([made.integer(number)]) for number in numbers]
    return made.rows(code, 7, COLUMNS, images, present=FIRST, present_after=LAST)


def opened(parts: Sequence[Part]) -> OpenedTransaction:
    code, body = made.payload(parts)
    return open_transaction(make_event(code, body, 0, checksum=False), PLAIN)


def batches_of(parts: Sequence[Part]) -> list[OutgoingBatch]:
    reader = Batcher(lambda table: None, file=FILE, checksum_algorithm=1, opens_compressed=True)
    return list(feed(reader, packets_of(binlog(parts)), repeat(1 << 20)))


@pytest.mark.parametrize(("code", "rows"), [(DELETE, 1_600), (UPDATE, 640), (WRITE, 1_600)])
def test_rows_that_become_many_times_as_large_are_cut_like_plain_ones(code: int, rows: int) -> None:
    numbers = range(rows)
    events = [partial(code, *numbers[at : at + 80]) for at in range(0, rows, 80)]
    transaction = [BEGIN, WIDE, *events, made.xid()]
    compressed = batches_of([made.gtid(1), made.payload(transaction)])
    codes = {int(code) & 0xFF for batch in compressed for code in batch.index[:, 1]}
    assert types.TRANSACTION_PAYLOAD_EVENT not in codes
    decoded, plain = decode_all(compressed), decode_all(batches_of([made.gtid(1), *transaction]))
    assert decoded.error is None
    columns = ("@1", f"@{COLUMNS}", "_change_type", "_seq", "_gtid")
    found, expected = (
        [[row[name] for name in columns] for row in each.rows["orders"]] for each in (decoded, plain)
    )
    assert len(found) == rows
    assert found == expected


def test_the_same_rows_with_all_columns_go_to_a_decoder_as_they_are() -> None:
    whole = made.rows(DELETE, 7, COLUMNS, [made.image([made.integer(1)] * COLUMNS)] * 200)
    batches = batches_of([made.gtid(1), made.payload([BEGIN, WIDE, *[whole] * 15, made.xid()])])
    codes = [int(code) & 0xFF for batch in batches for code in batch.index[:, 1]]
    assert types.TRANSACTION_PAYLOAD_EVENT in codes
    assert DELETE not in codes


def test_what_is_read_of_one() -> None:
    create = made.query("CREATE TABLE a AS SELECT 1")
    small = [BEGIN, create, WIDE, made.query("SAVEPOINT s"), partial(DELETE, 1, 2), made.xid()]
    facts = opened(small)
    assert [event[4] for event in facts.definitions] == [types.QUERY_EVENT, types.TABLE_MAP_EVENT]
    assert facts.definitions[0].endswith(create[1])
    content = sum(len(make_event(code, body, 0, checksum=False)) for code, body in small)
    assert content + 2 * COLUMNS * 8 < facts.needed < content + 2 * COLUMNS * 20
    assert not facts.has_whole_images


@pytest.mark.parametrize(
    ("rows", "whole"),
    [
        ([], False),
        ([made.rows(WRITE, 7, 1, [made.image([b"1234"])])], False),
        ([made.rows(UPDATE, 7, 1, [made.image([b"1234"])] * 2)], True),
        ([made.rows(UPDATE, 7, 1, [made.image([b"1234"])] * 2), partial(WRITE, 1)], False),
        ([partial(UPDATE, 1, 2)], False),
    ],
    ids=["no rows", "insert", "update", "update and partial insert", "partial update"],
)
def test_whole_images_are_known_from_updates_alone(rows: list[Part], whole: bool) -> None:
    assert opened([BEGIN, *rows, made.xid()]).has_whole_images == whole


def named(table_id: int, table: str) -> Part:
    """A table map that has its column's name."""
    code, body = made.table_map(table_id, [made.SIGNED_INT], table=table)
    return code, body + b"\x04\x03\x02id"


def one_row(code: int, table_id: int, count: int = 1) -> Part:
    images = 2 if code == UPDATE else 1
    return made.rows(code, table_id, 1, [made.image([made.integer(5)])] * (images * count))


@pytest.mark.parametrize(
    ("first", "following", "asked"),
    [
        (UPDATE, [1, 1], ["first"]),
        (WRITE, [1, 1], ["first", "second", "third"]),
        (UPDATE, [1, 15_000], ["first", "third"]),
    ],
    ids=["closed after an update", "open after an insert", "a large one is always opened"],
)
def test_small_ones_stay_closed_where_names_and_images_are_complete(
    first: int, following: list[int], asked: list[str]
) -> None:
    seen: list[str] = []

    def describe(table: TableMap) -> None:
        seen.append(table.table)

    parts = [made.gtid(1), made.payload([BEGIN, named(1, "first"), one_row(first, 1), made.xid()])]
    for number, (table, count) in enumerate(zip(("second", "third"), following, strict=True), 2):
        events = [BEGIN, named(number, table), one_row(WRITE, number, count), made.xid()]
        parts += [made.gtid(number), made.payload(events)]
    reader = Batcher(describe, file=FILE, checksum_algorithm=1, opens_compressed=True)
    batches = list(feed(reader, packets_of(binlog(parts)), repeat(1 << 20)))
    assert seen == asked
    decoded = decode_all(batches)
    assert decoded.error is None
    assert [len(decoded.rows[table]) for table in ("second", "third")] == following


def test_a_statement_that_does_not_fit_into_the_batch_is_executed_once() -> None:
    """CREATE TABLE … SELECT, after transactions that fill the batch with what decoders need."""
    create = "CREATE TABLE copy (id INT)"
    fifteen_megabytes = [one_row(WRITE, 1, 150_000)] * 20
    parts = [made.query("CREATE TABLE t (id INT)")]
    for number in range(1, 5):
        parts += [made.gtid(number), made.payload([BEGIN, named(1, "t"), *fifteen_megabytes, made.xid()])]
    filled = [BEGIN, made.query(create), named(1, "copy"), *fifteen_megabytes, made.xid()]
    parts += [made.gtid(5), made.payload(filled)]
    model = SchemaModel("mysql")
    schema = SchemaFollower(model, "mysql", Definitions(), lambda: BinlogPosition(FILE, 4))
    options: dict[str, Any] = {"file": FILE, "checksum_algorithm": 1, "opens_compressed": True}
    reader = Batcher(schema.describe, schema=schema, **options)
    first, second, _ = feed(reader, packets_of(binlog(parts)), repeat(1 << 20))
    changes = (batch.header.status.schema_changes for batch in (first, second))
    changed = [[(each.name.table, each.version) for each in change.tables] for (change,) in changes]
    assert changed == [[("t", 1)], [("copy", 1)]]


@given(content=st.binary(max_size=400), whole=st.booleans(), query_length=st.integers(0, 60))
def test_any_bytes_are_read_or_refused(content: bytes, whole: bool, query_length: int) -> None:
    """Events of a wrong length, with any content: nothing outside of the transaction is read."""
    parts = [(types.QUERY_EVENT, content[:query_length]), (DELETE, content), (types.TABLE_MAP_EVENT, content)]
    inner = b"".join(make_event(code, body, 0, checksum=False) for code, body in parts)
    code, body = made.payload_of(inner if whole else inner + content[:30])
    event = make_event(code, body, 0, checksum=False)
    if whole:
        assert types.TABLE_MAP_EVENT in {each[4] for each in open_transaction(event, PLAIN).definitions}
    elif content:
        try:
            open_transaction(event, PLAIN)
        except EventError as error:
            assert ENDS_INSIDE in str(error)


def test_one_that_claims_more_than_decoders_get_is_refused() -> None:
    code, body = made.payload([BEGIN, made.xid()], claims=LARGEST_WHOLE + 1)
    with pytest.raises(EventError, match="claims"):
        open_transaction(make_event(code, body, 0, checksum=False), PLAIN)
