"""The receive kernel and the batcher: the same changes are decoded however the stream is cut."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.binlog import event_types as types
from engine.binlog.event_index import TRANSACTION_END
from engine.binlog.position import BinlogPosition
from engine.binlog.samples import sample_binlogs
from engine.binlog.table_definition import table_key
from engine.binlog.table_map import TableMap
from engine.config.decode_options import DecodeOptions
from engine.config.table_filter import TableFilter
from engine.errors import BinlogError, EngineError
from engine.net.batching.batcher import Batcher, ServerErrorPacket
from tests.support import made_events as made
from tests.support.batches import Decoded, decode_all, events_of, feed, packets_of
from tests.support.binlog_builder import (
    MARIADB,
    Part,
    binlog,
    format_description,
    make_event,
    make_events,
    with_checksum,
)

SAMPLES = sample_binlogs()
EVENTS = [events_of(path) for path in SAMPLES]
STREAM = packets_of(EVENTS[0])
FIRST_POSITION = 4
CREATED_AT = types.HEADER_LENGTH + 2 + 50
"""Offset in a format description event."""


def batcher(**options: Any) -> Batcher:
    return Batcher(lambda table_map: None, file=SAMPLES[0].name, checksum_algorithm=1, **options)


@pytest.fixture(scope="module")
def whole() -> Decoded:
    decoded = decode_all(list(feed(batcher(), STREAM, [])))
    assert decoded.error is None
    return decoded


def test_a_stream_gives_the_rows_of_the_sample(whole: Decoded) -> None:
    assert len(whole.rows["customers"]) == 10
    assert len(whole.rows["products"]) == 8
    assert len(whole.rows["orders"]) == 200
    numbers = sorted(row["_seq"] for rows in whole.rows.values() for row in rows)
    assert numbers == list(range(1, len(numbers) + 1))


def test_the_end_of_the_file_leads_to_the_next_one(whole: Decoded) -> None:
    last = whole.results[-2]
    assert last.status.resume == BinlogPosition(SAMPLES[1].name, FIRST_POSITION)
    assert last.status.ends_transaction
    assert whole.results[-1].status.end_of_stream


@settings(max_examples=15)
@given(
    batch_bytes=st.integers(300, 20_000),
    chunks=st.lists(st.integers(1, 5_000), max_size=200),
)
def test_chunks_and_batch_sizes_make_no_difference(
    whole: Decoded, batch_bytes: int, chunks: list[int]
) -> None:
    batches = list(feed(batcher(batch_bytes=batch_bytes), STREAM, chunks))
    decoded = decode_all(batches)
    assert decoded.error is None
    for table, rows in whole.rows.items():
        # Row by row, since a report on all of them would take longer than the test.
        assert (
            next((pair for pair in zip(decoded.rows[table], rows, strict=True) if pair[0] != pair[1]), None)
            is None
        )
    assert [batch.header.sequence for batch in batches] == list(range(len(batches)))
    assert sum(result.transactions for result in decoded.results) == sum(
        result.transactions for result in whole.results
    )


def test_small_buffers_cut_inside_of_transactions() -> None:
    batches = list(feed(batcher(batch_bytes=400), STREAM, []))
    inside = [batch for batch in batches if not batch.header.status.ends_transaction]
    assert inside, "the sample has transactions larger than 400 bytes"
    for batch in batches[:-1]:
        ends = bool(batch.index[-1, 1] & TRANSACTION_END) or batch.index[-1, 1] in (
            types.PREVIOUS_GTIDS_LOG_EVENT,
            types.ROTATE_EVENT,
        )
        assert batch.header.status.ends_transaction == ends


def test_bare_files_give_the_same_as_packets(whole: Decoded) -> None:
    bare = Batcher(lambda table_map: None, marker=None)
    batches = list(bare.begin_file(SAMPLES[0].name))
    batches += feed(bare, b"".join(EVENTS[0]), [])
    assert decode_all(batches).rows == whole.rows


def test_every_batch_of_two_files_names_its_own() -> None:
    two = packets_of([*EVENTS[0], *EVENTS[1]])
    batches = list(feed(batcher(), two, []))
    names = [batch.header.file for batch in batches]
    assert names == sorted(names)
    assert set(names[:-1]) == {path.name for path in SAMPLES}
    decoded = decode_all(batches)
    assert decoded.error is None
    assert {row["_file"] for row in decoded.rows["orders"]} == {path.name for path in SAMPLES}


@settings(max_examples=10)
@given(
    size=st.sampled_from([0xFFFFFF - 20, 0xFFFFFF - 1, 0xFFFFFF, 40_000_000]),
    chunk=st.integers(1 << 20, 1 << 24),
)
def test_events_over_16_megabytes_are_joined(size: int, chunk: int) -> None:
    description = format_description()
    start = FIRST_POSITION + len(description)
    content = bytes(range(256)) * (size // 256)
    # The query's lengths are zero: its text is what follows them.
    large = make_event(types.QUERY_EVENT, bytes(13) + b"\0" + content, start, True)
    after = make_event(types.QUERY_EVENT, bytes(13) + b"\0" + b"DO 1", start + len(large), True)
    stream = packets_of([description, large, after])
    chunks = [chunk] * (len(stream) // chunk + 1)
    batches = list(feed(Batcher(lambda table_map: None, checksum_algorithm=1), stream, chunks))
    found = []
    for batch in batches:
        for offset, kind in batch.index[batch.header.context_events :]:
            if kind & 0xFF == types.QUERY_EVENT:
                length = int.from_bytes(batch.data[offset + 9 : offset + 13].tobytes(), "little")
                found.append(batch.data[offset : offset + length].tobytes())
    assert found == [large, after]


def test_an_error_packet_keeps_what_came_before() -> None:
    payload = b"\xff\xd4\x04#HY000no"
    stream = STREAM + len(payload).to_bytes(3, "little") + b"\x09" + payload
    reader = batcher()
    batches = []
    with pytest.raises(ServerErrorPacket) as refused:
        for batch in feed(reader, stream, []):
            batches.append(batch)
    assert refused.value.payload == payload
    batches += reader.finish(EngineError("the server hung up"))
    decoded = decode_all(batches)
    assert len(decoded.rows["orders"]) == 200
    failure = decoded.results[-1].status.failure
    assert failure is not None and failure.message == "the server hung up"


def test_an_eof_packet_ends_the_stream() -> None:
    reader = batcher()
    batches = list(feed(reader, STREAM + b"\x05\0\0\x09\xfe\0\0\2\0", []))
    assert reader.ended
    assert batches[-1].header.status.end_of_stream
    assert batches[-1].header.status.failure is None


@pytest.mark.parametrize("packet", [b"\x01\0\0\x05\x42", b"\0\0\0\x05\0", b"\x10\0\0\x05\0" + bytes(15)])
def test_bytes_that_are_not_a_packet_are_refused_with_their_position(packet: bytes) -> None:
    reader = batcher()
    with pytest.raises(BinlogError) as refused:
        list(feed(reader, STREAM + packet, []))
    assert refused.value.file == SAMPLES[1].name
    assert refused.value.position == FIRST_POSITION


def test_a_file_that_ends_inside_a_transaction_gives_only_whole_ones(whole: Decoded) -> None:
    events = EVENTS[0]
    xid = max(number for number, raw in enumerate(events) if raw[4] == types.XID_EVENT)
    reader = Batcher(lambda table_map: None, marker=None)
    batches = list(reader.begin_file(SAMPLES[0].name))
    batches += feed(reader, b"".join(events[:xid]), [])
    assert reader.inside_transaction
    assert decode_all(batches).rows["orders"] == whole.rows["orders"][:-1]


def test_a_transaction_that_the_server_never_finished_is_aborted() -> None:
    events = EVENTS[0]
    xid = max(number for number, raw in enumerate(events) if raw[4] == types.XID_EVENT)
    # The server crashed before the XID: the next file begins without it.
    stream = packets_of([*events[:xid], *EVENTS[1]])
    batches = list(feed(batcher(), stream, []))
    aborting = [batch.header for batch in batches if batch.header.status.aborts_transaction]
    assert len(aborting) == 1
    before = batches[aborting[0].sequence - 1].header
    assert not before.status.ends_transaction


@pytest.mark.parametrize("has_prepared", [False, True])
def test_a_start_of_the_server_is_told_if_something_may_be_prepared(has_prepared: bool) -> None:
    """Before anything of the file that begins with it, and not where the file was only rotated."""
    rotated, started = (
        with_checksum(events[0][:CREATED_AT] + created.to_bytes(4, "little") + events[0][CREATED_AT + 4 : -4])
        for events, created in zip(EVENTS, (0, 1_800_000_000), strict=True)
    )
    prepared = [] if has_prepared else make_events([made.xa_prepare()], 4 + len(rotated), True)
    asked: list[tuple[str, int, bool]] = []

    def survivors(file: str, position: int, has_started: bool) -> tuple[str, ...] | None:
        asked.append((file, position, has_started))
        return ("X'78',X'',1",) if has_started else None

    stream = packets_of([rotated, *prepared, EVENTS[0][-1], started, *EVENTS[1][1:]])
    batches = list(feed(batcher(survivors=survivors, has_prepared=has_prepared), stream, []))
    position = 4 + len(EVENTS[1][0])
    files = [SAMPLES[0].name] * has_prepared + [SAMPLES[1].name]
    assert asked == [(file, position, file == SAMPLES[1].name) for file in files]
    (told,) = (batch for batch in batches if batch.header.status.surviving_xids is not None)
    assert told.header.status.surviving_xids == ("X'78',X'',1",)
    assert told.header.status.resume == BinlogPosition(SAMPLES[1].name, position)
    assert told.header.status.ends_transaction and not len(told.index)
    later = batches[told.header.sequence + 1].header
    assert (later.file, later.position) == (SAMPLES[1].name, position)
    assert not asked_without(stream, has_prepared)


def asked_without(stream: bytes, has_prepared: bool) -> bool:
    """Whether any batch says so where the server is not asked."""
    batches = feed(batcher(has_prepared=has_prepared), stream, [])
    return any(batch.header.status.surviving_xids is not None for batch in batches)


def test_table_maps_are_asked_about_once_until_a_definition_changes() -> None:
    asked = []

    def catalog(table_map: TableMap) -> bytes:
        asked.append(f"{table_map.database}.{table_map.table}")
        return b"described"

    reader = Batcher(catalog, file=SAMPLES[0].name, checksum_algorithm=1)
    batches = list(feed(reader, packets_of([*EVENTS[0], *EVENTS[1]]), []))
    # Once each in the first file; then ALTER TABLE makes everything unknown again.
    assert sorted(asked) == sorted(
        ["shop.customers", "shop.products", "shop.orders", "shop.orders", "shop.products", "shop.customers"]
    )
    with_orders = [batch for batch in batches if table_key("shop", "orders") in batch.header.packed_columns]
    assert with_orders


@pytest.mark.parametrize(("tables", "times"), [(3, 1), (100, 6)])
def test_batches_about_many_tables_are_larger(tables: int, times: int) -> None:
    parts: list[Part] = []
    for number in range(2000):
        table = number % tables
        parts += made.gtid(number + 1), made.query("BEGIN")
        parts.append(made.table_map(table, [made.SIGNED_INT], table=f"t{table}"))
        parts.append(made.rows(types.WRITE_ROWS_EVENT, table, 1, [made.image([made.integer(number)])]))
        parts.append(made.xid())
    reader = Batcher(lambda table_map: None, file=SAMPLES[0].name, batch_bytes=20_000)
    batches = list(feed(reader, packets_of(binlog(parts)), [1000]))
    largest = max(batch.data.nbytes for batch in batches)
    assert (times - 0.1) * 20_000 < largest <= times * 20_000
    assert sum(table.rows for result in decode_all(batches).results for table in result.tables) == 2000


@pytest.mark.parametrize("batch_bytes", [1000, 1 << 20])
def test_a_stream_of_thousands_of_tables(batch_bytes: int) -> None:
    parts: list[Part] = []
    for number in range(5000):
        parts += made.gtid(number + 1), made.query("BEGIN")
        parts.append(made.table_map(number, [made.SIGNED_INT], table=f"t{number}"))
        parts.append(made.rows(types.WRITE_ROWS_EVENT, number, 1, [made.image([made.integer(number)])]))
        parts.append(made.xid())
    reader = Batcher(lambda table_map: None, file=SAMPLES[0].name, batch_bytes=batch_bytes)
    decoded = decode_all(list(feed(reader, packets_of(binlog(parts)), [100_000])))
    assert decoded.error is None
    assert {name: [row["@1"] for row in rows] for name, rows in decoded.rows.items() if name} == {
        f"t{number}": [number] for number in range(5000)
    }


@pytest.mark.parametrize("marker", [1, None])
def test_compressed_transactions_are_cut_apart_by_what_they_expand_to(marker: int | None) -> None:
    parts: list[Part] = []
    for number, megabytes in enumerate([16, 16, 16, 16, 1, 16, 15, 16, 16, 1]):
        transaction = made.payload([made.query("BEGIN"), made.xid()], claims=megabytes << 20)
        parts += made.gtid(number + 1), transaction
    events = binlog(parts)
    stream = b"".join(events) if marker is None else packets_of(events)
    batches = list(feed(Batcher(lambda table_map: None, checksum_algorithm=1, marker=marker), stream, [200]))
    kinds = [(batch.index[:, 1] & 0xFF).tolist() for batch in batches]
    assert [found.count(types.TRANSACTION_PAYLOAD_EVENT) for found in kinds] == [4, 5, 1, 0]
    assert all(found[1] == types.GTID_LOG_EVENT for found in kinds[:-1])
    assert all(batch.header.status.ends_transaction for batch in batches)


def field(number: int, value: bytes) -> bytes:
    return made.length_encoded(number) + made.length_encoded(len(value)) + value


LARGE = made.length_encoded(1 << 30)
CLAIMS = {
    "as servers write it": field(3, LARGE),
    "twice": field(3, b"\1") + field(3, LARGE),
    "in a longer form": b"\xfc\x03\x00" + made.length_encoded(len(LARGE)) + LARGE,
    "with its length in a longer form": b"\x03" + bytes([0xFC, len(LARGE), 0]) + LARGE,
}
IMPOSSIBLE_CLAIMS = {
    "more than a terabyte": field(3, made.length_encoded((1 << 40) + 1)),
    "beyond 64 bits with the next one": field(3, b"\xfe" + b"\xff" * 7 + b"\x7f"),
    "negative as a number with a sign": field(3, b"\xfe" + b"\xff" * 8),
}


def transactions_with(claim: bytes) -> bytes:
    """Compressed ones that say how large they are with these bytes."""
    parts: list[Part] = []
    for number in range(1, 5):
        code, body = made.payload([made.query("BEGIN"), made.xid()])
        content = body[body.index(b"\0(\xb5") + 1 :]
        fields = field(2, b"\0") + claim + field(1, made.length_encoded(len(content)))
        parts += made.gtid(number), (code, fields + b"\0" + content)
    return packets_of(binlog(parts))


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)
def test_a_transaction_cannot_hide_what_it_expands_to(claim: bytes) -> None:
    """No decoder expands it, however it says how large it is."""
    stream = transactions_with(claim)
    batches = list(feed(Batcher(lambda table_map: None, checksum_algorithm=1), stream, []))
    codes = [code & 0xFF for batch in batches for code in batch.index[:, 1].tolist()]
    assert codes.count(types.TRANSACTION_PAYLOAD_EVENT) == 0
    assert codes.count(types.XID_EVENT) == 4


@pytest.mark.parametrize("claim", IMPOSSIBLE_CLAIMS.values(), ids=IMPOSSIBLE_CLAIMS)
def test_sizes_that_no_transaction_has_are_refused(claim: bytes) -> None:
    with pytest.raises(BinlogError, match="claims"):
        list(feed(Batcher(lambda table_map: None, checksum_algorithm=1), transactions_with(claim), []))


@pytest.mark.parametrize("change", ["insert", "delete", "update"])
def test_rows_that_lack_columns_are_limited_by_what_they_become(change: str) -> None:
    """A row of 5 bytes has 1000 columns: 1,118 events with 5 rows each are about 64 MB in a decoder."""
    codes = {"insert": "WRITE", "delete": "DELETE", "update": "UPDATE"}
    code = getattr(types, f"{codes[change]}_ROWS_EVENT")
    key = made.bitmap([True] + [False] * 999)
    images = 10 if change == "update" else 5
    event = made.rows(code, 7, 1000, [made.image([made.integer(1)])] * images, present=key, present_after=key)
    table = made.table_map(7, [made.SIGNED_INT] * 1000)
    parts = [made.gtid(1), made.query("BEGIN"), table, *[event] * 4000, made.xid()]
    batches = list(feed(batcher(batch_bytes=1 << 24), packets_of(binlog(parts)), []))
    counts = [int(np.count_nonzero((batch.index[:, 1] & 0xFF) == code)) for batch in batches]
    most = 209 if change == "update" else 1118
    assert counts == [most] * (4000 // most) + [4000 % most, 0]


@pytest.mark.parametrize("columns", [1, 500])
def test_compressed_rows_are_limited_by_what_they_expand_to(columns: int) -> None:
    """Events of 1 MB, or of 16 KB whose 3,200 rows have 500 columns."""
    rows = 200_000 if columns == 1 else 3_200
    key = made.bitmap([True] + [False] * (columns - 1))
    code = types.DELETE_ROWS_COMPRESSED_EVENT_V1
    event = made.rows(code, 7, columns, [made.image([made.integer(1)])] * rows, present=key)
    table = made.table_map(7, [made.SIGNED_INT] * columns)
    parts = [made.mariadb_gtid(1), table, *[event] * 101, made.xid()]
    stream = packets_of(binlog(parts, MARIADB))
    batches = list(feed(batcher(batch_bytes=1 << 24), stream, []))
    counts = [int(np.count_nonzero((batch.index[:, 1] & 0xFF) == code)) for batch in batches]
    most = (64 << 20) // (5 * rows + (12 * columns * rows if columns > 1 else 0))
    assert counts == [most] * (101 // most) + [101 % most, 0]


def test_rows_that_a_filter_leaves_out_do_not_count() -> None:
    key = made.bitmap([True] + [False] * 999)
    event = made.rows(types.DELETE_ROWS_EVENT, 7, 1000, [made.image([made.integer(1)])] * 5, present=key)
    table = made.table_map(7, [made.SIGNED_INT] * 1000)
    parts = [made.gtid(1), made.query("BEGIN"), table, *[event] * 4000, made.xid()]
    others = DecodeOptions(tables=TableFilter(("shop.others",)))
    batches = list(feed(batcher(batch_bytes=1 << 24, decode=others), packets_of(binlog(parts)), []))
    assert [batch.header.status.ends_transaction for batch in batches] == [True, True]


def test_rows_with_all_columns_are_not() -> None:
    event = made.rows(types.WRITE_ROWS_EVENT, 7, 1000, [made.image([None] * 1000)] * 80)
    parts = [
        made.gtid(1),
        made.query("BEGIN"),
        made.table_map(7, [made.SIGNED_INT] * 1000),
        *[event] * 200,
        made.xid(),
    ]
    batches = list(feed(batcher(batch_bytes=1 << 24), packets_of(binlog(parts)), []))
    assert [len(batch.index) > 200 for batch in batches] == [True, False]


def test_more_bytes_left_out_than_the_index_can_say() -> None:
    """Heartbeats skip 6 GB between two transactions."""
    first = [made.gtid(1), made.query("BEGIN"), made.xid()]
    insert = made.rows(types.WRITE_ROWS_EVENT, 7, 1, [made.image([made.integer(1)])])
    second = [made.gtid(2), made.query("BEGIN"), made.table_map(7, [made.SIGNED_INT]), insert, made.xid()]
    stream = binlog(first)
    position = 4 + sum(map(len, stream))
    for _ in range(3):
        position += 0x7FFFFFF0
        size = types.HEADER_LENGTH + 1 + types.CHECKSUM_LENGTH
        stream.append(make_event(types.HEARTBEAT_LOG_EVENT, b"f", position - size, checksum=True))
    events = make_events(second, position, True)
    batches = list(feed(batcher(), packets_of([*stream, *events]), []))
    decoded = decode_all(batches)
    assert decoded.error is None
    assert [row["_pos"] for row in decoded.rows["orders"]] == [position + sum(map(len, events[:3]))]
    assert batches[-1].header.status.resume.position == position + sum(map(len, events))


def test_a_transaction_after_a_gap_that_its_gtid_does_not_show() -> None:
    """A heartbeat skips more bytes than fit a header; then a transaction of several batches begins."""
    table = made.table_map(7, [made.LONG_VARCHAR])
    insert = made.rows(types.WRITE_ROWS_EVENT, 7, 1, [made.image([made.varchar(b"x" * 150, 2)])])
    parts = [made.gtid(1), made.query("BEGIN"), table, *[insert] * 6, made.xid()]
    description, *events = binlog(parts)
    position = 4 + len(description)
    heartbeat = make_event(types.HEARTBEAT_LOG_EVENT, b"f", position + 5000, checksum=True)
    # As in MariaDB 11, headers have no position.
    silent = [retold(raw) for raw in events]
    stream = packets_of([description, heartbeat, *silent])
    batches = list(feed(batcher(batch_bytes=400), stream, []))
    assert len(batches) > 3
    decoded = decode_all(batches)
    assert decoded.error is None
    assert [row["_gtid"] for row in decoded.rows["orders"]] == [f"{made.SOURCE}:1"] * 6
    ahead = 5000 + len(heartbeat)
    first = position + ahead + sum(map(len, events[:3]))
    assert decoded.rows["orders"][0]["_pos"] == first


def retold(raw: bytes) -> bytes:
    """The event with no position in its header, and a true checksum."""
    content = raw[:13] + bytes(4) + raw[17:-4]
    return content + zlib.crc32(content).to_bytes(4, "little")
