"""Unwanted tables are left out before decoding, and everything else stays the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.binlog import event_types as types
from engine.binlog.event_index import LEFT_OUT
from engine.binlog.event_types import ROWS_EVENTS
from engine.binlog.gtid_set import parse_gtid_set
from engine.binlog.samples import sample_binlogs
from engine.config.decode_options import DecodeOptions
from engine.config.table_filter import TableFilter
from engine.net.archive_server.archive import Archive
from engine.net.archive_server.server import ReplicationSource
from engine.net.batching import table_describer
from engine.net.batching.batcher import Batcher
from engine.net.batching.outgoing_batch import OutgoingBatch
from engine.output.commit_log import CommitLog
from engine.output.reader import Changes
from tests.support.batches import Decoded, decode_all, events_of, feed, packets_of
from tests.support.binlog_builder import MARIADB, MYSQL, Part, binlog
from tests.support.engine_run import run_command
from tests.support.made_events import (
    SIGNED_INT,
    anonymous_gtid,
    gtid,
    image,
    integer,
    mariadb_gtid,
    query,
    rows,
    table_map,
    xid,
)

FILE = "binlog.000001"
WANTED = TableFilter(("shop.*", "other.kept"), ("shop.secret*",))
OPTIONS = DecodeOptions(tables=WANTED)
TABLES = {
    1: ("shop", "orders"),
    2: ("shop", "secret_1"),
    3: ("other", "kept"),
    4: ("other", "gone"),
}
"""Table id → its name; the even ones are unwanted."""


def batches_of(
    events: Sequence[bytes], options: DecodeOptions, chunks: Iterable[int] = (), **settings: Any
) -> list[OutgoingBatch]:
    batcher = Batcher(lambda table_map: None, file=FILE, decode=options, **settings)
    return list(feed(batcher, packets_of(events), chunks))


def merged(decoded: Decoded, flavor: str) -> tuple[object, ...]:
    """What a run comes to, however it was cut into batches."""
    gtid_set = parse_gtid_set("", flavor)
    for result in decoded.results:
        for source, first, last in result.gtids:
            gtid_set.add(source, first, last)
    ends = [result.status.resume for result in decoded.results if result.status.ends_transaction]
    return (
        decoded.rows,
        decoded.error,
        str(gtid_set),
        sum(result.transactions for result in decoded.results),
        ends[-1],
    )


def indexed(batches: Sequence[OutgoingBatch]) -> list[bytes]:
    """The events of all batches, but for context."""
    found = []
    for batch in batches:
        data = np.array(batch.data)
        kept = batch.index[batch.index[:, 1] & LEFT_OUT == 0]
        for start in kept[batch.header.context_events :, 0].tolist():
            size = int.from_bytes(data[start + 9 : start + 13].tobytes(), "little")
            found.append(data[start : start + size].tobytes())
    return found


def kinds(events: Sequence[bytes]) -> set[int]:
    return {event[4] for event in events}


def without_positions(events: Sequence[bytes]) -> list[bytes]:
    """As MariaDB 11 writes what is inside a transaction."""
    inside = (types.TABLE_MAP_EVENT, types.ANNOTATE_ROWS_EVENT, *ROWS_EVENTS)
    return [event[:13] + bytes(4) + event[17:] if event[4] in inside else event for event in events]


changes = st.lists(st.tuples(st.sampled_from(list(TABLES)), st.integers(0, 40)), min_size=1, max_size=5)


@st.composite
def transactions(draw: st.DrawFn, flavor: str) -> list[Part]:
    parts: list[Part] = []
    write = (
        [types.WRITE_ROWS_EVENT_V1, types.WRITE_ROWS_COMPRESSED_EVENT_V1]
        if flavor == "mariadb"
        else [types.WRITE_ROWS_EVENT]
    )
    for number in range(1, draw(st.integers(1, 12)) + 1):
        if flavor == "mariadb":
            parts += [mariadb_gtid(number), (types.ANNOTATE_ROWS_EVENT, b"INSERT")]
        else:
            parts += [draw(st.sampled_from([gtid(number), anonymous_gtid()])), query("BEGIN")]
        for statement in draw(st.lists(changes, min_size=1, max_size=3)):
            # As servers do: first all table maps of a statement, then its rows.
            for table_id in {table_id for table_id, _ in statement}:
                database, table = TABLES[table_id]
                parts.append(table_map(table_id, [SIGNED_INT], database=database, table=table))
            for table_id, count in statement:
                images = [image([integer(value)]) for value in range(count)]
                parts.append(rows(draw(st.sampled_from(write)), table_id, 1, images))
        parts.append(xid())
        if draw(st.integers(0, 3)) == 0:
            ddl = query("ALTER TABLE orders COMMENT ''")
            parts += [mariadb_gtid(100 + number, flags=1) if flavor == "mariadb" else gtid(100 + number), ddl]
    return parts


@settings(max_examples=60)
@given(
    st.data(),
    st.sampled_from(["mysql", "mariadb"]),
    st.booleans(),
    st.integers(200, 4000),
    st.lists(st.integers(1, 900), max_size=60),
)
def test_the_same_comes_out_as_with_a_filter_in_the_decoders_alone(
    data: st.DataObject, flavor: str, positions: bool, batch_bytes: int, chunks: list[int]
) -> None:
    parts = data.draw(transactions(flavor))
    events = binlog(parts, MARIADB if flavor == "mariadb" else MYSQL, checksum=False)
    if not positions:
        events = without_positions(events)
    whole = batches_of(events, DecodeOptions(), chunks, batch_bytes=batch_bytes)
    filtered = batches_of(events, OPTIONS, chunks, batch_bytes=batch_bytes)
    expected, actual = (merged(decode_all(batches, OPTIONS), flavor) for batches in (whole, filtered))
    assert actual == expected
    assert actual[1] is None
    left = indexed(filtered)
    assert not any(b"secret" in event or b"gone" in event for event in left)
    ids = [event[19] for event in left if event[4] in ROWS_EVENTS]
    assert all(table_id % 2 for table_id in ids)
    assert types.ANNOTATE_ROWS_EVENT not in kinds(left)


def test_bookkeeping_keeps_its_events() -> None:
    parts = [
        gtid(1),
        query("BEGIN"),
        (types.ROWS_QUERY_LOG_EVENT, b"\x06INSERT"),
        table_map(2, [SIGNED_INT], table="secret"),
    ]
    events = binlog([*parts, rows(types.WRITE_ROWS_EVENT, 2, 1, [image([integer(1)])]), xid()], MYSQL)
    options = DecodeOptions(tables=WANTED, bookkeeping_events=True)
    filtered, whole = batches_of(events, options), batches_of(events, DecodeOptions())
    assert merged(decode_all(filtered, options), "mysql") == merged(decode_all(whole, options), "mysql")
    assert types.WRITE_ROWS_EVENT not in kinds(indexed(filtered))
    assert {types.ROWS_QUERY_LOG_EVENT, types.TABLE_MAP_EVENT} <= kinds(indexed(filtered))


def test_large_unwanted_rows_do_not_travel() -> None:
    unwanted = rows(types.WRITE_ROWS_EVENT, 2, 1, [image([integer(1)])] * 200_000)
    wanted = rows(types.WRITE_ROWS_EVENT, 1, 1, [image([integer(7)])])
    maps = [table_map(1, [SIGNED_INT]), table_map(2, [SIGNED_INT], table="secret")]
    parts = [gtid(1), query("BEGIN"), *maps, *[unwanted] * 10, wanted, xid()]
    events = binlog(parts, MYSQL)
    filtered = batches_of(events, OPTIONS)
    assert sum(batch.data.nbytes + batch.index.nbytes for batch in filtered) < 3000
    assert sum(map(len, events)) > 10_000_000
    decoded = decode_all(filtered, OPTIONS)
    assert [row["@1"] for row in decoded.rows["orders"]] == [7]
    # Its position, after all that was left out.
    position = 4 + sum(map(len, events[:-2]))
    assert decoded.rows["orders"][0]["_pos"] == position
    # A transaction that fills many buffers goes out as what there is at its beginning and at its end.
    assert len(filtered) <= 4


def test_a_table_id_can_come_to_mean_another_table() -> None:
    def inserted(table: str, value: int) -> list[Part]:
        one = rows(types.WRITE_ROWS_EVENT, 9, 1, [image([integer(value)])])
        return [query("BEGIN"), table_map(9, [SIGNED_INT], table=table), one, xid()]

    parts = [
        part for value, table in enumerate(["orders", "secret", "orders"]) for part in inserted(table, value)
    ]
    decoded = decode_all(batches_of(binlog(parts, MYSQL), OPTIONS), OPTIONS)
    assert [row["@1"] for row in decoded.rows["orders"]] == [0, 2]


@pytest.mark.parametrize("in_one_transaction", [True, False])
def test_more_table_ids_than_there_is_room_for_at_first(in_one_transaction: bool) -> None:
    count = 5000
    parts = []
    for number in range(count):
        name = ("orders", "secret")[number % 2]
        parts += [] if in_one_transaction and number else [query("BEGIN")]
        parts += [
            table_map(number, [SIGNED_INT], table=name),
            rows(types.WRITE_ROWS_EVENT, number, 1, [image([integer(number)])]),
        ]
        parts += [] if in_one_transaction and number + 1 < count else [xid()]
    filtered = batches_of(binlog(parts, MYSQL), OPTIONS)
    decoded = decode_all(filtered, OPTIONS)
    assert [row["@1"] for row in decoded.rows["orders"]] == list(range(0, count, 2))
    assert len([event for event in indexed(filtered) if event[4] == types.WRITE_ROWS_EVENT]) == count // 2


def test_rows_that_no_table_map_announced_are_still_refused() -> None:
    orphan = rows(types.WRITE_ROWS_EVENT, 77, 1, [image([integer(1)])])
    decoded = decode_all(batches_of(binlog([query("BEGIN"), orphan, xid()], MYSQL), OPTIONS), OPTIONS)
    assert decoded.error is not None
    assert "no table map" in decoded.error


@pytest.mark.parametrize("pattern", ["shop.orders", "shop.customers", "nothing.*", "*.*"])
def test_samples_of_a_real_server(pattern: str) -> None:
    options = DecodeOptions(tables=TableFilter((pattern,)))
    events = [event for path in sample_binlogs() for event in events_of(path)]
    filtered = decode_all(batches_of(events, options, checksum_algorithm=1), options)
    expected = decode_all(batches_of(events, DecodeOptions(), checksum_algorithm=1), options)
    assert merged(filtered, "mysql") == merged(expected, "mysql")
    assert set(filtered.rows) <= {pattern.partition(".")[2], ""} or pattern == "*.*"


def test_the_command_leaves_tables_out_and_still_counts_every_transaction(tmp_path: Path) -> None:
    with ReplicationSource(sample_binlogs(), user="repl", password="pass word") as source:
        ended = run_command(
            "run",
            f"--port={source.port}",
            "--user=repl",
            f"--out={tmp_path / 'out'}",
            "--workers=1",
            "--stop-at-end",
            "--tables=shop.*",
            "--exclude-tables=*.orders,*.products",
            password="pass word",
        )
    assert ended.status == 0, ended.stderr
    assert Changes(tmp_path / "out").tables() == [("shop", "customers")]
    latest = CommitLog(tmp_path / "out").latest()
    assert latest is not None
    position = latest.position
    # The last file ends with a rotation to one that the archive does not have.
    assert (position.file, position.position) == ("shop-binlog.000003", 4)
    assert position.gtid_set == Archive(sample_binlogs()).executed_gtid_set


def test_unwanted_tables_are_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """With each look all that follow are learned: a server may have thousands of them."""
    looks = []
    look = table_describer.unknown_table_maps

    def counted(*arguments: Any) -> Any:
        looks.append(1)
        return look(*arguments)

    monkeypatch.setattr(table_describer, "unknown_table_maps", counted)
    parts: list[Part] = []
    for number in range(1200):
        parts += [gtid(number + 1), query("BEGIN")]
        parts.append(table_map(number, [SIGNED_INT], database="other", table=f"t{number}"))
        parts += [rows(types.WRITE_ROWS_EVENT, number, 1, [image([integer(number)])]), xid()]
    batches = batches_of(binlog(parts, MYSQL, checksum=False), OPTIONS, describe_ahead=lambda wanted: {})
    assert not kinds(indexed(batches)) & set(ROWS_EVENTS)
    assert len(looks) == 3
