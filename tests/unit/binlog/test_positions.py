"""Where events start in their file, from the headers of different servers."""

from __future__ import annotations

import numpy as np
import pytest

from engine.binlog import event_types as t
from engine.binlog.event_table import open_events
from tests.support.binlog_builder import make_event


def event(next_position: int, body: bytes = b"12345678", flags: int = 0) -> bytes:
    made = make_event(t.XID_EVENT, body, flags=flags)
    return made[:13] + (next_position & 0xFFFFFFFF).to_bytes(4, "little") + made[17:]


def positions(events: list[bytes], first: int) -> list[int]:
    """What the event table of a batch says, whose first event is at `first`."""
    starts = np.cumsum([0, *map(len, events)])[:-1]
    index = np.array([[start, t.XID_EVENT] for start in starts], np.uint32)
    table, error = open_events("binlog.000001", np.frombuffer(b"".join(events), np.uint8), index, 0, first, 0)
    assert error is None
    return table.positions.tolist()


SIZE = 27


@pytest.mark.parametrize("first", [4, 1000, (1 << 32) - 2 * SIZE, (5 << 32) - 1])
def test_positions_of_each_kind_of_server(first: int) -> None:
    starts = [first + i * SIZE for i in range(5)]
    ends = [start + SIZE for start in starts]
    assert positions([event(end) for end in ends], first) == starts
    # MariaDB 11: 0 inside a transaction.
    assert positions([event(end if i in (0, 4) else 0) for i, end in enumerate(ends)], first) == starts
    # MySQL 4: the event's own start.
    assert positions([event(start) for start in starts], first) == starts


def test_events_that_were_not_sent() -> None:
    assert positions([event(4 + SIZE), event(500), event(500 + SIZE)], 4) == [4, 500 - SIZE, 500]


def test_events_that_are_in_no_file() -> None:
    events = [event(0, flags=t.FLAG_ARTIFICIAL), event(4 + SIZE), event(0)]
    assert positions(events, 4) == [4, 4, 4 + SIZE]


def test_an_event_that_is_in_no_file_but_says_where_the_next_one_is() -> None:
    events = [event(4, flags=t.FLAG_ARTIFICIAL), event(500, flags=t.FLAG_ARTIFICIAL), event(0), event(0)]
    assert positions(events, 4) == [4, 500, 500, 500 + SIZE]
