"""Event decoders from bytes: events that no test server writes, damaged ones, and headers and checksums."""

from __future__ import annotations

import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.binlog import event_types as t
from engine.binlog.events.decoding import Event, decode_event, feed_entry
from engine.binlog.events.payload import TransactionPayload, inner_events
from engine.binlog.events.transactions import Xid
from engine.binlog.format_description import FormatDescription, verify_checksum
from engine.errors import EventError
from tests.support.binlog_builder import CHECKED, PLAIN, make_event, resized, with_checksum, with_post_header
from tests.support.event_bodies import (
    INNER,
    LOAD_FIXED,
    LOAD_NAMES,
    TAGGED,
    UUID,
    body_of,
    encoded_set,
    json_of,
    payload,
    query,
    rows_body,
    tagged,
    user_var,
)


def test_header() -> None:
    event = decode_event(make_event(t.STOP_EVENT, b"", flags=0x20), PLAIN)
    assert event.to_json() == {
        "size": 19,
        "timestamp": 1_700_000_000,
        "server_id": 5,
        "type": "STOP_EVENT",
        "type_code": 3,
        "flags": 0x20,
        "data": {},
    }
    assert event.header.next_position == 119


@pytest.mark.parametrize("type_code", [0, 28, 43, 159, 173, 255])
def test_unknown_types_pass_with_their_bytes(type_code: int) -> None:
    event = decode_event(make_event(type_code, b"\x01\xff"), PLAIN)
    assert event.to_json()["data"] == {"bytes": "01ff"}
    assert event.type_name == ("IGNORABLE_LOG_EVENT" if type_code == 28 else "UNKNOWN_EVENT")


def test_start_event_of_each_old_version() -> None:
    server = b"3.23.58-log".ljust(50, b"\0")
    version_3 = make_event(t.START_EVENT_V3, struct.pack("<H50sI", 3, b"4.0.23-log", 99))
    assert decode_event(version_3, PLAIN).to_json()["data"]["binlog_version"] == 3
    body = struct.pack("<H50sI", 1, server, 99)
    version_1 = struct.pack("<IBII", 5, t.START_EVENT_V3, 7, 13 + len(body)) + body
    event = decode_event(version_1, PLAIN)
    data = event.to_json()["data"]
    assert (data["binlog_version"], data["server_version"], data["header_length"]) == (1, "3.23.58-log", 13)
    assert (event.header.timestamp, event.header.server_id, event.header.size) == (5, 7, 69)


def test_slave() -> None:
    body = struct.pack("<QH", 4711, 3306) + b"source.example\0binlog.000007"
    assert json_of(t.SLAVE_EVENT, body) == {
        "position": 4711,
        "port": 3306,
        "host": "source.example",
        "file": "binlog.000007",
    }


def test_rotate_of_mysql_323_has_no_position() -> None:
    fmt = with_post_header(t.ROTATE_EVENT, 0)
    assert json_of(t.ROTATE_EVENT, b"log.002", fmt) == {"next_file": "log.002", "position": 4}


def test_incident() -> None:
    shown = {"incident": 1, "name": "LOST_EVENTS", "message": "no disk"}
    assert json_of(t.INCIDENT_EVENT, b"\x01\x00\x07no disk") == shown
    assert json_of(t.INCIDENT_EVENT, b"\x01\x00") == {"incident": 1, "name": "LOST_EVENTS"}


def test_heartbeats() -> None:
    assert json_of(t.HEARTBEAT_LOG_EVENT, b"binlog.000001") == {"file": "binlog.000001", "position": 132}
    position = b"\x02\x09\xfe" + (5 << 32).to_bytes(8, "little")
    fields = b"\x01\x06log.01" + b"\x63\x03new" + position + b"\0"
    assert json_of(t.HEARTBEAT_LOG_EVENT_V2, fields) == {"file": "log.01", "position": 5 << 32}


@pytest.mark.parametrize(
    ("type_code", "body", "reason"),
    [
        (t.INTVAR_EVENT, b"\x03" + bytes(8), "integer variable 3 is unknown"),
        (t.USER_VAR_EVENT, user_var(3, 63, b""), "cannot be of type 3"),
        (t.USER_VAR_EVENT, user_var(4, 63, b"\x46\x04" + bytes(40)), "is not a valid type"),
        (t.XA_PREPARE_LOG_EVENT, struct.pack("<BiII", 0, 1, 65, 0) + bytes(65), "more than 64 bytes"),
        (t.GTID_LOG_EVENT, b"\0" + UUID + struct.pack("<q", 0), "0 is not a valid GTID number"),
        (t.ANONYMOUS_GTID_LOG_EVENT, b"\0" + UUID + struct.pack("<q", 1), "1 is not a valid GTID number"),
        (t.PREVIOUS_GTIDS_LOG_EVENT, struct.pack("<Q", 2 << 56), "encoding 2 is unknown"),
        (t.PREVIOUS_GTIDS_LOG_EVENT, struct.pack("<Q", 1 << 40), "bytes expected"),
        (t.ROTATE_EVENT, bytes(8), "names no file"),
    ],
)
def test_invalid_bodies(type_code: int, body: bytes, reason: str) -> None:
    with pytest.raises(EventError, match=reason):
        body_of(type_code, body)


def test_mariadb_encryption_and_row_pieces() -> None:
    shown = {"scheme": 1, "key_version": 2, "nonce": "00" * 12}
    assert json_of(t.START_ENCRYPTION_EVENT, struct.pack("<BI", 1, 2) + bytes(12)) == shown
    piece = struct.pack("<IIB", 3, 1, 1) + struct.pack("<Q", 99) + b"xy"
    assert json_of(t.PARTIAL_ROW_DATA_EVENT, piece) == {
        "pieces": 3,
        "piece": 1,
        "original_size": 99,
        "data": "7879",
    }


def test_extra_row_info() -> None:
    ndb = b"\x00\x04\x01\x02\x03"
    body = rows_body(ndb + b"\x01" + struct.pack("<HH", 4, 3), b"\x03", b"\x01", rows=b"....")
    decoded = body_of(t.UPDATE_ROWS_EVENT, body)
    assert (decoded.partition, decoded.source_partition, decoded.ndb_info) == (4, 3, b"\x01\x02\x03")
    assert (decoded.columns, decoded.columns_after, decoded.rows) == (b"\x03", b"\x01", b"....")
    assert body_of(t.WRITE_ROWS_EVENT, rows_body(b"\x7funknown", b"\x03")).partition is None
    with pytest.raises(EventError):
        body_of(t.WRITE_ROWS_EVENT, rows_body(b"\x00\x00", b"\x03"))


def test_checksums() -> None:
    event = with_checksum(make_event(t.XID_EVENT, bytes(8)))
    verify_checksum(event, CHECKED)
    assert decode_event(event, CHECKED).body == Xid(0)
    assert decode_event(event[:-4], CHECKED).body == Xid(0)
    with pytest.raises(EventError, match=r"the checksum is [0-9a-f]{8}, but the event contains"):
        verify_checksum(event[:-1] + bytes([event[-1] ^ 1]), CHECKED)
    with pytest.raises(EventError, match="too short for a checksum"):
        verify_checksum(event[:20], CHECKED)
    verify_checksum(event[:20], PLAIN)


def test_feed_entries() -> None:
    event = decode_event(make_event(t.QUERY_EVENT, query(b"DROP TABLE x")), PLAIN)
    name, database, statement, data = feed_entry(event)
    assert (name, database, statement) == ("QUERY_EVENT", "shop", "DROP TABLE x")
    assert json.loads(data) == {"timestamp": 1700000000} | event.body.to_json()
    nowhere = decode_event(make_event(t.QUERY_EVENT, query(b"DO 1", database=b"")), PLAIN)
    assert feed_entry(nowhere)[1] is None
    assert feed_entry(decode_event(make_event(t.STOP_EVENT, b""), PLAIN)) == (
        "STOP_EVENT",
        None,
        None,
        '{"timestamp":1700000000}',
    )


@pytest.mark.parametrize("data", [b"", b"\0" * 4, b"\0" * 19, make_event(3, b"") + b"\0"])
def test_wrong_sizes(data: bytes) -> None:
    with pytest.raises(EventError):
        decode_event(data, PLAIN)


@given(st.integers(0, 255), st.binary(max_size=200), st.sampled_from([PLAIN, CHECKED]))
def test_no_body_breaks_a_decoder(type_code: int, body: bytes, fmt: FormatDescription) -> None:
    try:
        event = decode_event(make_event(type_code, body), fmt)
    except EventError:
        return
    assert isinstance(event, Event)
    json.dumps(feed_entry(event))


EXAMPLES = [
    (t.QUERY_EVENT, query(b"DROP TABLE x", b"\x05\x06+02:00\x0c\x02a\0b\0")),
    (t.USER_VAR_EVENT, user_var(4, 63, bytes.fromhex("0e04 810d fb38 d2 04d2"))),
    (t.NEW_LOAD_EVENT, LOAD_FIXED + b'\x01,\x01"\x01\n\x00\x01\\\x04' + LOAD_NAMES + b"data.txt"),
    (t.GTID_TAGGED_LOG_EVENT, tagged(TAGGED)),
    (t.PREVIOUS_GTIDS_LOG_EVENT, encoded_set([(UUID, b"app", [(2, 2)])], True)),
    (t.TRANSACTION_PAYLOAD_EVENT, payload(INNER)),
    (t.WRITE_ROWS_EVENT, rows_body(b"\x01\x04\x00", b"\x03", rows=b"1234")),
    (t.HEARTBEAT_LOG_EVENT_V2, b"\x01\x06log.01\x02\x01\x05\0"),
]


@pytest.mark.parametrize(("type_code", "body"), EXAMPLES, ids=[t.event_name(code) for code, _ in EXAMPLES])
@given(data=st.data())
def test_damaged_events(type_code: int, body: bytes, data: st.DataObject) -> None:
    event = bytearray(make_event(type_code, body))
    for _ in range(data.draw(st.integers(0, 3))):
        event[data.draw(st.integers(19, len(event) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(19, len(event)))
    try:
        decoded = decode_event(resized(bytes(event[:cut])), PLAIN).body
        if isinstance(decoded, TransactionPayload):
            list(inner_events(decoded, limit=1 << 20))
    except EventError:
        pass
