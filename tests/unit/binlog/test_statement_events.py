"""Events of statements, user variables and LOAD DATA, from bytes."""

from __future__ import annotations

import struct
import zlib

import pytest

from engine.binlog import event_types as t
from engine.errors import EventError
from tests.support.binlog_builder import with_post_header
from tests.support.event_bodies import (
    LOAD_FIXED,
    LOAD_NAMES,
    body_of,
    json_of,
    query,
    user_var,
)


def test_query_status_variables() -> None:
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


def test_status_variables_stop_at_an_unknown_one() -> None:
    data = json_of(t.QUERY_EVENT, query(b"DO 1", b"\x0c\xfe" + b"\x7f\x01\x02"))
    assert data["status"] == {"updated_databases": None, "unknown_variable": 0x7F, "unknown_bytes": "0102"}


def test_statements_in_other_character_sets() -> None:
    latin1 = b"\x04" + struct.pack("<HHH", 8, 8, 8)
    assert json_of(t.QUERY_EVENT, query(b"SELECT '\xfc'", latin1))["statement"] == "SELECT 'ü'"
    data = json_of(t.QUERY_EVENT, query(b"SELECT _binary'\xff'"))
    assert data["statement"] == "SELECT _binary'\\xff'"
    assert bytes.fromhex(data["statement_bytes"]) == b"SELECT _binary'\xff'"


def test_old_query_has_no_status_variables() -> None:
    fmt = with_post_header(t.QUERY_EVENT, 11)
    body = struct.pack("<IIBH", 1, 0, 4, 0) + b"test\0insert t1 values (1)"
    data = json_of(t.QUERY_EVENT, body, fmt)
    assert (data["database"], data["statement"], data["status"]) == ("test", "insert t1 values (1)", {})


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
def test_user_variables(body: bytes, expected: dict[str, bool | float | str]) -> None:
    data = json_of(t.USER_VAR_EVENT, body)
    if expected["type"] == "decimal":
        # The example of MySQL's own comment on its binary format: 1234567890.1234.
        assert data["value"] == "1234567890.1234"
        return
    assert data == expected


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


def test_load_with_delimiters_of_one_character() -> None:
    body = LOAD_FIXED + b',"\n?\\' + b"\x04" + b"\x08" + LOAD_NAMES + b"data.txt\0"
    assert json_of(t.LOAD_EVENT, body) == LOAD_SHOWN


def test_new_load() -> None:
    delimiters = b'\x01,\x01"\x01\n\x00\x01\\' + b"\x04"
    assert json_of(t.NEW_LOAD_EVENT, LOAD_FIXED + delimiters + LOAD_NAMES + b"data.txt") == LOAD_SHOWN
    create = LOAD_FIXED + struct.pack("<I", 9) + delimiters + LOAD_NAMES + b"data.txt\0" + b"1,2\n"
    assert json_of(t.CREATE_FILE_EVENT, create) == LOAD_SHOWN | {"file_id": 9, "block": b"1,2\n".hex()}


def test_pieces_of_a_file() -> None:
    assert json_of(t.APPEND_BLOCK_EVENT, b"\x09\0\0\0xyz") == {"file_id": 9, "block": "78797a"}
    for type_code in (t.EXEC_LOAD_EVENT, t.DELETE_FILE_EVENT):
        assert json_of(type_code, b"\x09\0\0\0") == {"file_id": 9}


def compressed_record(original: bytes, claimed: int | None = None) -> bytes:
    claimed = len(original) if claimed is None else claimed
    return b"\x82" + claimed.to_bytes(2, "big") + zlib.compress(original)


def test_mariadb_compressed_query() -> None:
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
