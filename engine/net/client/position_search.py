"""Searches a server's binlog: for the position of a time, and on MySQL for the GTIDs before a position.

Each binlog file begins with the time at which it was begun, so that a binary search finds the last file begun
before a given time; older files contain nothing later. In that file, only the headers of events are read up
to the position; the GTIDs make the executed set.
"""

from __future__ import annotations

import contextlib
from bisect import bisect_left
from collections.abc import Callable
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from engine.binlog.event_roles import EVENT_ROLES, MYSQL_GTID, TAGGED_GTID
from engine.binlog.event_table import EventTable, open_events
from engine.binlog.event_types import PREVIOUS_GTIDS_LOG_EVENT
from engine.binlog.events.decoding import TaggedGtid, decode_event, gtid_set_text
from engine.binlog.files import file_order
from engine.binlog.format_description import FormatDescription
from engine.binlog.gtid_events import gtid_ranges
from engine.binlog.gtid_set import MysqlGtidSet
from engine.binlog.position import ExecutedPosition
from engine.errors import EngineError
from engine.kernels.kernel import Int64s
from engine.net.batching.outgoing_batch import OutgoingBatch
from engine.net.client import server_queries
from engine.net.client.connection import Connection
from engine.net.client.dump_batches import dump_batches
from engine.net.client.dump_requests import FIRST_POSITION
from engine.net.client.server_events import file_begun
from engine.net.client.source_facts import SourceFacts

Connect = Callable[[], Connection]
Reached = Callable[[EventTable], NDArray[np.bool_]]
"""Which events of a batch are at the position searched for, or after it."""


def position_at(connect: Connect, facts: SourceFacts, moment: datetime) -> ExecutedPosition:
    """The position of the first transaction with an event of that second or later, else the binlog's end.

    Times are those of the server's clock, in whole seconds. `connect` returns connections to the server.
    Raises `EngineError` if older binlogs, which may have contained such transactions, were purged, and if the
    server refuses.
    """
    second = int(moment.timestamp())
    with connect() as connection:
        where = str(connection.endpoint)
        files = [file for file, _ in server_queries.binary_logs(connection)]
    later = bisect_left(files, second, key=lambda file: file_begun(connect, facts, file))
    if later == 0:
        if not files or file_order(files[0])[0] > 1:
            raise EngineError(
                f"the oldest binlog of {where} was begun after {moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} "
                "UTC, and older ones were purged: take what is there with --start earliest, or a later time"
            )
        return ExecutedPosition(files[0], FIRST_POSITION, facts.gtid_purged)
    found = _search(connect, facts, files[later - 1], lambda events: _times(events) >= second)
    if facts.flavor != "mariadb":
        return found
    with connect() as connection:
        gtid_set = server_queries.gtid_set_at(connection, found.file, found.position)
    return ExecutedPosition(found.file, found.position, gtid_set)


def gtids_before(connect: Connect, facts: SourceFacts, file: str, position: int) -> str | None:
    """The GTID set that a MySQL server had executed before a position; None without such a position.

    Raises `EngineError` if the server refuses.
    """

    def reached(events: EventTable) -> NDArray[np.bool_]:
        return events.positions >= (position if events.file == file else 0)

    return _search(connect, facts, file, reached).gtid_set


def _search(connect: Connect, facts: SourceFacts, file: str, reached: Reached) -> ExecutedPosition:
    """The position in that file, or after it."""
    search = _Search(reached, facts)
    with contextlib.closing(dump_batches(connect(), facts, file, FIRST_POSITION)) as batches:
        for batch in batches:
            found = search.find(batch)
            if found is not None:
                return found
    return search.end


class _Search:
    """Searches one batch after the other."""

    def __init__(self, reached: Reached, facts: SourceFacts) -> None:
        self._reached = reached
        # Transactions that were never logged (a restored backup) are in no file.
        self._executed = MysqlGtidSet.parse(facts.gtid_purged or "") if facts.gtid_mode == "ON" else None
        self._open: tuple[str, int] | None = None
        self.end = ExecutedPosition("", FIRST_POSITION, None)
        """The position after all batches so far."""

    def find(self, batch: OutgoingBatch) -> ExecutedPosition | None:
        """The position, if it is in this batch."""
        header = batch.header
        events, _ = open_events(
            header.file, batch.data, batch.index, header.context_events, header.position, checksum_size=0
        )
        if header.status.aborts_transaction:
            self._open = None
        # The GTIDs at the beginning of a file were executed before any position in it.
        reached = self._reached(events) & (events.types != PREVIOUS_GTIDS_LOG_EVENT)
        late = np.flatnonzero(reached[events.context :]) + events.context
        first_late = int(late[0]) if len(late) else len(events)
        ends = np.flatnonzero(events.transaction_ends[:first_late])
        # The late event's transaction begins after the last one that ended, maybe in an earlier batch.
        begin = int(ends[-1]) + 1 if len(ends) else events.context
        self._execute(events, first_late, begin if len(ends) else 0)
        if len(ends) or self._open is None:
            resume = header.status.resume
            at = int(events.positions[begin]) if begin < len(events) else resume.position
            self._open = (header.file if begin < len(events) else resume.file, at)
        gtid_set = None if self._executed is None else str(self._executed)
        if len(late):
            return ExecutedPosition(*self._open, gtid_set)
        if header.status.ends_transaction:
            self._open = None
            self.end = ExecutedPosition(header.status.resume.file, header.status.resume.position, gtid_set)
        return None

    def _execute(self, events: EventTable, seen: int, ended: int) -> None:
        """Add the GTIDs of the first `ended` events, and those that a file lists among the first `seen`."""
        if self._executed is None or not len(events):
            return
        description = FormatDescription.parse(events.event(0).tobytes())
        for row in np.flatnonzero(events.types[:seen] == PREVIOUS_GTIDS_LOG_EVENT):
            text = gtid_set_text(decode_event(events.event(row).tobytes(), description))
            self._executed = MysqlGtidSet.parse(f"{self._executed},{text}")
        roles = EVENT_ROLES[events.types[:ended]]
        gtid_events = np.flatnonzero((roles == MYSQL_GTID) | (roles == TAGGED_GTID))
        for gtid_source, first, last in gtid_ranges(events, gtid_events, TaggedGtid(description)):
            self._executed.add(gtid_source, first, last)


def _times(events: EventTable) -> Int64s:
    seconds = np.zeros(len(events), np.int64)
    for byte in range(4):
        seconds |= events.data[events.starts + byte].astype(np.int64) << (8 * byte)
    return seconds
