"""GTIDs of a batch in bulk, against the readable decoder of single events."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.binlog import event_types as types
from engine.binlog.event_table import EventTable, EventTableError, open_events
from engine.binlog.events.decoding import decode_event
from engine.binlog.events.mariadb import MariadbGtid
from engine.binlog.events.transactions import Gtid
from engine.binlog.format_description import FormatDescription
from engine.binlog.gtid_events import gtid_ranges
from engine.binlog.gtid_set import MariadbGtidSet, MysqlGtidSet
from engine.decode.tables.gtid_texts import gtid_texts
from tests.support.binlog_builder import make_event
from tests.support.made_events import gtid, mariadb_gtid

PLAIN = FormatDescription.assumed()


def no_tag(raw: bytes) -> tuple[str, int]:
    raise AssertionError("there are no tagged GTIDs here")


def gtid_of(raw: bytes) -> str:
    body = decode_event(raw, PLAIN).body
    assert isinstance(body, Gtid | MariadbGtid)
    assert body.gtid is not None
    return body.gtid


def table_of(events: list[bytes]) -> EventTable:
    starts = np.cumsum([0, *map(len, events)])[:-1]
    index = np.array([[start, raw[4]] for start, raw in zip(starts, events, strict=True)], np.uint32)
    table, error = open_events("f", np.frombuffer(b"".join(events), np.uint8), index.reshape(-1, 2), 0, 4, 0)
    assert error is None
    return table


def mysql_event(source: bytes, number: int) -> bytes:
    code, body = gtid(number)
    return make_event(code, body[:1] + source + body[17:], 4, checksum=False)


def mariadb_event(domain: int, server: int, number: int) -> bytes:
    raw = make_event(*mariadb_gtid(number, domain=domain), start=4, checksum=False)
    return raw[:5] + server.to_bytes(4, "little") + raw[9:]


sources = st.sampled_from([bytes(range(16)), bytes(16), bytes(range(100, 116)), b"\xff" * 16])
numbers = st.integers(1, 20) | st.sampled_from([2**31, 2**32, 2**53 + 1, 2**63 - 1])
mysql_events = st.lists(st.builds(mysql_event, sources, numbers), max_size=30)
ids = st.sampled_from([0, 1, 2**31, 2**32 - 1])
mariadb_events = st.lists(
    st.builds(mariadb_event, ids, ids, st.integers(0, 20) | st.just(2**63 - 1)), max_size=30
)


@given(mysql_events | mariadb_events, st.data())
def test_texts_are_those_of_the_single_events(events: list[bytes], data: st.DataObject) -> None:
    table = table_of(events)
    places = [place if data.draw(st.booleans(), label="there") else -1 for place in range(len(events))]
    texts = gtid_texts(table, np.array(places, np.int64), no_tag).array()
    texts.validate(full=True)
    expected = [gtid_of(events[place]) if place >= 0 else None for place in places]
    assert texts.to_pylist() == expected


@given(mysql_events)
def test_mysql_ranges_add_up_to_the_same_set(events: list[bytes]) -> None:
    table = table_of(events)
    ranges = gtid_ranges(table, np.arange(len(events)), no_tag)
    together, one_by_one = MysqlGtidSet(), MysqlGtidSet()
    for source, first, last in ranges:
        together.add(source, first, last)
    for raw in events:
        body = decode_event(raw, PLAIN).body
        assert isinstance(body, Gtid)
        assert body.source is not None and body.number is not None
        one_by_one.add(body.source, body.number, body.number)
    assert together == one_by_one


@given(mariadb_events)
def test_mariadb_ranges_lead_to_the_same_position(events: list[bytes]) -> None:
    table = table_of(events)
    together, one_by_one = MariadbGtidSet(), MariadbGtidSet()
    for source, first, last in gtid_ranges(table, np.arange(len(events)), no_tag):
        together.add(source, first, last)
    for raw in events:
        source, _, number = gtid_of(raw).rpartition("-")
        one_by_one.add(source, int(number), int(number))
    assert together == one_by_one


def test_consecutive_transactions_are_one_range() -> None:
    events = [mysql_event(bytes(16), number) for number in range(5, 1005)]
    source = "00000000-0000-0000-0000-000000000000"
    assert gtid_ranges(table_of(events), np.arange(1000), no_tag) == [(source, 5, 1004)]


@pytest.mark.parametrize("code", [types.GTID_TAGGED_LOG_EVENT])
def test_tagged_gtids_are_left_to_the_decoder_of_single_events(code: int) -> None:
    events = [mysql_event(bytes(16), 7), make_event(code, b"whatever it says", 4, checksum=False)]
    table = table_of(events)
    assert gtid_texts(table, np.array([0, 1, -1]), lambda raw: ("uuid:tag", 9)).array().to_pylist() == [
        "00000000-0000-0000-0000-000000000000:7",
        "uuid:tag:9",
        None,
    ]
    assert gtid_ranges(table, np.array([0, 1]), lambda raw: ("uuid:tag", 9))[1] == ("uuid:tag", 9, 9)


def test_no_transactions() -> None:
    assert gtid_ranges(table_of([]), np.empty(0, np.int64), no_tag) == []
    assert gtid_texts(table_of([]), np.empty(0, np.int64), no_tag).array().to_pylist() == []


def test_more_texts_than_a_column_can_have(monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of([mysql_event(bytes(16), number) for number in range(3)])
    monkeypatch.setattr("engine.decode.tables.gtid_texts._MOST_TEXTS", 2)
    assert len(gtid_texts(table, np.array([0, 2]), no_tag).array()) == 2
    with pytest.raises(EventTableError, match="3 transactions, more than 2"):
        gtid_texts(table, np.arange(3), no_tag)
