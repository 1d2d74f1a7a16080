"""What a source sends for a dump: the archive's own events, framed as a server frames them."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.binlog import event_types as t
from engine.binlog.event_types import EventHeader
from engine.binlog.events.decoding import decode_event
from engine.binlog.events.management import HeartbeatV2
from engine.binlog.format_description import FormatDescription, verify_checksum
from engine.errors import EngineError
from engine.net.archive_server import dump as dump_module
from engine.net.archive_server.archive import Archive
from engine.net.archive_server.dump import Dump
from engine.net.protocol.commands import BINLOG_SEND_ANNOTATE_ROWS, BINLOG_SEND_HEARTBEAT_V2, BinlogDump
from engine.net.protocol.packets import MAX_PACKET, PacketJoiner, ServerError
from tests.support.binlog_builder import MAGIC, MARIADB, write_binlog

INTVAR, QUERY = t.INTVAR_EVENT, t.QUERY_EVENT
bodies = st.lists(st.tuples(st.sampled_from([INTVAR, QUERY]), st.binary(max_size=60)), max_size=12)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("archive")


def dumped(
    archive: Archive, file: str = "", position: int = 4, checksum: str | None = "CRC32", flags: int = 0
) -> list[bytes]:
    """The events of a dump, each without the packet that carried it."""
    joiner = PacketJoiner(1 << 30)
    joiner.sequence = 1
    events = []
    for piece in Dump(archive, BinlogDump(file, position, 1, flags), checksum).stream():
        joiner.feed(piece)
        while (payload := joiner.next()) is not None:
            assert payload[0] == 0
            events.append(payload[1:])
    assert joiner.take_pending() == b""
    return events


def assert_rotates(event: bytes, name: str, position: int, checksum: bool) -> None:
    header = EventHeader.parse(event)
    assert (header.type_code, header.timestamp, header.next_position) == (t.ROTATE_EVENT, 0, 0)
    assert (header.flags, header.size, header.server_id) == (t.FLAG_ARTIFICIAL, len(event), 5)
    body = event[t.HEADER_LENGTH :]
    if checksum:
        assert int.from_bytes(body[-4:], "little") == zlib.crc32(event[:-4])
        body = body[:-4]
    assert body == position.to_bytes(8, "little") + name.encode()


@given(st.lists(bodies, min_size=1, max_size=3), st.booleans())
def test_a_dump_is_the_files_and_a_rotation_before_each(
    folder: Path, contents: list[list[tuple[int, bytes]]], checksum: bool
) -> None:
    paths = [folder / f"binlog.{number:06}" for number in range(len(contents))]
    written = [
        write_binlog(path, events, checksum=checksum) for path, events in zip(paths, contents, strict=True)
    ]
    events = dumped(Archive(paths), checksum="CRC32" if checksum else "NONE")
    for path, expected in zip(paths, written, strict=True):
        assert_rotates(events[0], path.name, 4, checksum)
        assert events[1 : len(expected) + 1] == expected
        events = events[len(expected) + 1 :]
    assert events == []


def test_the_first_rotation_has_a_checksum_only_if_the_client_reckons_with_it(folder: Path) -> None:
    path = folder / "binlog.1"
    write_binlog(path, [(INTVAR, b"a")])
    (first, *_), (other, *_) = (dumped(Archive([path]), checksum=checksum) for checksum in ("NONE", "CRC32"))
    assert_rotates(first, path.name, 4, checksum=False)
    assert_rotates(other, path.name, 4, checksum=True)


@given(bodies, st.data())
def test_a_dump_from_the_middle(folder: Path, contents: list[tuple[int, bytes]], data: st.DataObject) -> None:
    path = folder / "binlog.2"
    first, *rest = write_binlog(path, contents)
    skipped = data.draw(st.integers(0, len(rest)))
    position = len(MAGIC) + len(first) + sum(map(len, rest[:skipped]))
    rotate, description, *events = dumped(Archive([path]), path.name, position)
    assert_rotates(rotate, path.name, position, checksum=True)
    assert events == rest[skipped:]
    header, parsed = EventHeader.parse(description), FormatDescription.parse(description)
    assert (header.next_position, parsed.created) == (0, 0)
    verify_checksum(description, parsed)
    assert parsed.post_header_lengths == FormatDescription.parse(first).post_header_lengths


@given(bodies)
def test_a_client_that_knows_no_checksums_gets_none(folder: Path, contents: list[tuple[int, bytes]]) -> None:
    path = folder / "binlog.3"
    written = write_binlog(path, contents)
    rotate, description, *events = dumped(Archive([path]), checksum=None)
    assert_rotates(rotate, path.name, 4, checksum=False)
    assert FormatDescription.parse(description).checksum_length == 0
    for event, original in zip(events, written[1:], strict=True):
        assert event[:9] == original[:9]
        assert EventHeader.parse(event).size == len(event) == len(original) - 4
        assert event[13:] == original[13:-4]


def test_a_file_that_was_never_closed_does_not_say_so(folder: Path) -> None:
    path = folder / "binlog.4"
    (written,) = write_binlog(path, [], flags=t.FLAG_BINLOG_IN_USE)
    _, description = dumped(Archive([path]))
    assert description == written[:17] + b"\0\0" + written[19:]


@pytest.mark.parametrize("over", [-1, 0, 1, MAX_PACKET])
def test_large_events_travel_in_several_packets(folder: Path, over: int) -> None:
    path = folder / "binlog.5"
    size = MAX_PACKET - 1 - t.HEADER_LENGTH - 4 + over
    written = write_binlog(path, [(INTVAR, b"before"), (QUERY, b"q" * size), (INTVAR, b"after")])
    _, *events = dumped(Archive([path]))
    assert events == written
    _, _, before, large, after = dumped(Archive([path]), checksum=None)
    assert large[19:] == written[2][19:-4]
    assert (before[19:], after[19:]) == (b"before", b"after")


def test_memory_stays_small_whatever_the_event(folder: Path) -> None:
    path = folder / "binlog.6"
    write_binlog(path, [(QUERY, bytes(3 * MAX_PACKET))])
    pieces = Dump(Archive([path]), BinlogDump("", 4, 1), "CRC32").stream()
    assert max(map(len, pieces)) <= MAX_PACKET + 4


@pytest.mark.parametrize(
    ("file", "position", "says"),
    [
        ("nosuch.000001", 4, "Could not find first log file name"),
        ("binlog.7", 1 << 31, "position > file size"),
        ("binlog.7", 2, "position"),
        ("binlog.7", 5, "truncated in the middle of event|bogus data"),
    ],
)
def test_positions_that_do_not_exist(folder: Path, file: str, position: int, says: str) -> None:
    path = folder / "binlog.7"
    write_binlog(path, [(INTVAR, b"a")])
    with pytest.raises(ServerError, match=says) as caught:
        dumped(Archive([path]), file, position)
    assert caught.value.code == 1236


@given(bodies.filter(bool), st.data())
def test_all_valid_events_come_before_the_damage(
    folder: Path, contents: list[tuple[int, bytes]], data: st.DataObject
) -> None:
    path = folder / "binlog.8"
    written = write_binlog(path, contents)
    whole = path.read_bytes()
    archive = Archive([path])
    cut = data.draw(st.integers(len(MAGIC) + len(written[0]) + 1, len(whole) - 1))
    path.write_bytes(whole[:cut])
    dump = Dump(archive, BinlogDump("", 4, 1), "CRC32")
    received = b""
    try:
        for piece in dump.stream():
            received += piece
    except ServerError as error:
        assert "truncated" in error.message
    sound, end = [], len(MAGIC)
    for event in written:
        end += len(event)
        if end <= cut:
            sound.append(event)
    joiner = PacketJoiner()
    joiner.sequence = 1
    joiner.feed(received)
    events = []
    while (payload := joiner.next()) is not None:
        events.append(payload[1:])
    assert events[1:] == sound


@given(bodies.filter(bool), st.data())
def test_damage_raises_nothing_but_server_errors(
    folder: Path, contents: list[tuple[int, bytes]], data: st.DataObject
) -> None:
    path = folder / "binlog.9"
    first, *_ = write_binlog(path, contents)
    archive = Archive([path])
    whole = bytearray(path.read_bytes())
    for _ in range(3):
        place = data.draw(st.integers(len(MAGIC) + len(first), len(whole) - 1))
        whole[place] = data.draw(st.integers(0, 255))
    path.write_bytes(whole)
    for checksum in ("CRC32", None):
        try:
            list(Dump(archive, BinlogDump("", 4, 1), checksum).stream())
        except ServerError as error:
            assert error.code == 1236


def test_heartbeats_contain_the_position_of_the_dump(folder: Path) -> None:
    path = folder / "binlog.10"
    write_binlog(path, [(INTVAR, b"a")])
    dump = Dump(Archive([path]), BinlogDump("", 4, 1), "CRC32")
    list(dump.stream())
    event = dump.heartbeat()[5:]
    header = EventHeader.parse(event)
    assert (header.type_code, header.next_position) == (t.HEARTBEAT_LOG_EVENT, path.stat().st_size)
    assert event[t.HEADER_LENGTH : -4] == path.name.encode()
    assert int.from_bytes(event[-4:], "little") == zlib.crc32(event[:-4])


def test_heartbeats_of_new_replicas_know_positions_over_4_gb(folder: Path) -> None:
    path = folder / "binlog.13"
    write_binlog(path, [(INTVAR, b"a")])
    dump = Dump(Archive([path]), BinlogDump("", 4, 1, BINLOG_SEND_HEARTBEAT_V2), "CRC32")
    list(dump.stream())
    dump._position = 5 << 32
    event = dump.heartbeat()[5:]
    description = FormatDescription.parse(write_binlog(path, [])[0])
    decoded = decode_event(event, description)
    assert decoded.header.type_code == t.HEARTBEAT_LOG_EVENT_V2
    assert isinstance(decoded.body, HeartbeatV2)
    assert (decoded.body.file, decoded.body.position) == (path.name, 5 << 32)


def test_after_the_last_rotation_a_replica_is_in_the_next_file(folder: Path) -> None:
    path = folder / "binlog.14"
    write_binlog(path, [(INTVAR, b"a"), (t.ROTATE_EVENT, (4).to_bytes(8, "little") + b"binlog.15")])
    for checksum in ("CRC32", None):
        dump = Dump(Archive([path]), BinlogDump("", 4, 1), checksum)
        list(dump.stream())
        first, following = dump.heartbeat(), dump.heartbeat()
        # Replicas of MySQL 5.6 need the format first.
        made_up = EventHeader.parse(first[5:])
        assert (made_up.type_code, made_up.timestamp) == (t.FORMAT_DESCRIPTION_EVENT, 0)
        assert made_up.next_position == 0
        for event in (first[5 + made_up.size + 5 :], following[5:]):
            assert EventHeader.parse(event).next_position == 4
            assert event[t.HEADER_LENGTH :].startswith(b"binlog.15")


@pytest.mark.parametrize(
    ("flags", "version"), [(0, MARIADB), (BINLOG_SEND_ANNOTATE_ROWS, MARIADB), (0, "8.0.36")]
)
def test_a_replica_of_mariadb_gets_annotations_if_it_asks(folder: Path, flags: int, version: str) -> None:
    path = folder / "binlog.16"
    written = write_binlog(path, [(INTVAR, b"a"), (t.ANNOTATE_ROWS_EVENT, b"b"), (INTVAR, b"c")], version)
    wanted = written if flags or version != MARIADB else [written[0], written[1], written[3]]
    assert dumped(Archive([path]), flags=flags)[1:] == wanted


def test_pieces_are_large_enough_to_be_worth_a_system_call(folder: Path) -> None:
    path = folder / "binlog.11"
    write_binlog(path, [(INTVAR, bytes(100))] * 20_000)
    sizes = [len(piece) for piece in Dump(Archive([path]), BinlogDump("", 4, 1), "NONE").stream()]
    assert sum(size >= dump_module.PIECE_SIZE for size in sizes) >= len(sizes) - 4


def test_what_is_not_an_archive(folder: Path) -> None:
    with pytest.raises(EngineError, match="no binlog file is given"):
        Archive([])
    with pytest.raises(EngineError, match="cannot be read"):
        Archive([folder / "missing"])
    (folder / "text").write_text("hello")
    with pytest.raises(EngineError, match="is not a binlog"):
        Archive([folder / "text"])
    (folder / "bare").write_bytes(MAGIC)
    with pytest.raises(EngineError, match="is empty"):
        Archive([folder / "bare"])
    (folder / "other").mkdir(exist_ok=True)
    twins = [folder / "binlog.12", folder / "other" / "binlog.12"]
    for path in twins:
        write_binlog(path, [])
    with pytest.raises(EngineError, match="the same name"):
        Archive(twins)
