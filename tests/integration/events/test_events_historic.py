"""Binlogs of servers of the past, MySQL 4.0 to 8.0 and MariaDB 5.5 to 10.6, event by event."""

from __future__ import annotations

import contextlib
import io
import json
import random
import struct
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from engine.binlog.events.decoding import decode_event
from engine.binlog.files import read_events
from engine.binlog.format_description import FormatDescription
from engine.commands.events import show_events
from engine.config.decode_options import DecodeOptions
from engine.config.table_filter import TableFilter
from engine.decode.inspect.event_stream import PlacedEvent, decode_all
from engine.errors import BinlogError, EventError
from tests.support.batches import decode_all as decode_all_batches
from tests.support.batches import events_of, feed
from tests.support.binlog_builder import resized
from tests.support.engine_run import run_command
from tests.support.transaction_pictures import batcher
from tests.support.written_events import fields_of

OLD = "binlog_old_version_4_1.000001"
ROWS_V0 = "ver_5_1_17.001"
ROWS_V2 = "ver_trunk_row_v2.001"


def decode_file(path: Path) -> list[PlacedEvent]:
    return list(decode_all((path.name, position, data) for position, data in read_events(path)))


def types_of(events: list[PlacedEvent]) -> Counter[str]:
    return Counter(placed.event.type_name for placed in events)


def bodies(events: list[PlacedEvent], name: str) -> list[Any]:
    return [fields_of(placed.event) for placed in events if placed.event.type_name == name]


SOUND = {
    OLD: {
        *("START_EVENT_V3", "QUERY_EVENT", "INTVAR_EVENT", "RAND_EVENT", "USER_VAR_EVENT"),
        *("CREATE_FILE_EVENT", "APPEND_BLOCK_EVENT", "EXEC_LOAD_EVENT"),
    },
    ROWS_V0: {
        *("FORMAT_DESCRIPTION_EVENT", "QUERY_EVENT", "TABLE_MAP_EVENT", "XID_EVENT"),
        *("PRE_GA_WRITE_ROWS_EVENT", "PRE_GA_UPDATE_ROWS_EVENT", "PRE_GA_DELETE_ROWS_EVENT"),
        *("INTVAR_EVENT", "RAND_EVENT", "USER_VAR_EVENT"),
        *("BEGIN_LOAD_QUERY_EVENT", "APPEND_BLOCK_EVENT", "EXECUTE_LOAD_QUERY_EVENT"),
    },
    ROWS_V2: {
        *("FORMAT_DESCRIPTION_EVENT", "QUERY_EVENT", "TABLE_MAP_EVENT", "XID_EVENT", "ROTATE_EVENT"),
        *("WRITE_ROWS_EVENT", "UPDATE_ROWS_EVENT", "DELETE_ROWS_EVENT"),
        *("INTVAR_EVENT", "RAND_EVENT", "USER_VAR_EVENT"),
        *("BEGIN_LOAD_QUERY_EVENT", "APPEND_BLOCK_EVENT", "EXECUTE_LOAD_QUERY_EVENT"),
    },
    "bug32407.001": {"FORMAT_DESCRIPTION_EVENT", "QUERY_EVENT", "STOP_EVENT"},
    "bug40482-bin.000001": {"FORMAT_DESCRIPTION_EVENT", "INCIDENT_EVENT", "ROTATE_EVENT"},
    "mariadb-5.5-binlog.000001": {"FORMAT_DESCRIPTION_EVENT", "QUERY_EVENT", "XID_EVENT"},
    "mdev6020-mysql-bin.000001": {"FORMAT_DESCRIPTION_EVENT", "GTID_LIST_EVENT", "GTID_EVENT"},
    "mdev35643_mysql_80_binlog.000001": {"ANONYMOUS_GTID_LOG_EVENT", "PREVIOUS_GTIDS_LOG_EVENT"},
    "master-bin.000001": {"START_EVENT_V3", "STOP_EVENT"},
    "mdev-4645-binlog_group_id_checksum.binlog": {"FORMAT_DESCRIPTION_EVENT", "QUERY_EVENT"},
    # Cut off inside a transaction, but between two events.
    "trunc_binlog.000001": {"START_EVENT_V3", "QUERY_EVENT"},
}


@pytest.mark.parametrize("name", SOUND)
def test_sound_files(historic: dict[str, Path], name: str) -> None:
    events = decode_file(historic[name])
    assert SOUND[name] <= set(types_of(events))
    assert "UNKNOWN_EVENT" not in types_of(events)
    ends = [placed.end_position for placed in events if not placed.in_payload]
    assert ends[-1] == historic[name].stat().st_size
    for placed in events:
        json.dumps(placed.event.to_json())


def test_binlog_version_3(historic: dict[str, Path]) -> None:
    events = decode_file(historic[OLD])
    start = fields_of(events[0].event)
    assert (start.binlog_version, start.header_length, start.checksum) == (3, 19, "NONE")
    assert start.server_version.startswith("4.1")
    (create,) = bodies(events, "CREATE_FILE_EVENT")
    assert (create.database, create.table, create.columns, create.file) == (
        "test",
        "t3",
        ("a",),
        "big_file.dat",
    )
    (block,) = bodies(events, "APPEND_BLOCK_EVENT")
    (end,) = bodies(events, "EXEC_LOAD_EVENT")
    assert create.file_id == block.file_id == end.file_id
    content = create.block + block.block
    words = content.decode().splitlines()
    assert words[0] == "Aarhus"
    assert all(word.isprintable() for word in words)
    assert all(query.status == {} for query in bodies(events, "QUERY_EVENT"))


def test_binlog_version_1(tmp_path: Path) -> None:
    """MySQL 3.23: headers of 13 bytes, and rotations without a position. The test data has no file of it."""

    def event(code: int, body: bytes) -> bytes:
        return struct.pack("<IBII", 946684800, code, 7, 13 + len(body)) + body

    path = tmp_path / "log.001"
    statement = b"INSERT INTO t VALUES (NULL)"
    events = [
        event(1, struct.pack("<H50sI", 1, b"3.23.58-log", 99)),
        event(5, struct.pack("<BQ", 2, 7)),
        event(2, struct.pack("<IIBH", 3, 0, 4, 0) + b"shop\0" + statement),
        event(4, b"log.002"),
        event(3, b""),
    ]
    path.write_bytes(b"\xfebin" + b"".join(events))
    placed = decode_file(path)
    assert [p.end_position - p.position for p in placed] == [len(event) for event in events]
    start, insert_id, query, rotate, _ = (fields_of(p.event) for p in placed)
    assert (start.binlog_version, start.header_length, start.server_version) == (1, 13, "3.23.58-log")
    assert (insert_id.kind, insert_id.value) == ("INSERT_ID", 7)
    assert (query.database, query.statement, query.thread_id) == ("shop", statement.decode(), 3)
    assert (rotate.next_file, rotate.position) == ("log.002", 4)
    assert {p.event.header.timestamp for p in placed} == {946684800}
    output = run_command("decode", str(path), "--out", str(tmp_path / "out"))
    assert "events with headers of 13 bytes" in output.sentence


def test_loaded_file_is_the_same_in_all_versions(historic: dict[str, Path]) -> None:
    contents = []
    for name in (OLD, ROWS_V0, ROWS_V2):
        events = decode_file(historic[name])
        pieces = [
            fields_of(placed.event).block
            for placed in events
            if placed.event.type_name in ("CREATE_FILE_EVENT", "BEGIN_LOAD_QUERY_EVENT", "APPEND_BLOCK_EVENT")
        ]
        contents.append(b"".join(pieces))
    assert contents[0] == contents[1] == contents[2]


def test_rows_version_2(historic: dict[str, Path]) -> None:
    events = decode_file(historic[ROWS_V2])
    changes = [row for placed in events for row in placed.rows or () if placed.table == ("test", "t1")]
    assert changes[:2] == [
        {"change_type": "insert", "values": {"@1": 0, "@2": "one"}},
        {"change_type": "insert", "values": {"@1": 1, "@2": "two"}},
    ]
    assert {row["change_type"] for row in changes} == {
        "insert",
        "update_preimage",
        "update_postimage",
        "delete",
    }


def test_rows_version_0_are_shown_undecoded(historic: dict[str, Path]) -> None:
    events = [placed for placed in decode_file(historic[ROWS_V0]) if placed.table is not None]
    assert {placed.table for placed in events} == {("test", "t1")}
    assert len(events) == 3
    for placed in events:
        assert placed.rows is None
        assert "contain neither the lengths nor the nullability" in (placed.rows_error or "")


def test_rows_version_0_end_the_pipeline_where_they_are(historic: dict[str, Path]) -> None:
    events = events_of(historic[ROWS_V0])
    decoded = decode_all_batches(list(feed(batcher(marker=None), b"".join(events), [])))
    assert decoded.error is not None
    assert decoded.error.startswith("binlog.000001 at position 461: rows events of MySQL before 5.1.18")
    assert not decoded.rows.get("t1")
    assert "CREATE TABLE" in decoded.rows[""][0]["statement"].upper()
    unwanted = DecodeOptions(tables=TableFilter(("other.*",)))
    decoded = decode_all_batches(list(feed(batcher(marker=None), b"".join(events), [])), unwanted)
    assert decoded.error is None


def test_longer_headers(historic: dict[str, Path]) -> None:
    """A branch of MySQL 5.1 had headers of 31 bytes, as format descriptions allow."""
    events = decode_file(historic["mdev-4645-binlog_group_id_checksum.binlog"])
    assert fields_of(events[0].event).header_length == 31
    assert bodies(events, "QUERY_EVENT")[1].statement == "insert into test.t1 (id) values (1)"


def test_incident(historic: dict[str, Path]) -> None:
    (incident,) = bodies(decode_file(historic["bug40482-bin.000001"]), "INCIDENT_EVENT")
    assert (incident.incident, incident.name) == (66, "UNKNOWN")


DAMAGED = {
    "binlog_before_20574.bin": (2, "the rest of the file is encrypted"),
    "bug11747416_32228_binlog.000001": (4, "the file ends in the middle of an event"),
    "mdev-39404-binlog.000001": (1, "the checksum is"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_files(historic: dict[str, Path], name: str) -> None:
    count, reason = DAMAGED[name]
    output = io.StringIO()
    with pytest.raises(BinlogError, match=reason) as caught:
        show_events([historic[name]], as_json=True, output=output)
    shown = [json.loads(line) for line in output.getvalue().splitlines()]
    assert len(shown) == count
    assert caught.value.file == name
    assert caught.value.position in (shown[-1]["end_pos"], shown[-1]["pos"])


def every_kind(historic: dict[str, Path]) -> dict[tuple[int, int], tuple[bytes, FormatDescription]]:
    """One event of each type per size of its file's headers, not too large, with its format."""
    found: dict[tuple[int, int], tuple[bytes, FormatDescription]] = {}
    for name in SOUND:
        fmt = FormatDescription.assumed()
        for position, data in read_events(historic[name]):
            if position == 4:
                fmt = FormatDescription.parse(data)
            if len(data) < 600:
                found.setdefault((data[4], fmt.header_length), (data, fmt))
    return found


def test_truncation_anywhere(historic: dict[str, Path]) -> None:
    tried = 0
    for data, fmt in every_kind(historic).values():
        for end in range(len(data)):
            for cut in (data[:end], resized(data[:end]) if end >= fmt.header_length else b""):
                tried += 1
                with contextlib.suppress(EventError):
                    decode_event(cut, fmt)
    assert tried > 3000


def test_flipped_bits(historic: dict[str, Path]) -> None:
    random.seed(20240229)
    for data, fmt in every_kind(historic).values():
        for _ in range(200):
            damaged = bytearray(data)
            for _ in range(random.randint(1, 4)):
                damaged[random.randrange(len(data))] ^= 1 << random.randrange(8)
            with contextlib.suppress(EventError):
                decode_event(bytes(damaged), fmt)
