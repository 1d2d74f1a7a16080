"""Skipped corrupt events: exactly their transactions are dropped, and a record of each is emitted.

Hand-made streams go through batcher and decoder as often as a command would start a run: each run ends with a
corrupt event, which the next run skips. The rows are compared with those of the undamaged stream.
"""

from __future__ import annotations

import zlib

import pytest

from engine.binlog import event_types as types
from engine.config.decode_options import DecodeOptions
from engine.config.table_filter import TableFilter
from engine.net.batching.batcher import Batcher
from tests.support.batches import decode_all, packets_of
from tests.support.binlog_builder import MARIADB, MYSQL, Part, binlog, make_event
from tests.support.made_events import (
    SIGNED_INT,
    SOURCE,
    gtid,
    image,
    integer,
    mariadb_gtid,
    payload,
    query,
    rows,
    table_map,
    xid,
)
from tests.support.skipped_events import (
    BEGIN,
    FILE,
    GTIDS,
    MYSQL_EVENTS,
    NEXT_FILE,
    START,
    STREAMS,
    TABLE,
    TOO_MANY_COLUMNS,
    TRUNCATED,
    committed,
    content,
    details,
    flipped,
    insert,
    place_of,
    skipping,
    stream,
    transaction_of,
    without,
)


@pytest.mark.parametrize("packets", [True, False], ids=["packets", "file"])
@pytest.mark.parametrize(
    ("at", "batch_bytes"),
    [(-5, 1 << 16), (-5, 300), (4, 300), (13, 300)],
    ids=["body", "body of a transaction in several batches", "type", "position"],
)
@pytest.mark.parametrize("name", STREAMS)
def test_any_event_with_a_wrong_checksum(name: str, at: int, batch_bytes: int, packets: bool) -> None:
    events = STREAMS[name]
    whole = skipping(events, packets=packets)
    assert whole.error is None and not whole.records
    # Without the type of its last event, the last transaction has no end yet.
    for number in range(1, len(events) - (at == 4)):
        damaged = flipped(events, number, at)
        emitted = skipping(damaged, packets=packets, batch_bytes=batch_bytes, chunk=1000)
        first, after = transaction_of(events, number)
        start, end = place_of(events, first), place_of(events, after)
        assert emitted.error is None, number
        assert [content(row) for row in emitted.rows] == without(whole, start, end), number
        assert emitted.resume == whole.resume
        (record,) = emitted.records
        data = details(record)
        assert data["end"] == end, number
        if at != 13 or not packets:
            assert data["start"] == start, number
        assert "checksum" in data["reason"]
        alone = after - first == 1
        assert data["dropped"] == ("event" if alone else "transaction")
        if at != 13:
            assert record["_pos"] == place_of(events, number)
        if first < number:
            assert data["gtid"] == record["_gtid"] and emitted.gtids == whole.gtids and not emitted.hidden
            continue
        # Its GTID is not certain; MariaDB's set does not need it.
        assert data["gtid"] is record["_gtid"] is None
        assert emitted.hidden == (name == "MySQL" and at == 4 and not alone)
        if name == "MySQL" and at == 13 and not alone:
            assert sorted([*emitted.gtids, *map(str, emitted.doubtful)]) == whole.gtids


@pytest.mark.parametrize("packets", [True, False], ids=["packets", "file"])
@pytest.mark.parametrize("broken", [TRUNCATED, TOO_MANY_COLUMNS], ids=["truncated", "lying"])
@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("checksum", [False, True])
def test_rows_that_do_not_add_up(broken: Part, compressed: bool, packets: bool, checksum: bool) -> None:
    inner = [BEGIN, TABLE, insert(2), broken, insert(3), xid()]
    bad = [payload(inner)] if compressed else inner
    events = binlog(
        [
            *(gtid(1), BEGIN, TABLE, insert(1), xid()),
            *(gtid(2), *bad),
            *(gtid(3), BEGIN, TABLE, insert(4), xid()),
        ],
        MYSQL,
        checksum=checksum,
    )
    emitted = skipping(events, packets=packets)
    assert emitted.error is None
    assert emitted.numbers == [1, 4]
    (record,) = emitted.records
    assert details(record)["gtid"] == f"{SOURCE}:2"
    assert emitted.gtids == ["1", "2", "3"]


@pytest.mark.parametrize("packets", [True, False], ids=["packets", "file"])
def test_a_payload_that_cannot_be_expanded(packets: bool) -> None:
    code, body = payload([BEGIN, TABLE, insert(2), xid()])
    broken = (code, body[:-8] + bytes(8))
    events = binlog([gtid(1), broken, gtid(2), BEGIN, TABLE, insert(4), xid()])
    emitted = skipping(events, packets=packets)
    assert emitted.error is None
    assert emitted.numbers == [4]
    assert "cannot be expanded" in details(emitted.records[0])["reason"]
    assert emitted.gtids == ["1", "2"]


@pytest.mark.parametrize("packets", [True, False], ids=["packets", "file"])
def test_several_corrupt_events(packets: bool) -> None:
    """Two in one transaction, one in another, and one between."""
    events = MYSQL_EVENTS
    maps = [number for number, event in enumerate(events) if event[4] == types.WRITE_ROWS_EVENT]
    compressed = next(n for n, event in enumerate(events) if event[4] == types.TRANSACTION_PAYLOAD_EVENT)
    for number in (1, maps[2], maps[3], compressed):
        events = flipped(events, number)
    emitted = skipping(events, packets=packets)
    assert emitted.error is None
    assert emitted.numbers == [1, 2, 3, 9, 10]
    assert [details(record)["dropped"] for record in emitted.records] == [
        "event",
        "transaction",
        "transaction",
    ]
    assert emitted.gtids == ["1", "2", "3", "4", "5", "6"]


def without_positions(raw: bytes) -> bytes:
    """The event as MariaDB 11 writes it inside of transactions."""
    if raw[4] in GTIDS or raw[4] in (types.FORMAT_DESCRIPTION_EVENT, types.XID_EVENT, types.GTID_LIST_EVENT):
        return raw
    bare = raw[:13] + bytes(4) + raw[17:-4]
    return bare + zlib.crc32(bare).to_bytes(4, "little")


@pytest.mark.parametrize("packets", [True, False], ids=["packets", "file"])
def test_beside_unwanted_tables(packets: bool) -> None:
    """What is left out before a corrupt event does not change its position, even if headers have none."""
    other = table_map(8, [SIGNED_INT], table="other")
    noise = (other, rows(types.WRITE_ROWS_EVENT_V1, 8, 1, [image([integer(0)])] * 20))
    events = [
        without_positions(raw)
        for raw in binlog(
            [
                *(mariadb_gtid(1), TABLE, insert(1, version=1), *noise, xid()),
                *(mariadb_gtid(2), *noise, TABLE, insert(2, version=1), *noise, insert(3, version=1), xid()),
                *(mariadb_gtid(3), *noise, TABLE, insert(4, version=1), xid()),
            ],
            MARIADB,
        )
    ]
    wanted = DecodeOptions(TableFilter(("*.orders",)))
    second = [number for number, raw in enumerate(events) if raw[4] in GTIDS][1]
    inserts = [n for n, raw in enumerate(events) if raw[4] == types.WRITE_ROWS_EVENT_V1 and len(raw) < 100]
    assert len(inserts) == 4
    for number in inserts[1:3]:
        emitted = skipping(flipped(events, number), packets=packets, batch_bytes=400, options=wanted)
        assert emitted.error is None and emitted.numbers == [1, 4]
        (record,) = emitted.records
        assert record["_pos"] == place_of(events, number)
        assert details(record)["start"] == place_of(events, second)


@pytest.mark.parametrize("packets", [True, False], ids=["packets", "file"])
def test_damage_does_not_make_an_event_an_unwanted_one(packets: bool) -> None:
    """A bit of its table id makes it a row of the other table, which no decoder would see."""
    other = table_map(6, [SIGNED_INT], table="other")
    events = binlog([gtid(1), BEGIN, other, TABLE, insert(1), xid(), gtid(2), BEGIN, TABLE, insert(2), xid()])
    number = next(n for n, event in enumerate(events) if event[4] == types.WRITE_ROWS_EVENT)
    damaged = bytearray(events[number])
    damaged[types.HEADER_LENGTH] ^= 7 ^ 6
    emitted = skipping(
        [*events[:number], bytes(damaged), *events[number + 1 :]],
        packets=packets,
        options=DecodeOptions(TableFilter(("*.orders",))),
    )
    assert emitted.error is None and emitted.numbers == [2]
    (record,) = emitted.records
    assert record["_pos"] == place_of(events, number)


def test_a_second_corrupt_event_does_not_end_what_is_dropped() -> None:
    """Its type is that of a transaction end, but its checksum is wrong."""
    rows_events = [n for n, event in enumerate(MYSQL_EVENTS) if event[4] == types.WRITE_ROWS_EVENT]
    second = bytearray(MYSQL_EVENTS[rows_events[3]])
    second[4] = types.XID_EVENT
    events = [*MYSQL_EVENTS]
    events[rows_events[3]] = bytes(second)
    emitted = skipping(flipped(events, rows_events[2]), packets=True)
    assert emitted.error is None and len(emitted.records) == 1
    assert emitted.numbers == [1, 2, 3, 7, 8, 9, 10]


def test_bytes_that_were_only_damaged_on_the_way_are_not_skipped() -> None:
    damaged = flipped(MYSQL_EVENTS, 6)
    _, met = committed(stream([damaged], (), packets=True, batch_bytes=1 << 16, chunk=1 << 20))
    assert met is not None
    batches = stream([MYSQL_EVENTS], [met], packets=True, batch_bytes=1 << 16, chunk=1 << 20)
    emitted, _ = committed(batches)
    assert emitted.error is None and not emitted.records
    assert emitted.numbers == list(range(1, 11))


def test_a_wrong_size_drops_the_rest_of_the_file() -> None:
    """The start of the next event is not known; that of the next file is."""
    following = binlog([gtid(7), BEGIN, TABLE, insert(11), xid()])
    number = [n for n, event in enumerate(MYSQL_EVENTS) if event[4] == types.WRITE_ROWS_EVENT][2]
    for at, value in ((9, 0x02), (9, 0xFF), (11, 0x70), (12, 0xF0)):
        damaged = bytearray(MYSQL_EVENTS[number])
        damaged[at] = value
        events = [*MYSQL_EVENTS[:number], bytes(damaged), *MYSQL_EVENTS[number + 1 :]]
        for chunk in (1 << 20, 50):
            emitted = skipping(events, following, chunk=chunk)
            assert emitted.error is None
            assert emitted.numbers == [1, 2, 3, 11]
            (record,) = emitted.records
            data = details(record)
            assert data["dropped"] == "rest of the file" and emitted.hidden
            assert (data["start"], data["end"]) == (
                place_of(events, transaction_of(events, number)[0]),
                place_of(events, len(events)),
            )
            # From a server it is an error: the rest of what it sends cannot be read.
            assert skipping(events, following, packets=True).error is not None


def test_a_damaged_format_description_drops_its_file() -> None:
    following = flipped(binlog([gtid(7), BEGIN, TABLE, insert(11), xid()]), 0, 40)
    emitted = skipping(MYSQL_EVENTS, following)
    assert emitted.error is None
    assert emitted.numbers == list(range(1, 11))
    assert details(emitted.records[0])["dropped"] == "rest of the file"
    assert emitted.resume == (NEXT_FILE, START + sum(map(len, following)))
    assert skipping(following, packets=True).error is not None


def test_valid_but_unsupported_events_are_not_skipped() -> None:
    old_rows = rows(types.PRE_GA_WRITE_ROWS_EVENT, 7, 1, [image([integer(1)])])
    strange = (types.TRANSACTION_PAYLOAD_EVENT, bytes([2, 1, 9, 1, 1, 1, 0]) + b"x")
    for part in (old_rows, strange):
        events = binlog([gtid(1), BEGIN, TABLE, part, xid()])
        emitted = skipping(events, packets=True)
        assert emitted.error is not None and not emitted.skips, part


def test_a_server_that_has_nothing_more_ends_what_is_dropped() -> None:
    """The corrupt event may have been the transaction's last; its record must not wait for the next one."""
    events = MYSQL_EVENTS[:8]
    assert events[-1][4] == types.XID_EVENT
    damaged = flipped(events, 7)
    emitted = skipping(damaged, packets=True)
    reader = Batcher(
        lambda table_map: None,
        file=FILE,
        checksum_algorithm=1,
        gtid_set="",
        skips=emitted.skips,
        batch_bytes=1 << 16,
    )
    end = place_of(events, 8)
    heartbeat = bytearray(make_event(types.HEARTBEAT_LOG_EVENT, FILE.encode(), 0, checksum=False, flags=0x20))
    heartbeat[13:17] = end.to_bytes(4, "little")
    heartbeat[9:13] = (len(heartbeat) + 4).to_bytes(4, "little")
    content = packets_of([*damaged, bytes(heartbeat) + zlib.crc32(heartbeat).to_bytes(4, "little")])
    reader.space()[: len(content)] = content
    batches = list(reader.received(len(content)))
    assert reader.idle
    batches += reader.caught_up(1)
    waiting, _ = committed(batches)
    assert waiting.resume == (FILE, end)
    assert [details(record)["end"] for record in waiting.records] == [end]
    assert waiting.gtids == ["1"] and not waiting.numbers


def test_statements_without_a_gtid_event() -> None:
    """Before MySQL 5.7: a BEGIN ends what is dropped, other statements may belong to it."""
    begin_and_rows = (BEGIN, TABLE, insert(1, version=1), xid())
    events = binlog(
        [query("CREATE TABLE a (b int)"), *begin_and_rows, query("DROP TABLE a")], "5.5.62", checksum=False
    )
    broken = bytearray(events[1])
    broken[19 + 11] = 0xFF
    emitted = skipping([events[0], bytes(broken), *events[2:]], packets=True)
    assert emitted.error is None and emitted.numbers == [1]
    assert details(emitted.records[0])["dropped"] == "event"
    broken = bytearray(events[2])
    broken[19 + 11] = 0xFF
    emitted = skipping([*events[:2], bytes(broken), *events[3:]], packets=True)
    assert emitted.error is None and emitted.numbers == []
    assert [row["statement"] for row in emitted.rows] == ["CREATE TABLE a (b int)", "DROP TABLE a"]


def test_columns_without_names_are_not_corruption() -> None:
    events = binlog([gtid(1), BEGIN, TABLE, insert(1), xid()])
    batches = stream([events], (), packets=True, batch_bytes=1 << 16, chunk=1 << 20)
    results = decode_all(batches, DecodeOptions(names_needed=True)).results
    failures = [result.status.failure for result in results if result.status.failure is not None]
    assert failures and "names or character sets of" in failures[0].message
    assert failures[0].corruption is None
