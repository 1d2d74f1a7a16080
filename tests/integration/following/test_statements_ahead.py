"""Which statements are found ahead of a stream, without a server: in batches of bytes made by hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from engine.binlog import event_types as types
from engine.binlog.position import BinlogPosition
from engine.errors import BinlogError, ConnectionFailed, EngineError
from engine.net.batching.batcher import Batcher
from engine.net.batching.outgoing_batch import OutgoingBatch
from engine.net.batching.stream_position import StreamPosition
from engine.net.client import statements_ahead
from engine.net.client.server_queries import SourceFacts
from engine.net.client.statements_ahead import StatementsAhead, changes_in
from engine.schema.altered_tables import ANY_TABLE
from tests.support.batches import feed, packets_of
from tests.support.binlog_builder import Part, binlog
from tests.support.made_events import SIGNED_INT, gtid, image, integer, query, rows, table_map, xid

FILE = "binlog.000007"


def transaction(number: int) -> list[Part]:
    written = rows(types.WRITE_ROWS_EVENT, 7, 1, [image([integer(number)])])
    return [gtid(number), query("BEGIN"), table_map(7, [SIGNED_INT], table="t"), written, xid()]


def batches_of(events: Sequence[bytes]) -> list[OutgoingBatch]:
    batcher = Batcher(
        lambda table_map: None, file=FILE, checksum_algorithm=1, decode=statements_ahead._STATEMENTS_ONLY
    )
    return list(feed(batcher, packets_of(events), []))


def found_in(parts: list[Part]) -> list[tuple[int, str]]:
    """Position and text of the statements."""
    batches = batches_of(binlog(parts))
    return [(at.position, text) for batch in batches for at, _, text in changes_in(batch)]


def test_only_what_may_change_a_table():
    parts = [
        *(*transaction(1), gtid(2), query("CREATE TABLE u (a INT)")),
        *(gtid(3), query("ALTER TABLE t DROP a"), gtid(4), query("ALTER TABLE t ADD INDEX (a)")),
        *(*transaction(5), gtid(6), query("DROP TABLE t")),
    ]
    starts = [4]
    for event in binlog(parts):
        starts.append(starts[-1] + len(event))
    # The format description comes before the parts.
    altered, dropped = (
        starts[1 + parts.index(query(text))] for text in ("ALTER TABLE t DROP a", "DROP TABLE t")
    )
    assert found_in(parts) == [(altered, "ALTER TABLE t DROP a"), (dropped, "DROP TABLE t")]


def test_a_long_statement_is_shown_in_part():
    ((_, text),) = found_in([gtid(1), query("ALTER TABLE t\n  DROP " + "a" * 1000)])
    assert text.startswith("ALTER TABLE t DROP aaa")
    assert text.endswith("…")
    assert len(text) <= 160


def test_a_damaged_statement_is_an_error():
    events = binlog([gtid(1), query("ALTER TABLE t DROP a")])
    damaged = bytearray(events[-1])
    damaged[-6] ^= 1
    with pytest.raises(BinlogError, match="checksum"):
        batches_of([*events[:-1], bytes(damaged)])


class Binlog:
    """In place of `dump_batches` of a server whose binlog grows."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.statements: list[tuple[int, str]] = []
        self.end = 1000
        self.error: EngineError | None = None
        self.errors = 2
        """How many dumps the error ends."""
        self.asked: list[tuple[str, int]] = []
        monkeypatch.setattr(statements_ahead, "dump_batches", self._batches)
        monkeypatch.setattr(statements_ahead, "changes_in", self._changes)

    def ahead(self) -> StatementsAhead:
        facts: SourceFacts = None  # type: ignore[assignment]
        return StatementsAhead(lambda: None, facts)  # type: ignore[arg-type, return-value]

    def _batches(self, connection, facts, file, position, **options) -> Iterator[OutgoingBatch]:
        self.asked.append((file, position))
        self._from = position
        (last,) = batches_of([])[-1:]
        yield _batch(last, self.end)
        if self.error is not None and self.errors:
            self.errors -= 1
            raise self.error

    def _changes(self, batch):
        for position, table in self.statements:
            if self._from <= position < self.end:
                yield BinlogPosition(FILE, position), frozenset([("shop", table)]), f"DROP TABLE {table}"


def _batch(batch: OutgoingBatch, end: int) -> OutgoingBatch:
    status = replace(batch.header.status, end_of_stream=False, resume=BinlogPosition(FILE, end))
    header = replace(batch.header, status=status)
    return replace(batch, header=header)


def here(position: int) -> StreamPosition:
    return StreamPosition(FILE, position, position - 10)


class TestReadingAhead:
    @pytest.fixture
    def binlog(self, monkeypatch: pytest.MonkeyPatch) -> Binlog:
        return Binlog(monkeypatch)

    def test_each_part_once(self, binlog: Binlog):
        ahead = binlog.ahead()
        binlog.statements = [(500, "t"), (1500, "u")]
        ahead.read(here(200), BinlogPosition(FILE, 1000))
        ahead.read(here(300), BinlogPosition(FILE, 1000))
        binlog.end = 2000
        ahead.read(here(300), BinlogPosition(FILE, 2000))
        assert binlog.asked == [(FILE, 190), (FILE, 1000)]
        assert ahead.end == BinlogPosition(FILE, 2000)
        assert ahead.change_of("shop", "t", here(300)).position == BinlogPosition(FILE, 500)
        assert ahead.change_of("SHOP", "U", here(300)).position == BinlogPosition(FILE, 1500)
        assert ahead.change_of("shop", "v", here(300)) is None

    def test_what_the_stream_came_past_does_not_count(self, binlog: Binlog):
        ahead = binlog.ahead()
        binlog.statements = [(500, "t")]
        ahead.read(here(200), None)
        assert ahead.change_of("shop", "t", here(500)) is not None
        assert ahead.change_of("shop", "t", here(501)) is None

    def test_anew_where_the_stream_has_overtaken(self, binlog: Binlog):
        ahead = binlog.ahead()
        ahead.read(here(200), None)
        binlog.end = 9000
        ahead.read(here(5000), None)
        assert binlog.asked == [(FILE, 190), (FILE, 4990)]

    def test_every_time_if_the_end_is_not_known(self, binlog: Binlog):
        ahead = binlog.ahead()
        ahead.read(here(200), None)
        ahead.read(here(200), None)
        assert binlog.asked == [(FILE, 190), (FILE, 1000)]

    @pytest.mark.parametrize("end", [195, 1000])
    def test_what_cannot_be_read_may_change_every_table(self, binlog: Binlog, end: int):
        """Be it far ahead, or right where the dump started."""
        ahead = binlog.ahead()
        binlog.end = end
        binlog.error = BinlogError(FILE, end + 1, "it is damaged")
        ahead.read(here(200), None)
        found = ahead.change_of("shop", "t", here(200))
        assert found is not None
        assert "it is damaged" in found.what
        assert ahead.change_of("shop", "t", here(1201)) is None

    def test_damage_that_comes_once_is_read_again(self, binlog: Binlog):
        ahead = binlog.ahead()
        binlog.statements = [(500, "u")]
        binlog.error, binlog.errors = BinlogError(FILE, 1001, "it is damaged"), 1
        ahead.read(here(200), None)
        assert ahead.change_of("shop", "t", here(200)) is None
        assert ahead.change_of("shop", "u", here(200)) is not None

    def test_a_lost_connection_is_not_an_answer(self, binlog: Binlog):
        binlog.error = ConnectionFailed("it was lost")
        with pytest.raises(ConnectionFailed):
            binlog.ahead().read(here(200), None)

    def test_memory_is_bounded(self, binlog: Binlog, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(statements_ahead, "MOST_NAMES", 10)
        ahead = binlog.ahead()
        binlog.statements = [(200 + number, f"t{number}") for number in range(50)]
        ahead.read(here(100), None)
        assert ahead.change_of("shop", "other", here(100)) is not None
        assert len(ahead._last) <= 11
        assert ANY_TABLE in ahead._last
