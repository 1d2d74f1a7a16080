"""A binlog file of MySQL 8.0.15, known as a hex dump with its author's comments, down to the last byte."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from engine.commands.events import show_events
from tests.support.event_dump import dump_bytes

UUID = "6f166d02-4484-11e9-8a8e-00163e100586"


@pytest.fixture
def dump_file(tmp_path: Path) -> Path:
    path = tmp_path / "binlog.000001"
    path.write_bytes(dump_bytes())
    return path


@pytest.fixture
def events(dump_file: Path) -> list[dict[str, Any]]:
    output = io.StringIO()
    show_events([dump_file], as_json=True, output=output)
    return [json.loads(line) for line in output.getvalue().splitlines()]


def test_events_follow_each_other_to_the_end(events: list[dict[str, Any]]) -> None:
    shown = [
        (event["pos"], event["end_pos"], event["size"], event["type"], event["type_code"]) for event in events
    ]
    assert shown == [
        (4, 124, 120, "FORMAT_DESCRIPTION_EVENT", 15),
        (124, 195, 71, "PREVIOUS_GTIDS_LOG_EVENT", 35),
        (195, 274, 79, "GTID_LOG_EVENT", 33),
        (274, 349, 75, "QUERY_EVENT", 2),
        (349, 397, 48, "TABLE_MAP_EVENT", 19),
        (397, 437, 40, "WRITE_ROWS_EVENT", 30),
        (437, 468, 31, "XID_EVENT", 16),
    ]
    assert len(dump_bytes()) == 468
    assert {event["file"] for event in events} == {"binlog.000001"}
    assert {event["server_id"] for event in events} == {1}
    assert [event["flags"] for event in events] == [1, 128, 0, 8, 0, 0, 0]


def test_format_description(events: list[dict[str, Any]]) -> None:
    data = events[0]["data"]
    assert events[0]["timestamp"] == data["created"] == 0x5C8F3735
    assert (data["binlog_version"], data["server_version"], data["header_length"]) == (4, "8.0.15", 19)
    # What the author takes for a checksum of five bytes is the algorithm and a checksum of four.
    assert len(bytes.fromhex(data["post_header_lengths"])) == 39
    assert data["checksum"] == "CRC32"


def test_gtids(events: list[dict[str, Any]]) -> None:
    assert events[1]["data"] == {"gtid_set": f"{UUID}:1-8"}
    assert events[2]["data"] == {
        "gtid": f"{UUID}:9",
        "may_have_statements": False,
        "last_committed": 0,
        "sequence_number": 1,
        "immediate_commit_timestamp": 1552889770411797,
        "original_commit_timestamp": 1552889770411797,
        "transaction_length": 273,
        "immediate_server_version": 80015,
        "original_server_version": 80015,
    }
    assert events[2]["data"]["transaction_length"] == events[-1]["end_pos"] - events[2]["pos"]


def test_query(events: list[dict[str, Any]]) -> None:
    assert events[3]["data"] == {
        "database": "test",
        # The author reads on into the checksum: BEGIN K l.
        "statement": "BEGIN",
        "thread_id": 11,
        "execution_time": 0,
        "error_code": 0,
        "status": {
            "flags2": 0,
            "sql_mode": 0x45A00020,
            "catalog": "std",
            "collation_client": 255,
            "collation_connection": 255,
            "collation_server": 255,
            "default_collation_for_utf8mb4": 255,
        },
    }


def test_table_map_and_row(events: list[dict[str, Any]]) -> None:
    table_map, write = events[4]["data"], events[5]["data"]
    assert (table_map["table_id"], table_map["database"], table_map["table"]) == (69, "test", "t1")
    (column,) = table_map["columns"]
    assert (column["name"], column["type"], column["nullable"], column["unsigned"]) == (
        "@1",
        "int",
        True,
        False,
    )
    assert (write["database"], write["table"], write["end_of_statement"]) == ("test", "t1", True)
    assert write["rows"] == [{"change_type": "insert", "values": {"@1": 9}}]


def test_xid(events: list[dict[str, Any]]) -> None:
    assert events[6]["data"] == {"xid": 23}


@pytest.mark.parametrize("position", [124, 195, 274, 349, 397, 437])
def test_every_checksum_is_valid_and_checked(dump_file: Path, position: int) -> None:
    damaged = bytearray(dump_bytes())
    damaged[position] ^= 1
    dump_file.write_bytes(damaged)
    output = io.StringIO()
    with pytest.raises(Exception, match=f"binlog.000001 at position {position}: the checksum is"):
        show_events([dump_file], as_json=True, output=output)
    last = json.loads(output.getvalue().splitlines()[-1])
    assert last["end_pos"] == position
