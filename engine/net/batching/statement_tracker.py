"""Follows the stream's statements: what they change in the definitions and rows of tables.

The receive kernel returns for each statement that may define, drop or empty a table, or change rows, first
before it is in the index, and again after that. A batch ends with every statement that defines, drops or
empties a table that was there before it, so that each batch has one definition for a table, and its rows come
before the statement's effect.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.binlog.event_positions import start_position
from engine.binlog.events.decoding import decode_event
from engine.binlog.events.statements import Query
from engine.binlog.format_description import FormatDescription
from engine.binlog.position import BinlogPosition
from engine.binlog.table_definition import table_key
from engine.net.batching.cutter import Cutter
from engine.net.batching.outgoing_batch import OutgoingBatch
from engine.net.batching.receive_buffer import ReceiveBuffer
from engine.net.batching.schema_follower import SchemaFollower
from engine.net.batching.stream_format import StreamFormat
from engine.net.batching.stream_state import StreamState
from engine.net.batching.table_book import TableBook
from engine.pipeline.messages import Dropped
from engine.schema.changes import SchemaChange


class StatementTracker:
    """Has `schema` execute the statements, and cuts batches after them.

    Without it every statement may have changed every table.
    """

    def __init__(
        self,
        schema: SchemaFollower | None,
        book: TableBook,
        cutter: Cutter,
        buffer: ReceiveBuffer,
        state: StreamState,
        stream_format: StreamFormat,
    ) -> None:
        self._schema = schema
        self._book = book
        self._cutter = cutter
        self._buffer = buffer
        self._state = state
        self._format = stream_format
        self._change: SchemaChange | None = None

    def read(self, event: bytes) -> None:
        """The statement at the cursor. Raises `EventError` if it is malformed."""
        self._change = self._execute(event, self._format.description, self.position)
        self._state.read_statement()

    def read_compressed(self, event: bytes, position: BinlogPosition) -> Iterator[OutgoingBatch]:
        """A statement in the compressed transaction at `position`, such as CREATE TABLE … SELECT."""
        change = self._execute(event, self._format.description.without_checksums(), position)
        if change is None or self._schema is None:
            return
        if change.source == "data manipulation":
            self._schema.note(change)
            return
        # The transactions before this one are not concerned. It then has room in the next batch, and need not
        # be opened again, which would execute the statement again.
        yield from self._cutter.finished()
        self._schema.note(change)
        self._book.forget(_keys(change))

    def indexed(self) -> Iterator[OutgoingBatch]:
        """The statement that was read is the last event in the index."""
        change, self._change = self._change, None
        if self._schema is None:
            self._book.forget_all()
            return
        if change is not None and change.source == "data manipulation":
            # Its tables keep their definitions, and what it means for their rows holds for the whole batch.
            self._schema.note(change)
            return
        # The server may be able to prove after the statement what it could not prove before.
        self._book.forget(self._schema.numbered)
        self._schema.numbered.clear()
        if change is None:
            return
        if self._state.boundary.rows != self._state.count:
            # The transactions before this one are not concerned.
            yield from self._cutter.finished()
        self._schema.note(change)
        self._book.forget(_keys(change))
        if change.changes_rows or any(each.version > 1 for each in change.tables):
            yield from self._cutter.after_statement()

    def lose(self, dropped: Dropped) -> None:
        """Events were dropped, and with them perhaps statements that changed any table."""
        self._book.forget_all()
        if self._schema is not None:
            reason = f"the {dropped.what} at position {dropped.start} was dropped as corrupt"
            self._schema.lose_statements(reason)

    def _execute(
        self, event: bytes, description: FormatDescription, position: BinlogPosition
    ) -> SchemaChange | None:
        if self._schema is None:
            return None
        query = decode_event(event, description).body
        assert isinstance(query, Query)
        return self._schema.execute(query, description.server_version, position)

    @property
    def position(self) -> BinlogPosition:
        """Where the event at the cursor begins, as long as no batch was cut since the kernel returned."""
        start, size = self._state.event.start, self._state.event.stop - self._state.event.start
        position = start_position(self._buffer.data, start, size, self._state.position)
        return BinlogPosition(self._cutter.file, int(position))


def _keys(change: SchemaChange) -> set[str]:
    return {table_key(each.name.database, each.name.table) for each in change.tables}
