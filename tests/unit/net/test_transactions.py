"""Where transactions begin and end, for the ways in which MySQL and MariaDB write them.

Each stream is made by hand and put through batcher and decoder; `|` in its picture marks an end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn

import pytest

from engine.binlog import event_types as types
from engine.binlog.event_index import TRANSACTION_END
from engine.binlog.table_map import TableMap
from engine.errors import BinlogError, EngineError
from engine.net.batching.batcher import Batcher
from engine.net.batching.outgoing_batch import OutgoingBatch
from tests.support.batches import decode_all, feed, packets_of
from tests.support.binlog_builder import binlog, make_event
from tests.support.made_events import SOURCE, gtid, xid
from tests.support.transaction_pictures import (
    BEGIN,
    FILE,
    INSERT,
    PICTURES,
    PREVIOUS,
    TABLE,
    batcher,
    expected_ends,
    parts_of,
)


@pytest.mark.parametrize("name", PICTURES)
def test_ends_are_where_the_picture_has_them(name: str) -> None:
    version, picture = PICTURES[name]
    events = binlog(parts_of(picture), version)
    batches = list(feed(batcher(), packets_of(events), []))
    found = [
        bool(flags & TRANSACTION_END)
        for batch in batches
        for _, flags in batch.index[batch.header.context_events :]
    ]
    assert found == expected_ends(picture)
    assert decode_all(batches).error is None
    assert batches[-1].header.status.resume.position == 4 + sum(map(len, events))


@pytest.mark.parametrize("name", PICTURES)
def test_wherever_the_stream_breaks_off_only_whole_transactions_count(name: str) -> None:
    version, picture = PICTURES[name]
    events = binlog(parts_of(picture), version)
    ends = expected_ends(picture)
    boundaries = [4] + [4 + sum(map(len, events[: place + 2])) for place, end in enumerate(ends) if end]
    first_end = 4 + len(events[0])
    if ends[:1] == [False] and picture[0] == PREVIOUS:
        boundaries += [first_end + len(events[1])]
    for count in range(1, len(events)):
        reader = batcher()
        batches = list(feed_without_end(reader, packets_of(events[:count])))
        batches += reader.finish(EngineError("the connection was lost"))
        last = [
            batch.header for batch in batches if batch.header.status.ends_transaction and len(batch.index)
        ]
        reached = 4 + sum(map(len, events[:count]))
        expected = max(boundary for boundary in boundaries if boundary <= reached)
        assert (last[-1].status.resume.position if last else 4) == expected, f"{name}: {count} events"
        decoded = decode_all(batches)
        failure = decoded.results[-1].status.failure
        assert failure is not None and failure.message == "the connection was lost"
        whole = sum(end for end in ends[: count - 1])
        assert sum(result.transactions for result in decoded.results) == whole


def feed_without_end(reader: Batcher, stream: bytes) -> Iterator[OutgoingBatch]:
    reader.space()[: len(stream)] = stream
    return reader.received(len(stream))


def test_a_gtid_alone_is_not_a_transaction() -> None:
    """The connection is lost right after a GTID: counting it as executed would lose its transaction."""
    events = binlog([gtid(1), BEGIN, TABLE, INSERT, xid(), gtid(2)])
    reader = batcher(gtid_set="")
    batches = list(feed_without_end(reader, packets_of(events)))
    assert reader.inside_transaction
    batches += reader.finish(EngineError("the connection was lost"))
    decoded = decode_all(batches)
    assert [entry for result in decoded.results for entry in result.gtids] == [(str(SOURCE), 1, 1)]
    assert batches[-2].header.status.resume.position == 4 + sum(map(len, events[:-1]))


@pytest.mark.parametrize("position", [0, 3, 1 << 63, (1 << 64) - 1])
def test_a_rotation_to_no_position_is_refused(position: int) -> None:
    rotate = (types.ROTATE_EVENT, position.to_bytes(8, "little") + b"binlog.000002")
    with pytest.raises(BinlogError, match=rf"at position \d+: no binlog file has a position {position}"):
        list(feed(batcher(), packets_of(binlog([rotate])), []))


@pytest.mark.parametrize("packets", [True, False])
def test_events_without_a_format_description_are_refused(packets: bool) -> None:
    events = binlog([gtid(1), BEGIN, TABLE, INSERT, xid()])[1:]
    reader = Batcher(lambda table_map: None, file=FILE, marker=1 if packets else None)
    with pytest.raises(BinlogError, match=f"{FILE} at position 4: no format description came before"):
        list(feed(reader, packets_of(events) if packets else b"".join(events), []))


def test_a_damaged_table_map_is_not_asked_about() -> None:
    """Its checksum says what is wrong; the server's catalog could only say that there is no such table."""

    def catalog(table_map: TableMap) -> NoReturn:
        raise AssertionError(f"asked about {table_map.table}")

    events = binlog([gtid(1), BEGIN, TABLE, INSERT, xid()])
    stream = bytearray(packets_of(events))
    stream[stream.index(b"orders")] ^= 1
    with pytest.raises(BinlogError, match=f"at position {4 + sum(map(len, events[:3]))}: the checksum is"):
        list(feed(Batcher(catalog, file=FILE, checksum_algorithm=1), bytes(stream), []))


def test_a_wrong_size_takes_no_memory() -> None:
    reader = batcher()
    events = binlog([gtid(1)])
    lying = bytearray(packets_of([make_event(types.QUERY_EVENT, bytes(1000), 0, checksum=True)]))
    lying[5 + 9 : 5 + 13] = (1_900_000_000).to_bytes(4, "little")
    lying[:3] = b"\xff\xff\xff"
    stream = packets_of(events) + bytes(lying)
    for at in range(0, len(stream), 7):
        piece = stream[at : at + 7]
        reader.space()[: len(piece)] = piece
        list(reader.received(len(piece)))
    assert len(reader.space()) < 1 << 27
    assert reader.missing > 1_800_000_000
