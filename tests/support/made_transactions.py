"""Whole transactions of made events, with rows of a table `t` of one INT column."""

from __future__ import annotations

from engine.binlog import event_types as types
from tests.support.binlog_builder import Part
from tests.support.made_events import (
    SIGNED_INT,
    gtid,
    image,
    integer,
    query,
    rows,
    table_map,
    xa_prepare,
    xid,
)

XID = "X'78',X'',1"
"""Of prepared transactions."""


def insert(*values: int) -> list[Part]:
    """A rows event for each value."""
    events = [rows(types.WRITE_ROWS_EVENT, 7, 1, [image([integer(value)])]) for value in values]
    return [part for event in events for part in (table_map(7, [SIGNED_INT], table="t"), event)]


def plain(number: int, *values: int) -> list[Part]:
    """A transaction that is committed."""
    return [gtid(number), query("BEGIN"), *insert(*values), xid()]


def prepared(number: int, *values: int) -> list[Part]:
    """A transaction that ends with XA PREPARE: its statements are entries of the feed, too."""
    begin, end = query(f"XA START {XID}"), query(f"XA END {XID}")
    return [gtid(number), begin, *insert(*values), end, xa_prepare()]
