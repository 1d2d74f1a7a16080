"""Compressed transactions that no decoder expands: the network process does, and cuts them like plain ones.

Most of these say that they are large, and are not. Their rows are compared with those of the same stream in
which they say that they are small enough for a decoder.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, repeat

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.binlog import event_types as types
from engine.binlog.events.payload import LARGEST_WHOLE
from engine.binlog.table_definition import ColumnDefinition, pack
from engine.binlog.table_map import TableMap
from engine.config.decode_options import DecodeOptions
from engine.config.table_filter import TableFilter
from engine.errors import EngineError
from engine.net.batching.batcher import Batcher
from engine.net.batching.outgoing_batch import OutgoingBatch
from tests.support import made_events as made
from tests.support.batches import Decoded, decode_all, feed, packets_of
from tests.support.binlog_builder import MYSQL, Part, binlog, make_event
from tests.support.skipped_events import BEGIN, EVERYTHING, FILE, TABLE, details, insert, skipping

LARGE = LARGEST_WHOLE + 1
OTHER = made.table_map(8, [made.SIGNED_INT], table="other")
OTHER_ROW = made.rows(types.WRITE_ROWS_EVENT, 8, 1, [made.image([made.integer(-1)])])
EMPTY_TABLE = made.table_map(9, [made.SIGNED_INT], table="empty")


def transactions(claims: int) -> list[Part]:
    """Compressed ones of many rows, of several tables, of a statement, by XA; between plain ones."""
    many = [event for first in range(100, 160, 2) for event in (TABLE, insert(first, first + 1))]
    inside = [
        [BEGIN, *many, made.xid()],
        [BEGIN, OTHER, OTHER_ROW, EMPTY_TABLE, TABLE, insert(2), made.query("COMMIT")],
        [BEGIN, made.query("INSERT INTO orders VALUES (1)"), TABLE, insert(3), made.xid()],
        [made.query("XA START 'x'"), TABLE, insert(4), made.query("XA END 'x'"), made.xa_prepare()],
    ]
    parts: list[Part] = [made.gtid(1), BEGIN, TABLE, insert(1), made.xid()]
    for number, events in enumerate(inside):
        parts += [made.gtid(2 * number + 2), made.payload(events, claims=claims)]
        parts += [made.gtid(2 * number + 3), BEGIN, TABLE, insert(1000 + number), made.xid()]
    return parts


def plain(parts: Sequence[Part]) -> bytes:
    """Events as they are inside a compressed transaction."""
    return b"".join(make_event(code, body, 0, checksum=False) for code, body in parts)


def batches_of(
    events: Sequence[bytes],
    *,
    marker: int | None = 1,
    batch_bytes: int = 1 << 16,
    chunks: Sequence[int] = (),
    options: DecodeOptions = EVERYTHING,
    opens_compressed: bool = False,
) -> list[OutgoingBatch]:
    names = pack([ColumnDefinition("id", "int")])

    def describe(table_map: TableMap) -> bytes | None:
        return names if table_map.types == (made.SIGNED_INT,) else None

    reader = Batcher(
        describe,
        file=FILE,
        checksum_algorithm=1,
        marker=marker,
        gtid_set="",
        batch_bytes=batch_bytes,
        decode=options,
        opens_compressed=opens_compressed,
    )
    begun = [] if marker else list(reader.begin_file(FILE))
    return [
        *begun,
        *feed(reader, packets_of(events) if marker else b"".join(events), chain(chunks, repeat(997))),
    ]


def facts(decoded: Decoded) -> tuple[object, ...]:
    """All rows, without the place of other rows; transactions, GTIDs; where a run resumes."""
    assert decoded.error is None
    results = decoded.results
    ranges = [each for result in results for each in result.gtids]
    gtids = sorted(number for each in ranges for number in range(each.first, each.last + 1))
    return decoded.rows, sum(result.transactions for result in results), gtids, results[-1].status.resume


@settings(max_examples=25, deadline=None)
@given(
    marker=st.sampled_from([1, None]),
    batch_bytes=st.integers(300, 5_000),
    chunks=st.lists(st.integers(1, 2_000), max_size=20),
    checksum=st.booleans(),
    opens_compressed=st.booleans(),
    excluded=st.sampled_from([(), ("shop.other",), ("shop.orders",)]),
    bookkeeping=st.booleans(),
)
def test_they_have_the_rows_that_decoders_expand(
    marker: int | None,
    batch_bytes: int,
    chunks: list[int],
    checksum: bool,
    opens_compressed: bool,
    excluded: tuple[str, ...],
    bookkeeping: bool,
) -> None:
    options = DecodeOptions(tables=TableFilter(excluded=excluded), bookkeeping_events=bookkeeping)
    large = batches_of(
        binlog(transactions(LARGE), MYSQL, checksum=checksum),
        marker=marker,
        batch_bytes=batch_bytes,
        chunks=chunks,
        options=options,
        opens_compressed=opens_compressed,
    )
    # Numbers of as many bytes, so that positions are the same.
    small = binlog(transactions(LARGEST_WHOLE), MYSQL, checksum=checksum)
    whole = batches_of(small, options=options, opens_compressed=True)
    assert types.TRANSACTION_PAYLOAD_EVENT not in codes(large)
    assert types.TRANSACTION_PAYLOAD_EVENT in codes(whole)
    assert facts(decode_all(large, options)) == facts(decode_all(whole, options))
    assert [batch.header.sequence for batch in large] == list(range(len(large)))


def codes(batches: Sequence[OutgoingBatch]) -> set[int]:
    return {int(code) & 0xFF for batch in batches for code in batch.index[batch.header.context_events :, 1]}


def test_a_run_resumes_before_or_after_the_whole_transaction() -> None:
    events = binlog(transactions(LARGE))
    ends = {4}
    at = 4
    for event in events:
        at += len(event)
        if event[4] in (types.TRANSACTION_PAYLOAD_EVENT, types.XID_EVENT):
            ends.add(at)
    batches = batches_of(events, batch_bytes=300)
    cut = [batch.header.status for batch in batches if not batch.header.status.ends_transaction]
    assert cut, "the transactions are larger than a batch"
    resumed = {
        status.resume.position for batch in batches if (status := batch.header.status).ends_transaction
    }
    assert resumed <= ends | {4 + len(events[0])}


@pytest.mark.parametrize("marker", [1, None])
def test_one_that_is_large_is_cut_into_batches_of_the_usual_size(marker: int | None) -> None:
    row = made.table_map(7, [made.LONG_VARCHAR])
    images = [made.image([made.varchar(bytes([number]) * 1000, 2)]) for number in range(8)]
    rows = made.rows(types.WRITE_ROWS_EVENT, 7, 1, images)
    count = LARGEST_WHOLE // 8000
    parts = [made.gtid(1), made.payload([BEGIN, row, *[rows] * (count + 50), made.xid()])]
    batches = batches_of(binlog(parts), marker=marker, batch_bytes=1 << 20, chunks=[1 << 20])
    assert max(batch.data.nbytes for batch in batches) < (1 << 20) + 100_000
    results = decode_all(batches).results
    assert sum(table.rows for result in results for table in result.tables) == 8 * (count + 50)
    assert sum(result.transactions for result in results) == 1


def test_an_event_of_several_packets() -> None:
    noise = bytes(range(256)) * 70_000
    big = made.rows(types.WRITE_ROWS_EVENT, 7, 1, [made.image([made.varchar(noise, 4)])])
    table = (types.TABLE_MAP_EVENT, made.table_map(7, [made.BLOB])[1][:-3] + b"\x01\x04\xff")
    after = [made.gtid(2), BEGIN, TABLE, insert(5), made.xid()]
    parts = [made.gtid(1), made.payload([BEGIN, table, big, made.xid()], compress=False), *after]
    batches = batches_of(binlog(parts), chunks=[1 << 20] * 40)
    decoded = decode_all(batches)
    assert decoded.error is None
    assert [row.get("@1", row.get("id")) for row in decoded.rows["orders"]] == [noise, 5]


BROKEN = {
    "ends inside an event": (
        made.payload_of(plain([BEGIN, TABLE, insert(2), made.xid()])[:-5], claims=LARGE),
        "in the middle of an event",
    ),
    "cannot be expanded": (
        (types.TRANSACTION_PAYLOAD_EVENT, made.payload([BEGIN, made.xid()], claims=LARGE)[1][:-8] + bytes(8)),
        "cannot be expanded",
    ),
    "goes on after its end": (
        made.payload([BEGIN, TABLE, insert(2), made.xid(), insert(3), made.xid()], claims=LARGE),
        "after its end",
    ),
    "contains another one": (
        made.payload(
            [BEGIN, made.payload([BEGIN, TABLE, insert(2), made.xid()], claims=LARGE)], claims=LARGE
        ),
        "contains a TRANSACTION_PAYLOAD_EVENT",
    ),
    "contains a GTID": (made.payload([BEGIN, made.gtid(9), made.xid()], claims=LARGE), "contains a GTID"),
    "contains a rotation": (
        made.payload([BEGIN, (types.ROTATE_EVENT, bytes(8) + b"other"), made.xid()], claims=LARGE),
        "contains a ROTATE_EVENT",
    ),
    "ends with less than a header": (
        made.payload_of(plain([BEGIN, made.xid()]) + bytes(9) + b"\x0f\0\0\0" + bytes(2), claims=LARGE),
        "in the middle of an event",
    ),
    "has no end": (made.payload([BEGIN, TABLE, insert(2)], claims=LARGE), "lacks its end"),
    "is empty": (made.payload([], claims=LARGE), "lacks its end"),
    "has a broken table map": (
        made.payload([BEGIN, (TABLE[0], TABLE[1][:20]), made.xid()], claims=LARGE),
        "left",
    ),
}


@pytest.mark.parametrize("packets", [True, False], ids=["packets", "file"])
@pytest.mark.parametrize("what", BROKEN)
def test_broken_ones_are_located_and_can_be_skipped(what: str, packets: bool) -> None:
    broken, reason = BROKEN[what]
    before = [made.gtid(1), BEGIN, TABLE, insert(1), made.xid()]
    after = [made.gtid(3), BEGIN, TABLE, insert(4), made.xid()]
    events = binlog([*before, made.gtid(2), broken, *after])
    emitted = skipping(events, packets=packets)
    assert emitted.error is None
    assert emitted.numbers == [1, 4]
    (record,) = emitted.records
    assert reason in details(record)["reason"]
    assert details(record)["dropped"] == "transaction"
    assert emitted.gtids == ["1", "2", "3"]
    (skip,) = emitted.skips
    assert skip.position == 4 + sum(map(len, events[:7]))


def test_a_wrong_checksum_is_noticed_before_anything_is_expanded() -> None:
    events = binlog([made.gtid(1), made.payload([BEGIN, TABLE, insert(2), made.xid()], claims=LARGE)])
    events[2] = events[2][:-1] + bytes([events[2][-1] ^ 1])
    with pytest.raises(EngineError, match="checksum"):
        batches_of(events)


def test_one_without_a_gtid_needs_an_end_as_well() -> None:
    events = binlog([made.payload([TABLE], claims=LARGE), made.gtid(1), BEGIN, TABLE, insert(1), made.xid()])
    with pytest.raises(EngineError, match="lacks its end"):
        batches_of(events)


@pytest.mark.parametrize("marker", [1, None])
def test_many_that_were_received_together(marker: int | None) -> None:
    parts: list[Part] = []
    for number in range(1500):
        parts += [
            made.gtid(number + 1),
            made.payload([BEGIN, TABLE, insert(number), made.xid()], claims=LARGE),
        ]
    batches = batches_of(binlog(parts), marker=marker, batch_bytes=1 << 20, chunks=[1 << 20])
    decoded = decode_all(batches)
    assert decoded.error is None
    assert [row["id"] for row in decoded.rows["orders"]] == list(range(1500))


def test_a_stream_that_ends_after_one() -> None:
    events = binlog([made.gtid(1), made.payload([BEGIN, TABLE, insert(1), made.xid()], claims=LARGE)])
    end = b"\5\0\0\0\xfe\0\0\2\0"
    reader = Batcher(lambda table_map: None, file=FILE, checksum_algorithm=1)
    batches = list(feed(reader, packets_of(events) + end + bytes(200_000), [1 << 20]))
    assert reader.ended
    assert [row["@1"] for row in decode_all(batches).rows["orders"]] == [1]


def test_one_that_only_says_how_many_bytes_it_has() -> None:
    """It is not compressed, and so need not say what it expands to."""
    content = plain([BEGIN, TABLE, *[insert(number) for number in range(LARGE // 30)], made.xid()])
    fields = b"\2\3\xfc\xff\0" + b"\1\x09\xfe" + len(content).to_bytes(8, "little") + b"\0"
    parts = [made.gtid(1), (types.TRANSACTION_PAYLOAD_EVENT, fields + content)]
    batches = batches_of(binlog(parts), batch_bytes=1 << 20, chunks=[1 << 22] * 10)
    assert types.TRANSACTION_PAYLOAD_EVENT not in codes(batches)
    assert max(batch.data.nbytes for batch in batches) < 2 << 20


def test_the_process_goes_on_with_other_things_meanwhile() -> None:
    turns: list[int] = []
    rows = [insert(number) for number in range(40_000)]
    events = binlog([made.gtid(1), made.payload([BEGIN, TABLE, *rows, made.xid()], claims=LARGE)])
    excluded = DecodeOptions(tables=TableFilter(excluded=("*.*",)))
    reader = Batcher(
        lambda table_map: None,
        file=FILE,
        checksum_algorithm=1,
        decode=excluded,
        meanwhile=lambda: turns.append(1),
    )
    list(feed(reader, packets_of(events), [1 << 20]))
    assert len(turns) > 5
