"""A dump by GTID begins at the right file, leaves out what the replica has, and says where it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.binlog import event_types as t
from engine.binlog.event_types import EventHeader
from engine.binlog.events.decoding import decode_event
from engine.binlog.events.mariadb import MariadbGtid
from engine.binlog.events.transactions import Gtid
from engine.binlog.format_description import FormatDescription
from engine.binlog.gtid_encoding import encode_gtid_set
from engine.binlog.gtid_set import MariadbGtidSet, MysqlGtidSet
from engine.net.archive_server import dump as dump_module
from engine.net.archive_server.archive import Archive
from engine.net.archive_server.dump import Dump
from engine.net.archive_server.replica_gtids import MariadbReplicaGtids, MysqlReplicaGtids, ReplicaGtids
from engine.net.protocol.commands import BinlogDump, BinlogDumpGtid
from engine.net.protocol.packets import PacketJoiner, ServerError
from tests.support.binlog_builder import MAGIC, MARIADB, MYSQL, Part, binlog
from tests.support.made_events import SOURCE, anonymous_gtid, gtid, mariadb_gtid, query, xid

SERVER = 5
"""The server id of all made events."""
PARSED = {version: FormatDescription.parse(binlog([], version)[0]) for version in (MYSQL, MARIADB)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("archive")


def write(path: Path, parts: Sequence[Part], version: str) -> Path:
    path.write_bytes(MAGIC + b"".join(binlog(parts, version, checksum=True)))
    return path


def previous_gtids(numbers: Sequence[int]) -> Part:
    gtid_set = MysqlGtidSet()
    for number in numbers:
        gtid_set.add(str(SOURCE), number, number)
    return t.PREVIOUS_GTIDS_LOG_EVENT, encode_gtid_set(gtid_set)


def gtid_list(gtids: dict[int, int]) -> Part:
    """The last number of each domain."""
    body = len(gtids).to_bytes(4, "little")
    for domain, number in gtids.items():
        body += domain.to_bytes(4, "little") + SERVER.to_bytes(4, "little") + number.to_bytes(8, "little")
    return t.GTID_LIST_EVENT, body


def dumped(
    archive: Archive, gtids: ReplicaGtids, request: BinlogDump | BinlogDumpGtid | None = None
) -> Iterator[tuple[str, EventHeader, bytes]]:
    """File, header and bytes of each event of a dump."""
    joiner = PacketJoiner()
    joiner.sequence = 1
    file = ""
    for piece in Dump(archive, request or BinlogDump("", 4, 1), "CRC32", gtids).stream():
        joiner.feed(piece)
        while (payload := joiner.next()) is not None:
            event = payload[1:]
            header = EventHeader.parse(event)
            if header.type_code == t.ROTATE_EVENT:
                file = event[t.HEADER_LENGTH + 8 : -4].decode()
            yield file, header, event


def named(event: bytes, version: str) -> str:
    body = decode_event(event, PARSED[version]).body
    assert isinstance(body, Gtid | MariadbGtid)
    return str(body.gtid)


def sent_gtids(events: Sequence[tuple[str, EventHeader, bytes]], version: str) -> list[str]:
    codes = (t.GTID_LOG_EVENT, t.GTID_EVENT)
    return [named(event, version) for _, header, event in events if header.type_code in codes]


def assert_whole(events: Sequence[tuple[str, EventHeader, bytes]]) -> None:
    """Every transaction is there with all its events, and a heartbeat replaces what is left out."""
    end = 0
    for _, header, _ in events:
        if header.type_code == t.ROTATE_EVENT:
            end = 4
        elif header.type_code == t.HEARTBEAT_LOG_EVENT:
            assert header.next_position > end
            end = header.next_position
        else:
            assert header.next_position - header.size == end
            end = header.next_position


def transactions_between(begin: int, end: int) -> list[Part]:
    return [part for number in range(begin, end) for part in (gtid(number), query("BEGIN"), xid())]


@given(st.data())
def test_a_mysql_replica_gets_what_it_lacks(folder: Path, data: st.DataObject) -> None:
    breaks = [1, *sorted(data.draw(st.lists(st.integers(1, 15), max_size=3))), 16]
    had = data.draw(st.sets(st.integers(1, 15)))
    paths = [
        write(
            folder / f"mysql.{number:06}",
            [previous_gtids(range(1, begin)), *transactions_between(begin, end)],
            MYSQL,
        )
        for number, (begin, end) in enumerate(pairwise(breaks))
    ]
    gtid_set = MysqlGtidSet.parse(",".join(f"{SOURCE}:{number}" for number in had))
    events = list(dumped(Archive(paths), MysqlReplicaGtids(gtid_set)))
    assert sent_gtids(events, MYSQL) == [f"{SOURCE}:{n}" for n in range(1, 16) if n not in had]
    first = max(number for number, begin in enumerate(breaks[:-1]) if all(n in had for n in range(1, begin)))
    assert events[0][0] == paths[first].name
    assert_whole(events)


@given(st.data())
def test_a_mariadb_replica_gets_what_follows_its_position(folder: Path, data: st.DataObject) -> None:
    domains = data.draw(st.lists(st.integers(0, 2), min_size=1, max_size=15))
    breaks = [0, *sorted(data.draw(st.lists(st.integers(0, len(domains)), max_size=3))), len(domains)]
    numbers = [domains[: index + 1].count(domain) for index, domain in enumerate(domains)]
    # What it has: of each domain the first so many transactions.
    had = {domain: data.draw(st.integers(0, domains.count(domain))) for domain in set(domains)}
    paths = []
    for number, (begin, end) in enumerate(pairwise(breaks)):
        parts = [gtid_list({domain: domains[:begin].count(domain) for domain in domains[:begin]})]
        for index in range(begin, end):
            standalone = index % 2
            parts.append(mariadb_gtid(numbers[index], domain=domains[index], flags=standalone))
            parts += [query("DROP TABLE a")] if standalone else [query("INSERT"), xid()]
        paths.append(write(folder / f"mariadb.{number:06}", parts, MARIADB))
    position = ",".join(f"{domain}-{SERVER}-{count}" for domain, count in had.items() if count)
    events = list(dumped(Archive(paths), MariadbReplicaGtids(MariadbGtidSet.parse(position))))
    lacking = [
        f"{domain}-{SERVER}-{number}"
        for domain, number in zip(domains, numbers, strict=True)
        if number > had[domain]
    ]
    assert sent_gtids(events, MARIADB) == lacking
    first = max(
        number
        for number, begin in enumerate(breaks[:-1])
        if all(domains[:begin].count(domain) <= had[domain] for domain in had)
    )
    assert events[0][0] == paths[first].name
    assert_whole(events)


def test_a_position_between_the_numbers_starts_after_it(folder: Path) -> None:
    path = write(
        folder / "gap",
        [gtid_list({}), *(part for number in (1, 2, 5, 6) for part in (mariadb_gtid(number), xid()))],
        MARIADB,
    )
    events = list(dumped(Archive([path]), MariadbReplicaGtids(MariadbGtidSet.parse("0-5-3"))))
    assert sent_gtids(events, MARIADB) == ["0-5-5", "0-5-6"]


def test_a_position_of_another_server_is_not_in_the_binlog(folder: Path) -> None:
    path = write(folder / "other", [gtid_list({}), mariadb_gtid(1), xid()], MARIADB)
    events = dumped(Archive([path]), MariadbReplicaGtids(MariadbGtidSet.parse("0-77-1,9-1-1")))
    with pytest.raises(ServerError, match="start from GTID 0-77-1, which is not in the master's binlog"):
        list(events)


def test_a_domain_that_the_archive_has_never_seen_does_no_harm(folder: Path) -> None:
    path = write(folder / "domain", [gtid_list({}), mariadb_gtid(1), xid()], MARIADB)
    events = list(dumped(Archive([path]), MariadbReplicaGtids(MariadbGtidSet.parse("9-1-1"))))
    assert sent_gtids(events, MARIADB) == ["0-5-1"]


def test_an_archive_that_begins_too_late(folder: Path) -> None:
    mysql = write(folder / "late.mysql", [previous_gtids([1, 2]), *transactions_between(3, 5)], MYSQL)
    with pytest.raises(ServerError, match="purged required binary logs"):
        list(dumped(Archive([mysql]), MysqlReplicaGtids(MysqlGtidSet.parse(f"{SOURCE}:1:3"))))
    mariadb = write(folder / "late.mariadb", [gtid_list({0: 2}), mariadb_gtid(3), xid()], MARIADB)
    for position in ("", "0-5-1", "1-5-2"):
        with pytest.raises(ServerError, match="have been purged"):
            list(dumped(Archive([mariadb]), MariadbReplicaGtids(MariadbGtidSet.parse(position))))


def test_transactions_without_gtids_cannot_be_asked_for_by_gtid(folder: Path) -> None:
    none = write(folder / "none", [previous_gtids([]), anonymous_gtid(), xid()], MYSQL)
    with pytest.raises(ServerError, match="GTID_MODE = OFF"):
        list(dumped(Archive([none]), MysqlReplicaGtids(MysqlGtidSet())))
    some = write(folder / "some", [previous_gtids([]), gtid(1), xid(), anonymous_gtid(), xid()], MYSQL)
    with pytest.raises(ServerError, match="anonymous transaction"):
        list(dumped(Archive([some]), MysqlReplicaGtids(MysqlGtidSet())))


def test_an_archive_whose_newest_file_is_empty_still_has_gtids(folder: Path) -> None:
    paths = [
        write(folder / "full.1", [previous_gtids([]), *transactions_between(1, 3)], MYSQL),
        write(folder / "full.2", [previous_gtids([1, 2])], MYSQL),
    ]
    assert Archive(paths).has_gtids
    assert Archive(paths[1:]).has_gtids
    events = list(dumped(Archive(paths), MysqlReplicaGtids(MysqlGtidSet.parse(f"{SOURCE}:1"))))
    assert sent_gtids(events, MYSQL) == [f"{SOURCE}:2"]


def test_a_file_that_was_asked_for_is_where_the_dump_begins(folder: Path) -> None:
    paths = [
        write(folder / "asked.1", [previous_gtids([]), *transactions_between(1, 4)], MYSQL),
        write(folder / "asked.2", [previous_gtids([1, 2, 3]), *transactions_between(4, 6)], MYSQL),
    ]
    had = MysqlGtidSet.parse(f"{SOURCE}:2-4")
    request = BinlogDumpGtid(1, encode_gtid_set(had), paths[0].name)
    events = list(dumped(Archive(paths), MysqlReplicaGtids(had), request))
    assert sent_gtids(events, MYSQL) == [f"{SOURCE}:{number}" for number in (1, 5)]


def test_a_long_silence_is_broken_by_heartbeats(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dump_module, "SILENT_BYTES", 5_000)
    path = write(folder / "long", [previous_gtids([]), *transactions_between(1, 200)], MYSQL)
    events = list(dumped(Archive([path]), MysqlReplicaGtids(MysqlGtidSet.parse(f"{SOURCE}:1-1000"))))
    heartbeats = [header for _, header, _ in events if header.type_code == t.HEARTBEAT_LOG_EVENT]
    assert len(heartbeats) >= path.stat().st_size // 6_000
    assert heartbeats[-1].next_position == path.stat().st_size
    assert_whole(events)
