"""The statements ahead of the stream in the server's binlog that may change a table's columns.

The server's binlog is read from the stream's position to its end, over another connection, with the receive
kernel. Rows are dropped at once, and only the last statement of each table is kept. What was read remains
known until the stream has passed it, so that each part of the binlog is read once.

Compressed transactions of MySQL are not opened: a statement that changes a table ends its transaction, so
that no such transaction contains rows, and the server compresses no other. A part that cannot be read counts
as a change of every table.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from engine.binlog.event_table import EventTable, open_events
from engine.binlog.event_types import QUERY_COMPRESSED_EVENT, QUERY_EVENT
from engine.binlog.events import decode_event
from engine.binlog.events.statements import Query
from engine.binlog.format_description import FormatDescription, verify_checksum
from engine.binlog.position import BinlogPosition
from engine.binlog.statements import defining_statements
from engine.config.decode_options import DecodeOptions
from engine.config.table_filter import TableFilter
from engine.errors import BinlogError, EngineError, EventError
from engine.net.batching.outgoing_batch import OutgoingBatch
from engine.net.batching.stream_position import StreamPosition
from engine.net.client.connection import Connection
from engine.net.client.dump_batches import Meanwhile, dump_batches
from engine.net.client.server_queries import MAX_DUMP_POSITION, SourceFacts
from engine.schema.altered_tables import ANY_TABLE, Name, altered_tables, names_of

MOST_NAMES = 200_000
"""Names to keep; when statements name more, every table counts as changed by the last of them."""
_LONGEST_TEXT = 160
"""Characters of a statement in a message."""
_STATEMENTS_ONLY = DecodeOptions(tables=TableFilter(excluded=("*.*",)))


@dataclass(frozen=True, slots=True)
class Change:
    """A statement that may have changed a table's columns, and its position."""

    position: BinlogPosition
    what: str
    """The statement, or why it is not known."""


class StatementsAhead:
    """Reads ahead of one stream.

    `connect` returns connections to its server; `meanwhile`: see `engine.net.client.dump_batches`.
    """

    def __init__(
        self, connect: Callable[[], Connection], facts: SourceFacts, meanwhile: Meanwhile | None = None
    ) -> None:
        self._connect = connect
        self._facts = facts
        self._meanwhile = meanwhile
        self._last: dict[Name, Change] = {}
        """Name → the last change of it."""
        self._end: BinlogPosition | None = None

    @property
    def end(self) -> BinlogPosition | None:
        """The position up to which the binlog was read; None if it was not read."""
        return self._end

    def read(self, here: StreamPosition, end: BinlogPosition | None) -> None:
        """Read to the end of the binlog, unless it was read up to `end` already.

        Raises `EngineError` if the server cannot be asked now.
        """
        if self._end is None or not here.is_before(self._end) or self._end.position > MAX_DUMP_POSITION:
            self._end = BinlogPosition(here.file, here.boundary)
            self._last.clear()
        elif end is not None and end <= self._end:
            return
        # Statements that the stream has passed are no longer needed.
        self._last = {name: change for name, change in self._last.items() if here.is_before(change.position)}
        try:
            try:
                self._read_from(self._end)
            except BinlogError:
                # What was damaged on the way arrives intact the next time.
                self._read_from(self._end)
        except EngineError as error:
            if error.retryable:
                raise
            # A dump starts before the stream's position, so that it may fail there.
            position = max(self._end, here.event)
            self._note([ANY_TABLE], position, f"a part of the binlog that cannot be read ({error})")

    def change_of(self, database: str, table: str, here: StreamPosition) -> Change | None:
        """The last change after `here`, in the part that was read, that may be one of this table."""
        found = [self._last.get(name) for name in names_of(database, table)]
        changes = [change for change in found if change is not None and here.is_before(change.position)]
        return max(changes, key=lambda change: change.position, default=None)

    def _read_from(self, start: BinlogPosition) -> None:
        batches = dump_batches(
            self._connect(),
            self._facts,
            start.file,
            start.position,
            decode=_STATEMENTS_ONLY,
            meanwhile=self._meanwhile,
        )
        with contextlib.closing(batches):
            for batch in batches:
                for position, names, text in changes_in(batch):
                    self._note(names, position, text)
                header = batch.header
                status = header.status
                if status.ends_transaction and not status.end_of_stream:
                    self._end = status.resume

    def _note(self, names: Iterable[Name], position: BinlogPosition, what: str) -> None:
        change = Change(position, what)
        self._last |= dict.fromkeys(names, change)
        if len(self._last) > MOST_NAMES:
            self._last = {ANY_TABLE: change}


def changes_in(batch: OutgoingBatch) -> Iterator[tuple[BinlogPosition, frozenset[Name], str]]:
    """Position, tables and shortened text of each statement that may change tables.

    Raises `BinlogError` for a damaged one.
    """
    header = batch.header
    events, error = open_events(
        header.file, batch.data, batch.index, header.context_events, header.position, checksum_size=0
    )
    if error is not None:
        raise error
    if events.codes.isdisjoint((QUERY_EVENT, QUERY_COMPRESSED_EVENT)):
        return
    description = FormatDescription.parse(events.event(0).tobytes())
    for number in _defining(events, description):
        event = events.event(number).tobytes()
        try:
            verify_checksum(event, description)
            body = decode_event(event, description).body
        except EventError as failure:
            raise events.error(number, failure.reason) from failure
        assert isinstance(body, Query)
        names = altered_tables(body, description.server_version, description.flavor)
        if names:
            position = BinlogPosition(header.file, int(events.positions[number]))
            yield position, names, _shortened(body.statement)


def _defining(events: EventTable, description: FormatDescription) -> list[int]:
    found = np.empty(len(events), np.int64)
    count = defining_statements(
        events.data,
        events.starts,
        events.ends - description.checksum_length,
        events.types,
        description.post_header_length(QUERY_EVENT),
        found,
    )
    return [number for number in found[:count].tolist() if number >= events.context]


def _shortened(statement: str) -> str:
    line = " ".join(statement.split())
    return line if len(line) <= _LONGEST_TEXT else line[: _LONGEST_TEXT - 1] + "…"
