"""Events of GTIDs and whole transactions, from bytes."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.binlog import event_types as t
from engine.binlog.event_reader import EventReader
from engine.binlog.events.decoding import TaggedGtid, decode_event, gtid_set_text
from engine.binlog.events.payload import inner_events
from engine.binlog.events.transactions import GtidTagged, PreviousGtids
from engine.binlog.serialization import signed, unsigned
from engine.errors import EventError
from tests.support.binlog_builder import PLAIN, make_event
from tests.support.event_bodies import (
    INNER,
    TAGGED,
    UUID,
    UUID_TEXT,
    body_of,
    encoded_set,
    json_of,
    payload,
    serialized,
    tagged,
)


def test_gtid_committed_first_elsewhere() -> None:
    times = (2_000_000 | 1 << 55).to_bytes(7, "little") + (1_000_000).to_bytes(7, "little")
    versions = struct.pack("<II", 80400 | 1 << 31, 80030)
    body = b"\x01" + UUID + struct.pack("<q", 5) + b"\x02" + struct.pack("<qq", 3, 4) + times
    body += b"\xfc\x00\x02" + versions + struct.pack("<Q", 77)
    assert json_of(t.GTID_LOG_EVENT, body) == {
        "gtid": f"{UUID_TEXT}:5",
        "may_have_statements": True,
        "last_committed": 3,
        "sequence_number": 4,
        "immediate_commit_timestamp": 2_000_000,
        "original_commit_timestamp": 1_000_000,
        "transaction_length": 512,
        "immediate_server_version": 80400,
        "original_server_version": 80030,
        "commit_group_ticket": 77,
    }


@given(st.integers(0, 2**64 - 1))
def test_serialized_integers(value: int) -> None:
    reader = EventReader(serialized(value) + b"\xaa")
    assert unsigned(reader) == value
    assert reader.remaining == 1
    assert signed(EventReader(serialized(value))) == (~(value >> 1) if value & 1 else value >> 1)


def test_tagged_gtid() -> None:
    event = make_event(t.GTID_TAGGED_LOG_EVENT, tagged(TAGGED))
    body = decode_event(event, PLAIN).body
    assert isinstance(body, GtidTagged)
    assert body.gtid == f"{UUID_TEXT}:app:6"
    assert (body.immediate_commit_timestamp, body.original_commit_timestamp) == (2_000_000, 2_000_000)
    assert (body.immediate_server_version, body.original_server_version) == (90000, 90000)
    assert (body.last_committed, body.transaction_length) == (None, None)
    assert TaggedGtid(PLAIN)(event) == (f"{UUID_TEXT}:app", 6)
    # A newer server's field: skipped, unless it says that it must be known.
    assert body_of(t.GTID_TAGGED_LOG_EVENT, tagged(TAGGED | {12: b"new"})).gtid == f"{UUID_TEXT}:app:6"
    with pytest.raises(EventError, match="field 12 is unknown, but must not be ignored"):
        body_of(t.GTID_TAGGED_LOG_EVENT, tagged(TAGGED | {12: b"new"}, must_know=12))
    with pytest.raises(EventError, match="lacks its number"):
        body_of(t.GTID_TAGGED_LOG_EVENT, tagged({key: TAGGED[key] for key in (0, 1, 3)}))
    with pytest.raises(EventError, match="a tagged GTID event is expected"):
        TaggedGtid(PLAIN)(make_event(t.STOP_EVENT, b""))


def test_gtid_sets() -> None:
    plain = encoded_set([(UUID, None, [(1, 5), (7, 7)]), (bytes(16), None, [(3, 4)])], False)
    event = decode_event(make_event(t.PREVIOUS_GTIDS_LOG_EVENT, plain), PLAIN)
    expected = f"00000000-0000-0000-0000-000000000000:3-4,{UUID_TEXT}:1-5:7"
    assert isinstance(event.body, PreviousGtids)
    assert event.body.gtid_set == gtid_set_text(event) == expected
    tags = encoded_set([(UUID, None, [(1, 5)]), (UUID, b"app", [(2, 2)])], True)
    assert body_of(t.PREVIOUS_GTIDS_LOG_EVENT, tags).gtid_set == f"{UUID_TEXT}:1-5:app:2"


def test_mariadb_gtid_list() -> None:
    body = struct.pack("<I", 2 | 1 << 28) + struct.pack("<IIQ", 0, 1, 9) + struct.pack("<IIQ", 0, 2, 8)
    event = decode_event(make_event(t.GTID_LIST_EVENT, body), PLAIN)
    assert event.to_json()["data"] == {"gtids": ["0-1-9", "0-2-8"], "flags": ["until_reached"]}
    # The last one of a domain is the latest.
    assert gtid_set_text(event) == "0-2-8"
    assert gtid_set_text(decode_event(make_event(t.STOP_EVENT, b""), PLAIN)) is None


def test_mariadb_gtid_with_everything() -> None:
    body = struct.pack("<QIB", 10, 3, 0x02 | 0x40) + struct.pack("<Q", 77)
    body += struct.pack("<iBB", 1, 2, 1) + b"gtb" + b"\x15\x01" + struct.pack("<Q", 6) + struct.pack("<I", 8)
    assert json_of(t.GTID_EVENT, body) == {
        "gtid": "3-5-10",
        "flags": ["group_commit", "prepared_xa", "multi_engine", "commit_alter", "thread_id"],
        "commit_id": 77,
        "xa_format_id": 1,
        "xa_gtrid": b"gt".hex(),
        "xa_bqual": b"b".hex(),
        "extra_engines": 1,
        "start_alter_sequence_number": 6,
        "thread_id": 8,
    }
    assert json_of(t.GTID_EVENT, struct.pack("<QIB", 10, 3, 1) + bytes(6)) == {
        "gtid": "3-5-10",
        "flags": ["standalone"],
    }


def test_group_replication() -> None:
    gtid_set = encoded_set([(UUID, None, [(1, 3)])], False)
    fixed = struct.pack("<BIBIII", 36, 12, 1, len(gtid_set), 2, 1)
    items = b"\x02\x00ab" + b"\x01\x00c" + b"\x01\x00d"
    assert json_of(t.TRANSACTION_CONTEXT_EVENT, fixed + UUID_TEXT.encode() + gtid_set + items) == {
        "server_uuid": UUID_TEXT,
        "thread_id": 12,
        "gtid_specified": True,
        "snapshot_version": f"{UUID_TEXT}:1-3",
        "write_set": [b"ab".hex(), b"c".hex()],
        "read_set": [b"d".hex()],
    }
    view = b"17:3".ljust(40, b"\0") + struct.pack("<QI", 5, 1) + b"\x01\x00k" + b"\x02\x00\x00\x00vv"
    assert json_of(t.VIEW_CHANGE_EVENT, view) == {
        "view_id": "17:3",
        "sequence_number": 5,
        "certification_info": {"k": b"vv".hex()},
    }


@pytest.mark.parametrize("arguments", [{}, {"compression": 255}, {"frames": 3}])
def test_compressed_transactions(arguments: dict[str, int]) -> None:
    body = body_of(t.TRANSACTION_PAYLOAD_EVENT, payload(INNER, **arguments))
    assert b"".join(inner_events(body)) == INNER
    assert [decode_event(event, PLAIN).type_name for event in inner_events(body)] == [
        "XID_EVENT",
        "STOP_EVENT",
    ]
    assert body.to_json()["uncompressed_size"] == len(INNER)
    assert "payload" not in body.to_json()


def test_compressed_transactions_are_bounded() -> None:
    bomb = make_event(t.IGNORABLE_LOG_EVENT, bytes(5_000_000))
    with pytest.raises(EventError, match="more bytes than it claims"):
        list(inner_events(body_of(t.TRANSACTION_PAYLOAD_EVENT, payload(bomb, claimed=1000))))
    with pytest.raises(EventError, match="the limit is 1000: start after it"):
        list(inner_events(body_of(t.TRANSACTION_PAYLOAD_EVENT, payload(bomb)), limit=1000))
    with pytest.raises(EventError, match="ends in the middle"):
        list(inner_events(body_of(t.TRANSACTION_PAYLOAD_EVENT, payload(INNER[:30], claimed=1000))))
    with pytest.raises(EventError, match="cannot be expanded"):
        damaged = bytearray(payload(INNER))
        damaged[-6] ^= 0xFF
        damaged[-20] ^= 0xFF
        list(inner_events(body_of(t.TRANSACTION_PAYLOAD_EVENT, bytes(damaged))))
    with pytest.raises(EventError, match="compression 7 is unknown"):
        body_of(t.TRANSACTION_PAYLOAD_EVENT, payload(INNER, compression=7))
