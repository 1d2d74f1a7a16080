"""Every type of event there ever was: it has a decoder, shows in `events`, and is in the feed or a row."""

from __future__ import annotations

import json

import pytest

from engine.binlog import event_types as t
from engine.binlog.event_types import EVENT_NAMES, ROWS_EVENTS
from engine.binlog.events.decoding import decode_event, feed_entry
from engine.binlog.events.management import Opaque
from engine.config.decode_options import DecodeOptions
from tests.support.batches import decode_all, feed, packets_of
from tests.support.binlog_builder import make_event
from tests.support.every_event import BODIES, FORMAT, ONE_TRANSACTION, binlog_of
from tests.support.made_events import gtid
from tests.support.transaction_pictures import batcher

NOT_IN_THE_FEED = {
    *ROWS_EVENTS,
    t.HEARTBEAT_LOG_EVENT,
    t.HEARTBEAT_LOG_EVENT_V2,
    t.FORMAT_DESCRIPTION_EVENT,
    t.START_EVENT_V3,
    t.TRANSACTION_PAYLOAD_EVENT,
    t.PARTIAL_ROW_DATA_EVENT,
}
"""Row changes, what is in no file, what begins a file, what is replaced by what it holds, what is refused."""


def test_there_is_a_body_of_every_type() -> None:
    assert BODIES.keys() == EVENT_NAMES.keys()


@pytest.mark.parametrize("code", BODIES, ids=EVENT_NAMES.get)
def test_each_type_is_shown(code: int) -> None:
    shown = decode_event(
        make_event(code, BODIES[code], 4, checksum=code == t.FORMAT_DESCRIPTION_EVENT), FORMAT
    )
    assert shown.type_name == EVENT_NAMES[code]
    assert isinstance(shown.body, Opaque) == (code in (t.UNKNOWN_EVENT, t.IGNORABLE_LOG_EVENT))
    assert json.loads(json.dumps(shown.to_json()))["data"] or code == t.STOP_EVENT


@pytest.mark.parametrize("code", sorted(BODIES.keys() - NOT_IN_THE_FEED), ids=EVENT_NAMES.get)
def test_each_type_that_is_not_a_row_change_is_in_the_feed(code: int) -> None:
    parts = [gtid(1), *ONE_TRANSACTION, (code, BODIES[code]), gtid(2), *ONE_TRANSACTION]
    stream = packets_of(binlog_of(parts))
    decoded = decode_all(list(feed(batcher(), stream, [])), DecodeOptions(bookkeeping_events=True))
    assert decoded.error is None
    assert [row["@1"] for row in decoded.rows["orders"]] == [1, 1]
    entries = [row for row in decoded.rows[""] if row["type"] == EVENT_NAMES[code]]
    want = feed_entry(decode_event(make_event(code, BODIES[code], 4, checksum=False), FORMAT))
    assert want in [(row["type"], row["database"], row["statement"], row["data"]) for row in entries]
