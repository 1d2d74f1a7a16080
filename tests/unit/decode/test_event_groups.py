"""Event groups: transactions, table maps, rows and feed entries of a batch; and malformed events."""

from __future__ import annotations

import numpy as np
import pytest

from engine.binlog import event_types as types
from engine.binlog.event_index import TRANSACTION_END
from engine.binlog.event_table import EventTable, EventTableError, open_events
from engine.decode.rows.event_groups import EventGroups, feed_table, group_events
from tests.support.binlog_builder import Part, make_event
from tests.support.made_events import (
    BLOB,
    SIGNED_INT,
    anonymous_gtid,
    gtid,
    image,
    integer,
    mariadb_gtid,
    query,
    rows,
    table_map,
    xid,
)

BEGIN, COMMIT = query("BEGIN"), query("COMMIT")
INSERT = rows(types.WRITE_ROWS_EVENT, 7, 1, [image([integer(1)])])
TABLE = table_map(7, [SIGNED_INT])
ENDS = (types.XID_EVENT,)


def table_of(parts: list[Part], context: int = 0) -> EventTable:
    """An event table; XID and COMMIT end transactions."""
    index, content, position = [], b"", 4
    for code, body in parts:
        raw = make_event(code, body, position, checksum=False)
        ends = code in ENDS or (code, body) == COMMIT
        index.append((len(content), code | (TRANSACTION_END if ends else 0)))
        content += raw
        position += len(raw)
    data = np.frombuffer(content, np.uint8)
    table, error = open_events("f", data, np.array(index, np.uint32).reshape(-1, 2), context, 4, 0)
    assert error is None
    return table


def group(parts: list[Part], context: int = 0, bookkeeping: bool = False) -> EventGroups:
    return group_events(table_of(parts, context), 13, feed_table(bookkeeping))


def test_each_rows_event_gets_its_transaction_and_its_table() -> None:
    other = table_map(8, [SIGNED_INT, SIGNED_INT], table="others")
    found = group([gtid(1), BEGIN, TABLE, INSERT, INSERT, xid(), gtid(2), BEGIN, other, TABLE, INSERT, xid()])
    assert found.transaction_gtids.tolist() == [0, 6]
    assert found.rows_events.tolist() == [3, 4, 10]
    assert found.rows_transactions.tolist() == [0, 0, 1]
    assert found.table_maps.tolist() == [2, 8], "equal table maps share the first one's slot"
    assert found.rows_slots.tolist() == [0, 0, 0]


def test_transactions_without_gtid() -> None:
    found = group([BEGIN, TABLE, INSERT, xid(), anonymous_gtid(), BEGIN, TABLE, INSERT, COMMIT])
    assert found.transaction_gtids.tolist() == [-1, -1]
    assert found.rows_transactions.tolist() == [0, 1]


def test_a_table_id_that_means_something_else_later() -> None:
    altered = table_map(7, [SIGNED_INT, BLOB])
    renamed = table_map(7, [SIGNED_INT], table="renamed")
    found = group([BEGIN, TABLE, INSERT, altered, INSERT, renamed, INSERT, TABLE, INSERT, xid()])
    assert found.table_maps.tolist() == [1, 3, 5, 7]
    assert found.rows_slots.tolist() == [0, 1, 2, 3]


def test_many_table_ids_that_collide() -> None:
    ids = [place << 32 for place in range(300)]
    parts = [BEGIN]
    for table_id in ids:
        parts += [
            table_map(table_id, [SIGNED_INT], table=f"t{table_id}"),
            rows(types.WRITE_ROWS_EVENT, table_id, 1, []),
        ]
    assert group(parts).rows_slots.tolist() == list(range(300))


def test_context_is_read_but_nothing_comes_out_for_it() -> None:
    parts = [gtid(1), TABLE, query("INSERT INTO orders VALUES (1)"), INSERT, INSERT, xid()]
    found = group(parts, context=4, bookkeeping=True)
    assert found.rows_events.tolist() == [4]
    assert found.rows_transactions.tolist() == [0]
    assert found.feed_events.tolist() == [5]
    assert found.transaction_gtids.tolist() == [0]


def test_what_goes_to_the_feed() -> None:
    statement, rotate = query("DROP TABLE orders"), (types.ROTATE_EVENT, bytes(8) + b"next")
    parts = [gtid(1), BEGIN, TABLE, INSERT, xid(), gtid(2), statement, rotate, (99, b"who knows")]
    assert group(parts).feed_events.tolist() == [6, 7, 8]
    assert group(parts, bookkeeping=True).feed_events.tolist() == [0, 1, 2, 4, 5, 6, 7, 8]


def test_entries_between_transactions_belong_to_none() -> None:
    stop = (types.STOP_EVENT, b"")
    found = group([stop, gtid(1), BEGIN, query("DROP TABLE orders"), xid(), stop], bookkeeping=True)
    assert dict(zip(found.feed_events.tolist(), found.feed_transactions.tolist(), strict=True)) == {
        0: -1,
        1: 0,
        2: 0,
        3: 0,
        4: 0,
        5: -1,
    }


def test_the_dummy_rows_event_that_only_ends_a_statement() -> None:
    assert group([BEGIN, rows(types.WRITE_ROWS_EVENT, 0xFFFFFF, 1, []), xid()]).rows_events.tolist() == []


COMMIT_TIMES = {
    "MySQL 5.6": (gtid(1)[1], 0),
    "MySQL 5.7": (gtid(1)[1] + b"\x02" + bytes(16), 0),
    "committed here": (gtid(1, 1_700_000_000_123_456)[1], 1_700_000_000_123_456),
    "committed elsewhere first": (
        gtid(1, 1_700_000_000_123_456 | 1 << 55)[1] + (1_600_000_000_654_321).to_bytes(7, "little"),
        1_600_000_000_654_321,
    ),
    "elsewhere at no known time": (
        gtid(1, 1_700_000_000_123_456 | 1 << 55)[1] + bytes(7),
        1_700_000_000_123_456,
    ),
    "cut off after the first": (gtid(1, 1_700_000_000_123_456 | 1 << 55)[1], 1_700_000_000_123_456),
    "another clock": (gtid(1)[1] + b"\x01" + bytes(16) + b"\xff" * 7, 0),
}


@pytest.mark.parametrize("name", COMMIT_TIMES)
def test_commit_times(name: str) -> None:
    body, expected = COMMIT_TIMES[name]
    assert group([(types.GTID_LOG_EVENT, body)]).transaction_times.tolist() == [expected]


def test_mariadb_gtids_have_no_commit_time() -> None:
    found = group([mariadb_gtid(3), TABLE, INSERT, COMMIT])
    assert (found.transaction_gtids.tolist(), found.transaction_times.tolist()) == ([0], [0])


BROKEN = {
    "the query event's lengths": (types.QUERY_EVENT, bytes(8) + b"\xff" + bytes(4)),
    "the table map event is shorter": (types.TABLE_MAP_EVENT, bytes(7)),
    "the rows event is shorter": (types.WRITE_ROWS_EVENT, bytes(7)),
    "no table map event announced": rows(types.DELETE_ROWS_EVENT_V1, 8, 1, []),
    "the GTID event is shorter": (types.GTID_LOG_EVENT, gtid(1)[1][:-1]),
    "shorter than its fixed part": (types.GTID_EVENT, mariadb_gtid(1)[1][:12]),
    "number is out of range": gtid(0),
    "the GTID event's number": gtid(-5),
    "number is out": (types.GTID_EVENT, b"\xff" * 8 + mariadb_gtid(1)[1][8:]),
    "split into fragments": (types.PARTIAL_ROW_DATA_EVENT, bytes(30)),
}


@pytest.mark.parametrize("reason", BROKEN)
def test_broken_events_are_located(reason: str) -> None:
    parts = [gtid(1), BEGIN, TABLE, INSERT, BROKEN[reason], xid()]
    place = 4 + sum(len(make_event(code, body, 0, checksum=False)) for code, body in parts[:4])
    with pytest.raises(EventTableError, match=reason) as refused:
        group(parts)
    assert refused.value.event == 4
    assert refused.value.position == place
