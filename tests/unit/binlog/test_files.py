"""Opening and reading local binlog files."""

from __future__ import annotations

import io
import json
import struct
from pathlib import Path

import pytest

from engine.binlog import event_types as t
from engine.binlog.files import open_binlog, read_events
from engine.commands.events import show_events
from engine.errors import BinlogError, EngineError
from tests.support.binlog_builder import make_event
from tests.support.event_dump import dump_bytes


def write(folder: Path, data: bytes) -> Path:
    path = folder / "binlog.000001"
    path.write_bytes(data)
    return path


def test_events_and_positions(tmp_path: Path) -> None:
    data = dump_bytes()
    events = list(read_events(write(tmp_path, data)))
    assert [position for position, _ in events] == [4, 124, 195, 274, 349, 397, 437]
    assert b"".join([data[:4], *(event for _, event in events)]) == data


def test_an_empty_binlog_has_no_events(tmp_path: Path) -> None:
    assert list(read_events(write(tmp_path, b"\xfebin"))) == []


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "is not a binlog: it starts with nothing"),
        (b"\xfebi", "is not a binlog: it starts with fe 62 69, not with fe 62 69 6e"),
        (b"SQLite format 3\0", "is not a binlog: it starts with 53 51 4c 69"),
        (b"\xfdbin" + bytes(600), "is an encrypted binlog, whose key only its server has"),
    ],
)
def test_what_is_not_a_binlog(tmp_path: Path, data: bytes, reason: str) -> None:
    with pytest.raises(EngineError, match=reason):
        open_binlog(write(tmp_path, data))


def test_what_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="missing cannot be read: No such file"):
        open_binlog(tmp_path / "missing")
    with pytest.raises(EngineError, match="is not a binlog: it is not a regular file"):
        open_binlog(tmp_path)


def test_a_binlog_begins_with_its_format(tmp_path: Path) -> None:
    with pytest.raises(BinlogError, match="at position 4: a binlog begins with a format description"):
        list(read_events(write(tmp_path, b"\xfebin" + make_event(t.STOP_EVENT, b""))))


@pytest.mark.parametrize("end", [5, 30, 123, 130, 194, 467])
def test_cut_off(tmp_path: Path, end: int) -> None:
    events: list[tuple[int, bytes]] = []
    starts = [4, 124, 195, 274, 349, 397, 437]
    with pytest.raises(BinlogError, match="ends in the middle of an event") as caught:
        events.extend(read_events(write(tmp_path, dump_bytes()[:end])))
    assert caught.value.position == max(start for start in starts if start <= end)


def test_events_before_the_damage_come_first(tmp_path: Path) -> None:
    data = bytearray(dump_bytes())
    data[274 + 9 : 274 + 13] = (5).to_bytes(4, "little")
    seen = []
    with pytest.raises(BinlogError, match="at position 274: an event cannot have 5 bytes"):
        for position, _ in read_events(write(tmp_path, bytes(data))):
            seen.append(position)
    assert seen == [4, 124, 195]


def test_a_size_beyond_the_file_costs_no_memory(tmp_path: Path) -> None:
    data = bytearray(dump_bytes())
    data[274 + 9 : 274 + 13] = (0xFFFFFFFF).to_bytes(4, "little")
    with pytest.raises(BinlogError, match="at position 274: the file ends in the middle of an event"):
        list(read_events(write(tmp_path, bytes(data))))


def test_binlogs_of_mysql_323_have_shorter_headers(tmp_path: Path) -> None:
    def old_event(type_code: int, body: bytes) -> bytes:
        return struct.pack("<IBII", 960_000_000, type_code, 1, 13 + len(body)) + body

    start = old_event(t.START_EVENT_V3, struct.pack("<H50sI", 1, b"3.23.58-log", 960_000_000))
    query = old_event(t.QUERY_EVENT, struct.pack("<IIBH", 5, 0, 4, 0) + b"test\0DROP TABLE t")
    rotate = old_event(t.ROTATE_EVENT, b"log.002")
    output = io.StringIO()
    path = write(tmp_path, b"\xfebin" + start + query + rotate)
    show_events([path], as_json=True, output=output)
    events = [json.loads(line) for line in output.getvalue().splitlines()]
    assert [event["pos"] for event in events] == [4, 4 + len(start), 4 + len(start) + len(query)]
    assert events[0]["data"]["binlog_version"] == 1
    assert (events[1]["data"]["database"], events[1]["data"]["statement"]) == ("test", "DROP TABLE t")
    assert events[2]["data"] == {"next_file": "log.002", "position": 4}
