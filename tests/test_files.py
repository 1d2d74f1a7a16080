"""Opening and reading local binlog files."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.decode import event_types as t
from engine.errors import BinlogError, EngineError
from engine.net.files import open_binlog, read_events
from tests.event_bytes import make_event
from tests.test_events_dump import dump_bytes


def write(folder: Path, data: bytes) -> Path:
    path = folder / "binlog.000001"
    path.write_bytes(data)
    return path


def test_events_and_positions(tmp_path):
    data = dump_bytes()
    events = list(read_events(write(tmp_path, data)))
    assert [position for position, _ in events] == [4, 124, 195, 274, 349, 397, 437]
    assert b"".join([data[:4], *(event for _, event in events)]) == data


def test_an_empty_binlog_has_no_events(tmp_path):
    assert list(read_events(write(tmp_path, b"\xfebin"))) == []


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "is no binlog: it starts with nothing"),
        (b"\xfebi", "is no binlog: it starts with fe 62 69, not with fe 62 69 6e"),
        (b"SQLite format 3\0", "is no binlog: it starts with 53 51 4c 69"),
        (b"\xfdbin" + bytes(600), "is an encrypted binlog, whose key only its server has"),
    ],
)
def test_what_is_no_binlog(tmp_path, data, reason):
    with pytest.raises(EngineError, match=reason):
        open_binlog(write(tmp_path, data))


def test_what_cannot_be_opened(tmp_path):
    with pytest.raises(EngineError, match="missing cannot be read: No such file"):
        open_binlog(tmp_path / "missing")
    with pytest.raises(EngineError, match="is no binlog: it is no regular file"):
        open_binlog(tmp_path)


def test_a_binlog_begins_with_its_format(tmp_path):
    with pytest.raises(BinlogError, match="at position 4: a binlog begins with a format description"):
        list(read_events(write(tmp_path, b"\xfebin" + make_event(t.STOP_EVENT, b""))))


@pytest.mark.parametrize("end", [5, 30, 123, 130, 194, 467])
def test_cut_off(tmp_path, end):
    events = []
    starts = [4, 124, 195, 274, 349, 397, 437]
    with pytest.raises(BinlogError, match="ends in the middle of an event") as caught:
        events.extend(read_events(write(tmp_path, dump_bytes()[:end])))
    assert caught.value.position == max(start for start in starts if start <= end)


def test_events_before_the_damage_come_first(tmp_path):
    data = bytearray(dump_bytes())
    data[274 + 9 : 274 + 13] = (5).to_bytes(4, "little")
    seen = []
    with pytest.raises(BinlogError, match="at position 274: an event cannot have 5 bytes"):
        for position, _ in read_events(write(tmp_path, bytes(data))):
            seen.append(position)
    assert seen == [4, 124, 195]


def test_a_size_beyond_the_file_costs_no_memory(tmp_path):
    data = bytearray(dump_bytes())
    data[274 + 9 : 274 + 13] = (0xFFFFFFFF).to_bytes(4, "little")
    with pytest.raises(BinlogError, match="at position 274: the file ends in the middle of an event"):
        list(read_events(write(tmp_path, bytes(data))))
