"""Event decoders from bytes: what no server at hand writes, and bytes that lie."""

from __future__ import annotations

import json
import struct
import zlib

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from engine.binlog import event_types as t
from engine.binlog.event_reader import EventReader
from engine.binlog.events import Event, TaggedGtid, decode_event, feed_entry, gtid_set_text, verify_checksum
from engine.binlog.events.payload import inner_events
from engine.binlog.serialization import signed, unsigned
from engine.binlog.texts import decode_text
from engine.errors import EventError
from tests.support.binlog_builder import CHECKED, PLAIN, make_event, resized, with_checksum, with_post_header

UUID = bytes(range(16))
UUID_TEXT = "00010203-0405-0607-0809-0a0b0c0d0e0f"


def body_of(type_code: int, body: bytes, fmt=PLAIN):
    return decode_event(make_event(type_code, body), fmt).body


def json_of(type_code: int, body: bytes, fmt=PLAIN):
    shown = decode_event(make_event(type_code, body), fmt).to_json()
    return json.loads(json.dumps(shown))["data"]


def test_header():
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
def test_unknown_types_pass_with_their_bytes(type_code):
    event = decode_event(make_event(type_code, b"\x01\xff"), PLAIN)
    assert event.to_json()["data"] == {"bytes": "01ff"}
    assert event.type_name == ("IGNORABLE_LOG_EVENT" if type_code == 28 else "UNKNOWN_EVENT")


def test_start_event_of_each_old_version():
    server = b"3.23.58-log".ljust(50, b"\0")
    version_3 = make_event(t.START_EVENT_V3, struct.pack("<H50sI", 3, b"4.0.23-log", 99))
    assert decode_event(version_3, PLAIN).to_json()["data"]["binlog_version"] == 3
    body = struct.pack("<H50sI", 1, server, 99)
    version_1 = struct.pack("<IBII", 5, t.START_EVENT_V3, 7, 13 + len(body)) + body
    event = decode_event(version_1, PLAIN)
    data = event.to_json()["data"]
    assert (data["binlog_version"], data["server_version"], data["header_length"]) == (1, "3.23.58-log", 13)
    assert (event.header.timestamp, event.header.server_id, event.header.size) == (5, 7, 69)


def test_slave():
    body = struct.pack("<QH", 4711, 3306) + b"source.example\0binlog.000007"
    assert json_of(t.SLAVE_EVENT, body) == {
        "position": 4711,
        "port": 3306,
        "host": "source.example",
        "file": "binlog.000007",
    }


def test_rotate_of_mysql_323_has_no_position():
    fmt = with_post_header(t.ROTATE_EVENT, 0)
    assert json_of(t.ROTATE_EVENT, b"log.002", fmt) == {"next_file": "log.002", "position": 4}


def test_incident():
    shown = {"incident": 1, "name": "LOST_EVENTS", "message": "no disk"}
    assert json_of(t.INCIDENT_EVENT, b"\x01\x00\x07no disk") == shown
    assert json_of(t.INCIDENT_EVENT, b"\x01\x00") == {"incident": 1, "name": "LOST_EVENTS"}


def test_heartbeats():
    assert json_of(t.HEARTBEAT_LOG_EVENT, b"binlog.000001") == {"file": "binlog.000001", "position": 132}
    position = b"\x02\x09\xfe" + (5 << 32).to_bytes(8, "little")
    fields = b"\x01\x06log.01" + b"\x63\x03new" + position + b"\0"
    assert json_of(t.HEARTBEAT_LOG_EVENT_V2, fields) == {"file": "log.01", "position": 5 << 32}


def query(statement: bytes, status: bytes = b"", database: bytes = b"shop") -> bytes:
    fixed = struct.pack("<IIBHH", 11, 2, len(database), 1062, len(status))
    return fixed + status + database + b"\0" + statement


def test_query_status_variables():
    pairs = b"\x01" + struct.pack("<HH", 33, 2048)
    status = b"".join(
        (
            b"\x00" + struct.pack("<I", 0x4000),
            b"\x01" + struct.pack("<Q", 1 << 40),
            b"\x02\x03std\0",
            b"\x03" + struct.pack("<HH", 2, 1),
            b"\x05\x06+02:00",
            b"\x09" + struct.pack("<Q", 5),
            b"\x0a" + struct.pack("<I", 123),
            b"\x0b\x02me\x04host",
            b"\x0c\x02a\0b\0",
            b"\x0d" + (999_999).to_bytes(3, "little"),
            b"\x10\x01",
            b"\x82\x04" + struct.pack("<Q", 42),
            b"\x83" + pairs,
        )
    )
    assert json_of(t.QUERY_EVENT, query(b"DROP TABLE x", status)) == {
        "database": "shop",
        "statement": "DROP TABLE x",
        "thread_id": 11,
        "execution_time": 2,
        "error_code": 1062,
        "status": {
            "flags2": 0x4000,
            "sql_mode": 1 << 40,
            "catalog": "std",
            "auto_increment_increment": 2,
            "auto_increment_offset": 1,
            "time_zone": "+02:00",
            "table_map_for_update": 5,
            "original_size": 123,
            "invoker_user": "me",
            "invoker_host": "host",
            "updated_databases": ["a", "b"],
            "microseconds": 999_999,
            "explicit_defaults_for_timestamp": 1,
            "gtid_flags_extra": 4,
            "start_alter_sequence_number": 42,
            "character_set_collations": [[33, 2048]],
        },
    }


def test_status_variables_stop_at_an_unknown_one():
    data = json_of(t.QUERY_EVENT, query(b"DO 1", b"\x0c\xfe" + b"\x7f\x01\x02"))
    assert data["status"] == {"updated_databases": None, "unknown_variable": 0x7F, "unknown_bytes": "0102"}


def test_statements_in_other_character_sets():
    latin1 = b"\x04" + struct.pack("<HHH", 8, 8, 8)
    assert json_of(t.QUERY_EVENT, query(b"SELECT '\xfc'", latin1))["statement"] == "SELECT 'ü'"
    data = json_of(t.QUERY_EVENT, query(b"SELECT _binary'\xff'"))
    assert data["statement"] == "SELECT _binary'\\xff'"
    assert bytes.fromhex(data["statement_bytes"]) == b"SELECT _binary'\xff'"


def test_old_query_has_no_status_variables():
    fmt = with_post_header(t.QUERY_EVENT, 11)
    body = struct.pack("<IIBH", 1, 0, 4, 0) + b"test\0insert t1 values (1)"
    data = json_of(t.QUERY_EVENT, body, fmt)
    assert (data["database"], data["statement"], data["status"]) == ("test", "insert t1 values (1)", {})


def user_var(value_type: int, collation: int, value: bytes, tail: bytes = b"") -> bytes:
    fixed = struct.pack("<BBII", 0, value_type, collation, len(value))
    return struct.pack("<I", 1) + b"v" + fixed + value + tail


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (struct.pack("<I", 1) + b"v\x01", {"name": "v", "type": "null"}),
        (user_var(0, 8, b"\xfc"), {"name": "v", "type": "string", "value": "ü", "collation": 8}),
        (user_var(0, 63, b"\xfc"), {"name": "v", "type": "string", "value_bytes": "fc", "collation": 63}),
        (user_var(1, 63, struct.pack("<d", -0.5)), {"name": "v", "type": "real", "value": -0.5}),
        (user_var(2, 63, b"\xff" * 8), {"name": "v", "type": "integer", "value": -1, "unsigned": False}),
        (
            user_var(2, 63, b"\xff" * 8, b"\x01"),
            {"name": "v", "type": "integer", "value": (1 << 64) - 1, "unsigned": True},
        ),
        (user_var(4, 63, bytes.fromhex("0e04 810d fb38 d2 04d2")), {"name": "v", "type": "decimal"}),
    ],
)
def test_user_variables(body, expected):
    data = json_of(t.USER_VAR_EVENT, body)
    if expected["type"] == "decimal":
        # The example of MySQL's own comment on its binary format: 1234567890.1234.
        assert data["value"] == "1234567890.1234"
        return
    assert data == expected


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
def test_what_cannot_be(type_code, body, reason):
    with pytest.raises(EventError, match=reason):
        body_of(type_code, body)


LOAD_FIXED = struct.pack("<IIIBBI", 5, 1, 2, 2, 4, 2)
LOAD_NAMES = b"\x01\x02" + b"a\0bb\0" + b"t1\0" + b"shop\0"
LOAD_SHOWN = {
    "database": "shop",
    "table": "t1",
    "file": "data.txt",
    "columns": ["a", "bb"],
    "thread_id": 5,
    "execution_time": 1,
    "skip_lines": 2,
    "fields_terminated": ",",
    "fields_enclosed": '"',
    "lines_terminated": "\n",
    "lines_starting": "",
    "fields_escaped": "\\",
    "options": ["REPLACE"],
}


def test_load_with_delimiters_of_one_character():
    body = LOAD_FIXED + b',"\n?\\' + b"\x04" + b"\x08" + LOAD_NAMES + b"data.txt\0"
    assert json_of(t.LOAD_EVENT, body) == LOAD_SHOWN


def test_new_load():
    delimiters = b'\x01,\x01"\x01\n\x00\x01\\' + b"\x04"
    assert json_of(t.NEW_LOAD_EVENT, LOAD_FIXED + delimiters + LOAD_NAMES + b"data.txt") == LOAD_SHOWN
    create = LOAD_FIXED + struct.pack("<I", 9) + delimiters + LOAD_NAMES + b"data.txt\0" + b"1,2\n"
    assert json_of(t.CREATE_FILE_EVENT, create) == LOAD_SHOWN | {"file_id": 9, "block": b"1,2\n".hex()}


def test_pieces_of_a_file():
    assert json_of(t.APPEND_BLOCK_EVENT, b"\x09\0\0\0xyz") == {"file_id": 9, "block": "78797a"}
    for type_code in (t.EXEC_LOAD_EVENT, t.DELETE_FILE_EVENT):
        assert json_of(type_code, b"\x09\0\0\0") == {"file_id": 9}


def test_gtid_committed_first_elsewhere():
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


def serialized(value: int) -> bytes:
    """An unsigned integer in MySQL's serialization format."""
    bits = value.bit_length()
    size = 9 if bits > 56 else max(1, (bits + 6) // 7)
    head = (1 << (size - 1)) - 1
    if size == 9:
        return bytes([head]) + value.to_bytes(8, "little")
    return (value << size | head).to_bytes(size, "little")


@given(st.integers(0, 2**64 - 1))
def test_serialized_integers(value):
    reader = EventReader(serialized(value) + b"\xaa")
    assert unsigned(reader) == value
    assert reader.remaining == 1
    assert signed(EventReader(serialized(value))) == (~(value >> 1) if value & 1 else value >> 1)


def tagged(fields: dict[int, bytes], must_know: int = 0) -> bytes:
    content = serialized(must_know) + b"".join(serialized(key) + value for key, value in fields.items())
    size = 2
    while len(serialized(size)) + 1 + len(content) != size:
        size = len(serialized(size)) + 1 + len(content)
    return serialized(1) + serialized(size) + content


TAGGED = {
    0: serialized(1),
    1: b"".join(serialized(byte) for byte in UUID),
    2: serialized(6 << 1),
    3: serialized(3) + b"app",
    6: serialized(2_000_000),
    9: serialized(90000),
}


def test_tagged_gtid():
    event = make_event(t.GTID_TAGGED_LOG_EVENT, tagged(TAGGED))
    body = decode_event(event, PLAIN).body
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


def encoded_set(entries: list[tuple[bytes, bytes | None, list[tuple[int, int]]]], with_tags: bool) -> bytes:
    head = 1 << 56 | len(entries) << 8 | 1 if with_tags else len(entries)
    encoded = struct.pack("<Q", head)
    for uuid, tag, intervals in entries:
        encoded += uuid + (serialized(len(tag or b"")) + (tag or b"") if with_tags else b"")
        encoded += struct.pack("<Q", len(intervals))
        encoded += b"".join(struct.pack("<QQ", first, last + 1) for first, last in intervals)
    return encoded


def test_gtid_sets():
    plain = encoded_set([(UUID, None, [(1, 5), (7, 7)]), (bytes(16), None, [(3, 4)])], False)
    event = decode_event(make_event(t.PREVIOUS_GTIDS_LOG_EVENT, plain), PLAIN)
    expected = f"00000000-0000-0000-0000-000000000000:3-4,{UUID_TEXT}:1-5:7"
    assert event.body.gtid_set == gtid_set_text(event) == expected
    tags = encoded_set([(UUID, None, [(1, 5)]), (UUID, b"app", [(2, 2)])], True)
    assert body_of(t.PREVIOUS_GTIDS_LOG_EVENT, tags).gtid_set == f"{UUID_TEXT}:1-5:app:2"


def test_mariadb_gtid_list():
    body = struct.pack("<I", 2 | 1 << 28) + struct.pack("<IIQ", 0, 1, 9) + struct.pack("<IIQ", 0, 2, 8)
    event = decode_event(make_event(t.GTID_LIST_EVENT, body), PLAIN)
    assert event.to_json()["data"] == {"gtids": ["0-1-9", "0-2-8"], "flags": ["until_reached"]}
    # The last one of a domain is the latest.
    assert gtid_set_text(event) == "0-2-8"
    assert gtid_set_text(decode_event(make_event(t.STOP_EVENT, b""), PLAIN)) is None


def test_mariadb_gtid_with_everything():
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


def test_mariadb_encryption_and_row_pieces():
    shown = {"scheme": 1, "key_version": 2, "nonce": "00" * 12}
    assert json_of(t.START_ENCRYPTION_EVENT, struct.pack("<BI", 1, 2) + bytes(12)) == shown
    piece = struct.pack("<IIB", 3, 1, 1) + struct.pack("<Q", 99) + b"xy"
    assert json_of(t.PARTIAL_ROW_DATA_EVENT, piece) == {
        "pieces": 3,
        "piece": 1,
        "original_size": 99,
        "data": "7879",
    }


def compressed_record(original: bytes, claimed: int | None = None) -> bytes:
    claimed = len(original) if claimed is None else claimed
    return b"\x82" + claimed.to_bytes(2, "big") + zlib.compress(original)


def test_mariadb_compressed_query():
    fmt = with_post_header(t.QUERY_COMPRESSED_EVENT, 13)
    assert json_of(t.QUERY_COMPRESSED_EVENT, query(compressed_record(b"DO 1")), fmt)["statement"] == "DO 1"
    for record, reason in (
        (compressed_record(b"x" * 100, claimed=99), "does not expand to the 99 bytes"),
        (compressed_record(b"x" * 100, claimed=101), "does not expand to the 101 bytes"),
        (b"\x84\xff\xff\xff\xff" + zlib.compress(b"x"), "claims 4294967295 bytes"),
        (b"\x82\x00\x05garbage", "cannot be expanded"),
        (b"\x82\x00", "claims 0 bytes|expected"),
        (b"\x02\x00\x05", "does not start with a header"),
        (b"", "does not start with a header"),
    ):
        with pytest.raises(EventError, match=reason):
            body_of(t.QUERY_COMPRESSED_EVENT, query(record), fmt)


def test_group_replication():
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


def rows_body(extra: bytes, *bitmaps: bytes, count: bytes = b"\x02", rows: bytes = b"") -> bytes:
    fixed = (99).to_bytes(6, "little") + struct.pack("<H", 1) + struct.pack("<H", 2 + len(extra)) + extra
    return fixed + count + b"".join(bitmaps) + rows


def test_extra_row_info():
    ndb = b"\x00\x04\x01\x02\x03"
    body = rows_body(ndb + b"\x01" + struct.pack("<HH", 4, 3), b"\x03", b"\x01", rows=b"....")
    decoded = body_of(t.UPDATE_ROWS_EVENT, body)
    assert (decoded.partition, decoded.source_partition, decoded.ndb_info) == (4, 3, b"\x01\x02\x03")
    assert (decoded.columns, decoded.columns_after, decoded.rows) == (b"\x03", b"\x01", b"....")
    assert body_of(t.WRITE_ROWS_EVENT, rows_body(b"\x7funknown", b"\x03")).partition is None
    with pytest.raises(EventError):
        body_of(t.WRITE_ROWS_EVENT, rows_body(b"\x00\x00", b"\x03"))


def payload(events: bytes, *, compression: int = 0, claimed: int | None = None, frames: int = 1) -> bytes:
    packed = events
    if compression == 0:
        step = max(1, -(-len(events) // frames))
        pieces = (events[at : at + step] for at in range(0, len(events), step))
        packed = b"".join(zstandard.compress(piece) for piece in pieces)
    values = {2: length_encoded(compression), 3: length_encoded(len(events) if claimed is None else claimed)}
    values[1] = length_encoded(len(packed))
    fields = b"".join(bytes([code, len(value)]) + value for code, value in values.items())
    return fields + b"\x00" + packed


def length_encoded(value: int) -> bytes:
    if value < 251:
        return bytes([value])
    return b"\xfe" + value.to_bytes(8, "little")


INNER = make_event(t.XID_EVENT, bytes(8)) + make_event(t.STOP_EVENT, b"")


@pytest.mark.parametrize("arguments", [{}, {"compression": 255}, {"frames": 3}])
def test_compressed_transactions(arguments):
    body = body_of(t.TRANSACTION_PAYLOAD_EVENT, payload(INNER, **arguments))
    assert b"".join(inner_events(body)) == INNER
    assert [decode_event(event, PLAIN).type_name for event in inner_events(body)] == [
        "XID_EVENT",
        "STOP_EVENT",
    ]
    assert body.to_json()["uncompressed_size"] == len(INNER)
    assert "payload" not in body.to_json()


def test_compressed_transactions_are_bounded():
    bomb = make_event(t.IGNORABLE_LOG_EVENT, bytes(5_000_000))
    with pytest.raises(EventError, match="more bytes than it claims"):
        list(inner_events(body_of(t.TRANSACTION_PAYLOAD_EVENT, payload(bomb, claimed=1000))))
    with pytest.raises(EventError, match="the limit is 1000"):
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


def test_checksums():
    event = with_checksum(make_event(t.XID_EVENT, bytes(8)))
    verify_checksum(event, CHECKED)
    assert decode_event(event, CHECKED).body.xid == 0
    assert decode_event(event[:-4], CHECKED).body.xid == 0
    with pytest.raises(EventError, match=r"the checksum is [0-9a-f]{8}, but the event contains"):
        verify_checksum(event[:-1] + bytes([event[-1] ^ 1]), CHECKED)
    with pytest.raises(EventError, match="too short for a checksum"):
        verify_checksum(event[:20], CHECKED)
    verify_checksum(event[:20], PLAIN)


def test_feed_entries():
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
def test_sizes_that_lie(data):
    with pytest.raises(EventError):
        decode_event(data, PLAIN)


@given(st.integers(0, 255), st.binary(max_size=200), st.sampled_from([PLAIN, CHECKED]))
def test_no_body_breaks_a_decoder(type_code, body, fmt):
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
def test_damaged_events(type_code, body, data):
    event = bytearray(make_event(type_code, body))
    for _ in range(data.draw(st.integers(0, 3))):
        event[data.draw(st.integers(19, len(event) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(19, len(event)))
    try:
        body = decode_event(resized(bytes(event[:cut])), PLAIN).body
        if type_code == t.TRANSACTION_PAYLOAD_EVENT:
            list(inner_events(body, limit=1 << 20))
    except EventError:
        pass


@pytest.mark.parametrize(
    ("collation", "stored", "text"),
    [
        (None, "grün".encode(), "grün"),
        (255, "😀".encode(), "😀"),
        (8, b"gr\xfcn \x80", "grün €"),
        (63, b"plain", "plain"),
        (35, "ß".encode("utf-16-be"), "ß"),
        (2560, "ß".encode("utf-16-be"), "ß"),
        (28, "中".encode("gbk"), "中"),
        (10, b"[", "Ä"),
        (51, "ж".encode("cp1251"), "ж"),
    ],
)
def test_texts_in_their_character_sets(collation, stored, text):
    assert decode_text(stored, collation) == (text, True)


def test_texts_that_are_none():
    assert decode_text(b"a\xff", None) == ("a\\xff", False)
    assert decode_text(b"a\xff\xff", 28) == ("a\\xff\\xff", False)
