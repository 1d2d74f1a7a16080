"""Past corrupt events: whole transactions go, nothing else does, and a record of them comes out.

Streams made by hand go through batcher and decoder as often as a command would start a run: each time one
ends with a corrupt event, the next one is told of it. What comes out is compared with the undamaged stream.
"""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from engine.binlog import event_types as types
from engine.commands.corrupt_events import CorruptEventRereads, CorruptEventSkips
from engine.commands.run_progress import Display
from engine.config.decode_options import DecodeOptions
from engine.config.table_filter import TableFilter
from engine.errors import BinlogError, EngineError
from engine.net.batching.batcher import Batcher
from engine.net.batching.outgoing_batch import OutgoingBatch
from engine.pipeline.messages import Corruption
from engine.pipeline.supervisor import Outcome
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

FILE, NEXT_FILE = "binlog.000001", "binlog.000002"
START = 4
TABLE = table_map(7, [SIGNED_INT])
BEGIN = query("BEGIN")
MOST_RUNS = 12
EVERYTHING = DecodeOptions()


def insert(*numbers: int, version: int = 2) -> Part:
    kind = types.WRITE_ROWS_EVENT if version == 2 else types.WRITE_ROWS_EVENT_V1
    return rows(kind, 7, 1, [image([integer(number)]) for number in numbers])


TRUNCATED = rows(types.WRITE_ROWS_EVENT, 7, 1, [image([integer(99)])[:-2]])
"""A row image that ends in the middle of its cell."""
LYING = rows(types.WRITE_ROWS_EVENT, 7, 200, [image([integer(99)])])
"""A rows event that speaks of more columns than its table has."""


@dataclass
class Came:
    """What came out in the end, as a sink would have committed it."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    records: list[dict[str, Any]] = field(default_factory=list)
    gtids: list[str] = field(default_factory=list)
    hidden: bool = False
    doubtful: list[int] = field(default_factory=list)
    resume: tuple[str, int] = ("", 0)
    error: str | None = None
    skips: tuple[Corruption, ...] = ()

    @property
    def numbers(self) -> list[int]:
        return [row["@1"] for row in self.rows if "@1" in row]


def stream(
    files: Sequence[Sequence[bytes]],
    skips: Sequence[Corruption],
    *,
    packets: bool,
    batch_bytes: int,
    chunk: int,
    options: DecodeOptions = EVERYTHING,
) -> list[OutgoingBatch]:
    """What a network process makes of the files, up to the end or the first thing that it cannot pass."""
    reader = Batcher(
        lambda table_map: None,
        file=FILE,
        checksum_algorithm=1,
        marker=1 if packets else None,
        gtid_set="",
        batch_bytes=batch_bytes,
        skips=skips,
        opens_compressed=True,
        decode=options,
    )
    batches: list[OutgoingBatch] = []
    error: EngineError | None = None
    names = [FILE, NEXT_FILE]
    try:
        for name, following, events in zip(names, [*names[1 : len(files)], None], files, strict=False):
            content = packets_of(events) if packets else b"".join(events)
            if not packets:
                batches += reader.begin_file(name)
            try:
                at = 0
                while at < len(content):
                    space = reader.space()
                    taken = min(chunk, len(space), len(content) - at)
                    space[:taken] = content[at : at + taken]
                    at += taken
                    batches += reader.received(taken, last=at == len(content))
                if reader.missing or reader.inside_transaction:
                    raise BinlogError(name, reader.position, "cut off", corrupt=following is not None)
            except BinlogError as damage:
                if packets:
                    raise
                batches += reader.abandon_file(damage, START + len(content), following)
    except BinlogError as failure:
        error = failure
    return [*batches, *reader.finish(error)]


def committed(
    batches: Sequence[OutgoingBatch], options: DecodeOptions = EVERYTHING
) -> tuple[Came, Corruption | None]:
    """What a sink keeps of the batches; and the corrupt event that ended them."""
    came = Came()
    open_batches: list[tuple[Any, dict[str, list[dict]]]] = []
    for batch in batches:
        decoded = decode_all([batch], options)
        (result,) = decoded.results
        if result.status.aborts_transaction:
            open_batches.clear()
        open_batches.append((result, decoded.rows))
        failure = result.status.failure
        if result.status.ends_transaction and (not failure or result.ordinals or result.transactions):
            for kept, tables in open_batches:
                came.rows += tables.get("orders", [])
                feed = tables.get("", [])
                came.records += [row for row in feed if row["type"] == "CORRUPT_EVENT"]
                came.rows += [row for row in feed if row["type"] != "CORRUPT_EVENT"]
                came.gtids += [
                    f"{number}" for _, first, last, _ in kept.gtids for number in range(first, last + 1)
                ]
                came.hidden |= kept.gtid_set_lost
                came.doubtful += [first for _, first, _, _ in kept.doubtful_gtids]
            came.resume = result.status.resume.file, result.status.resume.position
            open_batches.clear()
        if failure is not None:
            came.error = failure.message
            return came, failure.corruption
    return came, None


def skipping(
    *files: Sequence[bytes],
    packets: bool = False,
    batch_bytes: int = 1 << 16,
    chunk: int = 1 << 20,
    options: DecodeOptions = EVERYTHING,
) -> Came:
    """Run until nothing corrupt ends a run any more."""
    skips: tuple[Corruption, ...] = ()
    while True:
        batches = stream(files, skips, packets=packets, batch_bytes=batch_bytes, chunk=chunk, options=options)
        came, met = committed(batches, options)
        came.rows.sort(key=lambda row: (row["_file"], row["_pos"], row["_seq"]))
        came.skips = skips
        seen = met is not None and any(
            (place.file, place.position) == (met.file, met.position) for place in skips
        )
        if met is None or seen or not met.skippable:
            return came
        skips += (met,)
        assert len(skips) < MOST_RUNS, skips


def place_of(events: Sequence[bytes], number: int) -> int:
    return START + sum(map(len, events[:number]))


def flipped(events: Sequence[bytes], number: int, at: int = -5) -> list[bytes]:
    """The events with a bit of one of them changed."""
    damaged = bytearray(events[number])
    damaged[at] ^= 0x40
    return [*events[:number], bytes(damaged), *events[number + 1 :]]


def told(record: dict[str, Any]) -> dict[str, Any]:
    return json.loads(record["data"])


MYSQL_EVENTS = binlog(
    [
        (types.PREVIOUS_GTIDS_LOG_EVENT, bytes(8)),
        *(gtid(1), BEGIN, TABLE, insert(1, 2), insert(3), xid()),
        *(gtid(2), BEGIN, TABLE, insert(4), TABLE, insert(5), insert(6), xid()),
        *(gtid(3), payload([BEGIN, TABLE, insert(7), insert(8), xid()])),
        *(gtid(4), BEGIN, TABLE, insert(9), query("COMMIT")),
        *(gtid(5), query("CREATE TABLE other (a int)")),
        *(gtid(6), BEGIN, TABLE, insert(10), xid()),
    ],
    MYSQL,
)
MARIADB_EVENTS = binlog(
    [
        (types.GTID_LIST_EVENT, bytes(4)),
        *(mariadb_gtid(1), TABLE, insert(1, 2, version=1), insert(3, version=1), xid()),
        *(mariadb_gtid(2), TABLE, insert(4, version=1), TABLE, insert(5, 6, version=1), query("COMMIT")),
        *(mariadb_gtid(3, flags=1), query("CREATE TABLE other (a int)")),
        *(mariadb_gtid(4), TABLE, insert(7, version=1), xid()),
    ],
    MARIADB,
)
STREAMS = {"MySQL": MYSQL_EVENTS, "MariaDB": MARIADB_EVENTS}
GTIDS = (types.GTID_LOG_EVENT, types.GTID_EVENT)


def transaction_of(events: Sequence[bytes], number: int) -> tuple[int, int]:
    """First event of the transaction that holds event `number`, and the one behind its last."""
    begins = [place for place, event in enumerate(events) if event[4] in GTIDS]
    first = max((place for place in begins if place <= number), default=None)
    if first is None:
        return number, number + 1
    return first, min((place for place in begins if place > number), default=len(events))


def without(came: Came, start: int, end: int) -> list[dict[str, Any]]:
    return [content(row) for row in came.rows if not start <= row["_pos"] < end]


def content(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "_seq"}


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
        came = skipping(damaged, packets=packets, batch_bytes=batch_bytes, chunk=1000)
        first, behind = transaction_of(events, number)
        start, end = place_of(events, first), place_of(events, behind)
        assert came.error is None, number
        assert [content(row) for row in came.rows] == without(whole, start, end), number
        assert came.resume == whole.resume
        (record,) = came.records
        data = told(record)
        assert data["end"] == end, number
        if at != 13 or not packets:
            assert data["start"] == start, number
        assert "checksum" in data["reason"]
        alone = behind - first == 1
        assert data["dropped"] == ("event" if alone else "transaction")
        if at != 13:
            assert record["_pos"] == place_of(events, number)
        if first < number:
            assert data["gtid"] == record["_gtid"] and came.gtids == whole.gtids and not came.hidden
            continue
        # Its GTID is not sure; MariaDB's set does without.
        assert data["gtid"] is record["_gtid"] is None
        assert came.hidden == (name == "MySQL" and at == 4 and not alone)
        if name == "MySQL" and at == 13 and not alone:
            assert sorted([*came.gtids, *map(str, came.doubtful)]) == whole.gtids


@pytest.mark.parametrize("packets", [True, False], ids=["packets", "file"])
@pytest.mark.parametrize("broken", [TRUNCATED, LYING], ids=["truncated", "lying"])
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
    came = skipping(events, packets=packets)
    assert came.error is None
    assert came.numbers == [1, 4]
    (record,) = came.records
    assert told(record)["gtid"] == f"{SOURCE}:2"
    assert came.gtids == ["1", "2", "3"]


@pytest.mark.parametrize("packets", [True, False], ids=["packets", "file"])
def test_a_payload_that_cannot_be_expanded(packets: bool) -> None:
    code, body = payload([BEGIN, TABLE, insert(2), xid()])
    broken = (code, body[:-8] + bytes(8))
    events = binlog([gtid(1), broken, gtid(2), BEGIN, TABLE, insert(4), xid()])
    came = skipping(events, packets=packets)
    assert came.error is None
    assert came.numbers == [4]
    assert "cannot be expanded" in told(came.records[0])["reason"]
    assert came.gtids == ["1", "2"]


@pytest.mark.parametrize("packets", [True, False], ids=["packets", "file"])
def test_several_corrupt_events(packets: bool) -> None:
    """Two in one transaction, one in another, and one between."""
    events = MYSQL_EVENTS
    maps = [number for number, event in enumerate(events) if event[4] == types.WRITE_ROWS_EVENT]
    compressed = next(n for n, event in enumerate(events) if event[4] == types.TRANSACTION_PAYLOAD_EVENT)
    for number in (1, maps[2], maps[3], compressed):
        events = flipped(events, number)
    came = skipping(events, packets=packets)
    assert came.error is None
    assert came.numbers == [1, 2, 3, 9, 10]
    assert [told(record)["dropped"] for record in came.records] == ["event", "transaction", "transaction"]
    assert came.gtids == ["1", "2", "3", "4", "5", "6"]


def without_positions(raw: bytes) -> bytes:
    """The event as MariaDB 11 writes it inside of transactions."""
    if raw[4] in GTIDS or raw[4] in (types.FORMAT_DESCRIPTION_EVENT, types.XID_EVENT, types.GTID_LIST_EVENT):
        return raw
    bare = raw[:13] + bytes(4) + raw[17:-4]
    return bare + zlib.crc32(bare).to_bytes(4, "little")


@pytest.mark.parametrize("packets", [True, False], ids=["packets", "file"])
def test_beside_tables_that_nobody_wants(packets: bool) -> None:
    """What is left out before a corrupt event moves it to no other place, even where headers tell none."""
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
        came = skipping(flipped(events, number), packets=packets, batch_bytes=400, options=wanted)
        assert came.error is None and came.numbers == [1, 4]
        (record,) = came.records
        assert record["_pos"] == place_of(events, number)
        assert told(record)["start"] == place_of(events, second)


@pytest.mark.parametrize("packets", [True, False], ids=["packets", "file"])
def test_damage_does_not_make_an_event_an_unwanted_one(packets: bool) -> None:
    """A bit of its table id makes it a row of the other table, which no decoder would see."""
    other = table_map(6, [SIGNED_INT], table="other")
    events = binlog([gtid(1), BEGIN, other, TABLE, insert(1), xid(), gtid(2), BEGIN, TABLE, insert(2), xid()])
    number = next(n for n, event in enumerate(events) if event[4] == types.WRITE_ROWS_EVENT)
    damaged = bytearray(events[number])
    damaged[types.HEADER_LENGTH] ^= 7 ^ 6
    came = skipping(
        [*events[:number], bytes(damaged), *events[number + 1 :]],
        packets=packets,
        options=DecodeOptions(TableFilter(("*.orders",))),
    )
    assert came.error is None and came.numbers == [2]
    (record,) = came.records
    assert record["_pos"] == place_of(events, number)


def test_a_second_corrupt_event_does_not_end_what_is_dropped() -> None:
    """Its type says that the transaction is over, its checksum that this means nothing."""
    rows_events = [n for n, event in enumerate(MYSQL_EVENTS) if event[4] == types.WRITE_ROWS_EVENT]
    second = bytearray(MYSQL_EVENTS[rows_events[3]])
    second[4] = types.XID_EVENT
    events = [*MYSQL_EVENTS]
    events[rows_events[3]] = bytes(second)
    came = skipping(flipped(events, rows_events[2]), packets=True)
    assert came.error is None and len(came.records) == 1
    assert came.numbers == [1, 2, 3, 7, 8, 9, 10]


def test_bytes_that_were_only_damaged_on_the_way_are_not_skipped() -> None:
    damaged = flipped(MYSQL_EVENTS, 6)
    _, met = committed(stream([damaged], (), packets=True, batch_bytes=1 << 16, chunk=1 << 20))
    assert met is not None
    batches = stream([MYSQL_EVENTS], [met], packets=True, batch_bytes=1 << 16, chunk=1 << 20)
    came, _ = committed(batches)
    assert came.error is None and not came.records
    assert came.numbers == list(range(1, 11))


def test_a_size_that_lies_gives_up_the_rest_of_the_file() -> None:
    """Nobody knows where the next event starts; the next file is sure."""
    following = binlog([gtid(7), BEGIN, TABLE, insert(11), xid()])
    number = [n for n, event in enumerate(MYSQL_EVENTS) if event[4] == types.WRITE_ROWS_EVENT][2]
    for at, value in ((9, 0x02), (9, 0xFF), (11, 0x70), (12, 0xF0)):
        damaged = bytearray(MYSQL_EVENTS[number])
        damaged[at] = value
        events = [*MYSQL_EVENTS[:number], bytes(damaged), *MYSQL_EVENTS[number + 1 :]]
        for chunk in (1 << 20, 50):
            came = skipping(events, following, chunk=chunk)
            assert came.error is None
            assert came.numbers == [1, 2, 3, 11]
            (record,) = came.records
            data = told(record)
            assert data["dropped"] == "rest of the file" and came.hidden
            assert (data["start"], data["end"]) == (
                place_of(events, transaction_of(events, number)[0]),
                place_of(events, len(events)),
            )
            # From a server it is an error: nobody can go on with what it sends.
            assert skipping(events, following, packets=True).error is not None


def test_a_format_description_that_is_damaged_gives_up_its_file() -> None:
    following = flipped(binlog([gtid(7), BEGIN, TABLE, insert(11), xid()]), 0, 40)
    came = skipping(MYSQL_EVENTS, following)
    assert came.error is None
    assert came.numbers == list(range(1, 11))
    assert told(came.records[0])["dropped"] == "rest of the file"
    assert came.resume == (NEXT_FILE, START + sum(map(len, following)))
    assert skipping(following, packets=True).error is not None


def test_what_is_sound_but_cannot_be_read_is_not_skipped() -> None:
    old_rows = rows(types.PRE_GA_WRITE_ROWS_EVENT, 7, 1, [image([integer(1)])])
    strange = (types.TRANSACTION_PAYLOAD_EVENT, bytes([2, 1, 9, 1, 1, 1, 0]) + b"x")
    for part in (old_rows, strange):
        events = binlog([gtid(1), BEGIN, TABLE, part, xid()])
        came = skipping(events, packets=True)
        assert came.error is not None and not came.skips, part


def test_a_server_that_has_nothing_more_ends_what_is_dropped() -> None:
    """The corrupt event may have been the transaction's last; its record must not wait for the next one."""
    events = MYSQL_EVENTS[:8]
    assert events[-1][4] == types.XID_EVENT
    damaged = flipped(events, 7)
    came = skipping(damaged, packets=True)
    reader = Batcher(
        lambda table_map: None,
        file=FILE,
        checksum_algorithm=1,
        gtid_set="",
        skips=came.skips,
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
    assert [told(record)["end"] for record in waiting.records] == [end]
    assert waiting.gtids == ["1"] and not waiting.numbers


def test_statements_that_nothing_announces() -> None:
    """Before MySQL 5.7: a BEGIN ends what is dropped, other statements may belong to it."""
    begin_and_rows = (BEGIN, TABLE, insert(1, version=1), xid())
    events = binlog(
        [query("CREATE TABLE a (b int)"), *begin_and_rows, query("DROP TABLE a")], "5.5.62", checksum=False
    )
    broken = bytearray(events[1])
    broken[19 + 11] = 0xFF
    came = skipping([events[0], bytes(broken), *events[2:]], packets=True)
    assert came.error is None and came.numbers == [1]
    assert told(came.records[0])["dropped"] == "event"
    broken = bytearray(events[2])
    broken[19 + 11] = 0xFF
    came = skipping([*events[:2], bytes(broken), *events[3:]], packets=True)
    assert came.error is None and came.numbers == []
    assert [row["statement"] for row in came.rows] == ["CREATE TABLE a (b int)", "DROP TABLE a"]


def test_columns_without_names_are_no_corruption() -> None:
    events = binlog([gtid(1), BEGIN, TABLE, insert(1), xid()])
    batches = stream([events], (), packets=True, batch_bytes=1 << 16, chunk=1 << 20)
    results = decode_all(batches, DecodeOptions(names_needed=True)).results
    failures = [result.status.failure for result in results if result.status.failure is not None]
    assert failures and "have no names" in failures[0].message
    assert failures[0].corruption is None


def test_a_place_is_skipped_once(capsys: pytest.CaptureFixture[str]) -> None:
    """The same one again would go on for ever; so would one that nobody asked to skip."""
    met = Corruption(FILE, 120, "torn", "abc")
    skips = CorruptEventSkips(True, Display(sys.stderr))
    assert skips.take(Outcome(error=f"{FILE} at position 120: torn", corruption=met))
    assert f"{FILE} at position 120: torn; skipping it" in capsys.readouterr().err
    assert skips.take(Outcome(error="", corruption=Corruption(NEXT_FILE, 120, "torn", "abc")))
    assert not skips.take(Outcome(error="", corruption=met))
    assert not skips.take(Outcome(error="access denied"))
    assert not skips.take(Outcome(stopped=True, corruption=Corruption(FILE, 200, "torn", "")))
    assert [place.position for place in skips.events] == [120, 120]
    assert not CorruptEventSkips(False, Display(sys.stderr)).take(Outcome(error="", corruption=met))


def test_a_place_is_read_again_once() -> None:
    rereads = CorruptEventRereads()
    framing = Corruption(FILE, 200, "the packet is no part of a binlog stream", "", skippable=False)
    for met in (Corruption(FILE, 120, "torn", "abc"), framing, Corruption(NEXT_FILE, 120, "torn", "abc")):
        assert rereads.take(Outcome(error="", corruption=met))
        assert not rereads.take(Outcome(error="", corruption=met))
    assert not rereads.take(Outcome(error="access denied"))
    assert not CorruptEventSkips(True, Display(sys.stderr)).take(Outcome(error="", corruption=framing))


def test_what_several_runs_did_adds_up() -> None:
    first = Outcome(totals={"rows": 5, "commits": 1, "commit": 3}, seconds=1.5)
    second = Outcome(totals={"rows": 2, "skipped_corrupt_events": 1, "commit": 4}, seconds=0.5).add(first)
    assert second.totals == {"rows": 7, "commits": 1, "commit": 4, "skipped_corrupt_events": 1}
    assert second.seconds == 2.0
    assert Outcome(error="refused", retryable=True).add(second).totals == second.totals
