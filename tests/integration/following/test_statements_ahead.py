"""Which statements are found ahead of a stream, without a server: in a binlog made by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import cast

import pytest

from engine.binlog import event_types as types
from engine.binlog.position import BinlogPosition
from engine.errors import ConnectionFailed
from engine.net.batching.stream_position import StreamPosition
from engine.net.client import statements_ahead
from engine.net.client.connection import Connection
from engine.net.client.source_facts import SourceFacts
from engine.net.client.statements_ahead import Change, StatementsAhead
from tests.support.batches import packets_of
from tests.support.binlog_builder import Part, format_description, make_event, make_events
from tests.support.made_events import SIGNED_INT, gtid, image, integer, query, rows, table_map, xid

FILE = "binlog.000007"
FIRST = 4 + len(format_description())
EOF = b"\x05\0\0\x09\xfe\0\0\x02\0"


class Binlog:
    """The binlog of a server, which grows. Each dump of it comes event by event."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._events: list[tuple[int, bytes]] = []
        self.end = FIRST
        self.lost = False
        """The connection is lost before the end of a dump."""
        self.damaged: int | None = None
        """The position of an event that arrives damaged, by so many dumps."""
        self.damages = 2
        self.asked: list[int] = []
        """The positions at which dumps began."""
        self.stream = self
        monkeypatch.setattr(statements_ahead, "dump_to_end", self._dump)

    def add(self, *parts: Part) -> int:
        """Write these events; returns the position of the last one."""
        for event in make_events(parts, self.end, checksum=True):
            self._events.append((self.end, event))
            self.end += len(event)
        return self._events[-1][0]

    def execute(self, statement: str) -> int:
        """Write a statement; returns its position."""
        return self.add(gtid(1), query(statement))

    def insert(self, number: int) -> None:
        """Write a transaction with a row of `shop.t`."""
        written = rows(types.WRITE_ROWS_EVENT, 7, 1, [image([integer(number)])])
        self.add(gtid(number), query("BEGIN"), table_map(7, [SIGNED_INT], table="t"), written, xid())

    def ahead(self) -> StatementsAhead:
        facts = SimpleNamespace(checksum_algorithm=1)
        return StatementsAhead(
            lambda: cast(Connection, None), cast(SourceFacts, facts), lambda stream, empty: None
        )

    # -- as a `DumpStream` ----------------------------------------------------------------------------------

    def _dump(
        self, connection: object, facts: object, start: BinlogPosition, server_id: object, here: object
    ) -> Binlog:
        self.asked.append(start.position)
        self._sent = [event for at, event in self._damaged() if at >= start.position]
        return self

    def setblocking(self, blocking: bool) -> None:
        assert not blocking

    def receive(self, space: Callable[[], memoryview]) -> Iterator[int | None]:
        # In the middle of a file, a server sends it without a position.
        body = format_description()[types.HEADER_LENGTH : -types.CHECKSUM_LENGTH]
        first = make_event(types.FORMAT_DESCRIPTION_EVENT, body, (1 << 32) - FIRST + 4, checksum=True)
        for packet in (*(packets_of([event]) for event in (first, *self._sent)), EOF):
            if packet is EOF and self.lost:
                raise ConnectionFailed("it was lost")
            yield None
            space()[: len(packet)] = packet
            yield len(packet)

    def close(self) -> None:
        pass

    def _damaged(self) -> Iterator[tuple[int, bytes]]:
        damages, self.damages = self.damages, self.damages - (self.damaged is not None)
        for at, event in self._events:
            broken = at == self.damaged and damages > 0
            yield at, event[:-6] + bytes([event[-6] ^ 1]) + event[-5:] if broken else event


@pytest.fixture
def binlog(monkeypatch: pytest.MonkeyPatch) -> Binlog:
    return Binlog(monkeypatch)


def here(position: int, boundary: int | None = None) -> StreamPosition:
    return StreamPosition(FILE, position, position if boundary is None else boundary)


START = here(FIRST)


def changed(ahead: StatementsAhead, database: str, table: str) -> Change:
    change = ahead.change_of(database, table, START)
    assert change is not None
    return change


def test_only_what_may_change_a_table(binlog: Binlog) -> None:
    binlog.insert(1)
    binlog.execute("CREATE TABLE u (a INT)")
    altered = binlog.execute("ALTER TABLE t DROP a")
    binlog.execute("ALTER TABLE t ADD INDEX (a)")
    binlog.insert(2)
    ahead = binlog.ahead()
    ahead.read(START, None)
    assert ahead.change_of("shop", "u", START) is None
    found = ahead.change_of("shop", "t", START)
    assert found is not None
    assert (found.position, found.what) == (BinlogPosition(FILE, altered), "ALTER TABLE t DROP a")


def test_the_last_one_counts(binlog: Binlog) -> None:
    binlog.execute("ALTER TABLE t DROP a")
    dropped = binlog.execute("DROP TABLE t")
    ahead = binlog.ahead()
    ahead.read(START, None)
    assert changed(ahead, "shop", "t").position == BinlogPosition(FILE, dropped)


def test_a_long_statement_is_shown_in_part(binlog: Binlog) -> None:
    binlog.execute("ALTER TABLE t\n  DROP " + "a" * 1000)
    ahead = binlog.ahead()
    ahead.read(START, None)
    text = changed(ahead, "shop", "t").what
    assert text.startswith("ALTER TABLE t DROP aaa")
    assert text.endswith("…")
    assert len(text) <= 160


def test_each_part_once(binlog: Binlog) -> None:
    ahead = binlog.ahead()
    binlog.insert(1)
    of_t = binlog.execute("DROP TABLE t")
    first_end = binlog.end
    ahead.read(START, BinlogPosition(FILE, first_end))
    ahead.read(START, BinlogPosition(FILE, first_end))
    of_u = binlog.execute("DROP TABLE u")
    ahead.read(START, BinlogPosition(FILE, binlog.end))
    assert binlog.asked == [FIRST, first_end]
    assert ahead.end == BinlogPosition(FILE, binlog.end)
    assert changed(ahead, "shop", "t").position == BinlogPosition(FILE, of_t)
    assert changed(ahead, "SHOP", "U").position == BinlogPosition(FILE, of_u)
    assert ahead.change_of("shop", "v", START) is None


def test_from_where_a_dump_can_start(binlog: Binlog) -> None:
    binlog.insert(1)
    binlog.ahead().read(here(FIRST + 100, boundary=FIRST), None)
    assert binlog.asked == [FIRST]


def test_what_the_stream_came_past_does_not_count(binlog: Binlog) -> None:
    ahead = binlog.ahead()
    at = binlog.execute("DROP TABLE t")
    ahead.read(START, None)
    assert ahead.change_of("shop", "t", here(at)) is not None
    assert ahead.change_of("shop", "t", here(at + 1)) is None


def test_anew_where_the_stream_has_overtaken(binlog: Binlog) -> None:
    ahead = binlog.ahead()
    ahead.read(START, None)
    binlog.insert(1)
    later = binlog.end
    binlog.insert(2)
    ahead.read(here(later), None)
    assert binlog.asked == [FIRST, later]


def test_every_time_if_the_end_is_not_known(binlog: Binlog) -> None:
    ahead = binlog.ahead()
    binlog.insert(1)
    ahead.read(START, None)
    ahead.read(START, None)
    assert binlog.asked == [FIRST, binlog.end]


@pytest.mark.parametrize("transactions", [0, 3])
def test_what_cannot_be_read_may_change_every_table(binlog: Binlog, transactions: int) -> None:
    """Be it far ahead, or right where the dump started."""
    for number in range(transactions):
        binlog.insert(number)
    ahead = binlog.ahead()
    binlog.damaged = binlog.execute("DROP TABLE u")
    ahead.read(START, None)
    found = ahead.change_of("shop", "t", START)
    assert found is not None
    assert "checksum" in found.what
    assert found.position <= BinlogPosition(FILE, binlog.damaged)
    assert ahead.change_of("shop", "t", here(binlog.damaged + 1)) is None


def test_a_dump_that_begins_before_the_stream_may_fail_there(binlog: Binlog) -> None:
    ahead = binlog.ahead()
    binlog.damaged = binlog.execute("DROP TABLE u")
    at = here(binlog.end + 100, boundary=FIRST)
    ahead.read(at, None)
    assert ahead.change_of("shop", "t", at) is not None


def test_damage_that_comes_once_is_read_again(binlog: Binlog) -> None:
    ahead = binlog.ahead()
    binlog.insert(1)
    binlog.damaged, binlog.damages = binlog.execute("DROP TABLE u"), 1
    ahead.read(START, None)
    assert ahead.change_of("shop", "t", START) is None
    assert ahead.change_of("shop", "u", START) is not None


def test_a_lost_connection_is_not_an_answer(binlog: Binlog) -> None:
    binlog.lost = True
    with pytest.raises(ConnectionFailed):
        binlog.ahead().read(START, None)


def test_long_statements_are_not_kept_whole(binlog: Binlog) -> None:
    ahead = binlog.ahead()
    for comment in ("x", "x" * 5_000):
        binlog.execute(f"ALTER TABLE t ADD a INT COMMENT '{comment}'")
    ahead.read(START, None)
    short, long = ahead.changes_of("shop", "t", START)
    assert short.statement is not None
    assert (short.statement.position, long.statement) == (short.position, None)


def test_memory_is_bounded(binlog: Binlog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statements_ahead, "MOST_NAMES", 10)
    ahead = binlog.ahead()
    for number in range(50):
        binlog.execute(f"DROP TABLE t{number}")
    ahead.read(START, None)
    assert ahead.change_of("shop", "other", START) is not None
    assert len(ahead.changes_of("shop", "t49", START)) <= 11
