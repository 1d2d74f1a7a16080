"""A short valid body of every type of event, and binlogs whose format description has all types."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from engine.binlog import event_types as t
from tests.support.binlog_builder import Part, make_events, with_post_header
from tests.support.made_events import (
    SIGNED_INT,
    SOURCE,
    anonymous_gtid,
    gtid,
    image,
    integer,
    mariadb_compressed,
    mariadb_gtid,
    payload,
    query,
    rows,
    table_map,
    xid,
)

TABLE = table_map(7, [SIGNED_INT])
ONE_TRANSACTION = (query("BEGIN"), TABLE, rows(t.WRITE_ROWS_EVENT, 7, 1, [image([integer(1)])]), xid())

FORMAT = with_post_header(t.QUERY_COMPRESSED_EVENT, 13)
"""Knows the fixed parts of all events; they have no checksums."""

_LOAD = struct.pack("<IIIBBI", 5, 1, 0, 2, 4, 1)
_LOAD_NAMES = b"\x01" + b"a\0" + b"t1\0" + b"shop\0"
_DELIMITERS = b'\x01,\x01"\x01\n\x00\x01\\' + b"\x00"
_FILE_ID = b"\x09\0\0\0"
_EMPTY_GTID_SET = bytes(8)


def _serialized(*values: int) -> bytes:
    """Small unsigned integers in MySQL's serialization format: one byte up to 127, else two."""
    return b"".join(
        bytes([value << 1]) if value < 128 else (value << 2 | 1).to_bytes(2, "little") for value in values
    )


def _tagged_gtid() -> bytes:
    fields = _serialized(0, 1) + _serialized(1, *SOURCE.bytes) + _serialized(2, 6 << 1)
    content = _serialized(0) + fields + _serialized(3, 3) + b"app"
    return _serialized(1, len(content) + 2) + content


def _execute_load() -> bytes:
    whole = query("LOAD DATA INFILE 'x' INTO TABLE t1")[1]
    return whole[:13] + _FILE_ID + struct.pack("<IIB", 9, 20, 0) + whole[13:]


def _compressed_query() -> bytes:
    statement = "INSERT INTO t1 VALUES (1)"
    return query(statement)[1][: -len(statement)] + mariadb_compressed(statement.encode())


BODIES: dict[int, bytes] = {
    t.UNKNOWN_EVENT: b"\x01\xff",
    t.START_EVENT_V3: struct.pack("<H50sI", 3, b"4.1.22", 99),
    t.QUERY_EVENT: query("DROP TABLE t1")[1],
    t.STOP_EVENT: b"",
    t.ROTATE_EVENT: struct.pack("<Q", 4) + b"binlog.000002",
    t.INTVAR_EVENT: struct.pack("<BQ", 2, 7),
    t.LOAD_EVENT: _LOAD + b',"\n?\\\x00\x08' + _LOAD_NAMES + b"data.txt\0",
    t.SLAVE_EVENT: struct.pack("<QH", 4711, 3306) + b"source.example\0binlog.000007",
    t.CREATE_FILE_EVENT: _LOAD + _FILE_ID + _DELIMITERS + _LOAD_NAMES + b"data.txt\0" + b"1\n",
    t.APPEND_BLOCK_EVENT: _FILE_ID + b"2\n",
    t.EXEC_LOAD_EVENT: _FILE_ID,
    t.DELETE_FILE_EVENT: _FILE_ID,
    t.NEW_LOAD_EVENT: _LOAD + _DELIMITERS + _LOAD_NAMES + b"data.txt",
    t.RAND_EVENT: struct.pack("<QQ", 1, 2),
    t.USER_VAR_EVENT: struct.pack("<I", 1) + b"v\x01",
    t.FORMAT_DESCRIPTION_EVENT: struct.pack("<H50sIB", 4, b"8.0.36", 99, t.HEADER_LENGTH)
    + FORMAT.post_header_lengths
    + b"\1",
    t.XID_EVENT: xid()[1],
    t.BEGIN_LOAD_QUERY_EVENT: _FILE_ID + b"1\n",
    t.EXECUTE_LOAD_QUERY_EVENT: _execute_load(),
    t.TABLE_MAP_EVENT: TABLE[1],
    **{code: rows(code, 7, 1, [image([integer(1)])] * 2)[1] for code in t.ROWS_EVENTS},
    t.PARTIAL_UPDATE_ROWS_EVENT: rows(
        t.PARTIAL_UPDATE_ROWS_EVENT, 7, 1, [image([integer(1)]), b"\0" + image([integer(2)])]
    )[1],
    t.INCIDENT_EVENT: b"\x01\x00\x07no disk",
    t.HEARTBEAT_LOG_EVENT: b"binlog.000001",
    t.IGNORABLE_LOG_EVENT: b"whatever",
    t.ROWS_QUERY_LOG_EVENT: b"\x06DELETE FROM t1",
    t.GTID_LOG_EVENT: gtid(3)[1],
    t.ANONYMOUS_GTID_LOG_EVENT: anonymous_gtid()[1],
    t.PREVIOUS_GTIDS_LOG_EVENT: _EMPTY_GTID_SET,
    t.TRANSACTION_CONTEXT_EVENT: struct.pack("<BIBIII", 36, 12, 1, 8, 1, 0)
    + str(SOURCE).encode()
    + _EMPTY_GTID_SET
    + b"\x02\x00ab",
    t.VIEW_CHANGE_EVENT: b"17:3".ljust(40, b"\0") + struct.pack("<QI", 5, 0),
    t.XA_PREPARE_LOG_EVENT: struct.pack("<BiII", 0, 1, 2, 1) + b"gtb",
    t.TRANSACTION_PAYLOAD_EVENT: payload(ONE_TRANSACTION)[1],
    t.HEARTBEAT_LOG_EVENT_V2: b"\x01\x06log.01\x02\x01\x05\0",
    t.GTID_TAGGED_LOG_EVENT: _tagged_gtid(),
    t.ANNOTATE_ROWS_EVENT: b"DELETE FROM t1",
    t.BINLOG_CHECKPOINT_EVENT: struct.pack("<I", 13) + b"binlog.000001",
    t.GTID_EVENT: mariadb_gtid(3)[1],
    t.GTID_LIST_EVENT: struct.pack("<IIIQ", 1, 0, 1, 9),
    t.START_ENCRYPTION_EVENT: struct.pack("<BI", 1, 2) + bytes(12),
    t.QUERY_COMPRESSED_EVENT: _compressed_query(),
    t.PARTIAL_ROW_DATA_EVENT: struct.pack("<IIB", 3, 1, 0) + b"xy",
}
"""After the header of 19 bytes, without a checksum."""


def binlog_of(parts: Iterable[Part]) -> list[bytes]:
    """All events of a file that has these parts after a format description that knows every type."""
    first = (t.FORMAT_DESCRIPTION_EVENT, BODIES[t.FORMAT_DESCRIPTION_EVENT])
    return make_events([first, *parts], 4, checksum=True)
