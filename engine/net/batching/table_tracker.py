"""Learns the tables of one stream from its table maps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from engine.binlog import event_types as types
from engine.binlog.events.payload import LARGEST_WHOLE
from engine.binlog.table_map import TableMap
from engine.net.batching.cutter import Cutter
from engine.net.batching.opened_transaction import open_transaction
from engine.net.batching.outgoing_batch import OutgoingBatch
from engine.net.batching.receive_buffer import ReceiveBuffer
from engine.net.batching.statement_tracker import StatementTracker
from engine.net.batching.stream_format import StreamFormat
from engine.net.batching.stream_state import StreamState
from engine.net.batching.table_book import TableBook
from engine.net.batching.table_describer import TableDescriber, hash_of


class TableTracker:
    """Adds the definitions that `describer` makes to `book`, and cuts a batch where a table was altered."""

    def __init__(
        self,
        book: TableBook,
        describer: TableDescriber,
        statements: StatementTracker,
        cutter: Cutter,
        buffer: ReceiveBuffer,
        state: StreamState,
        stream_format: StreamFormat,
    ) -> None:
        self._book = book
        self._describer = describer
        self._statements = statements
        self._cutter = cutter
        self._buffer = buffer
        self._state = state
        self._format = stream_format

    def learn(self, event: bytes, marker: int) -> Iterator[OutgoingBatch]:
        """Add the table map at the cursor, and those of tables that follow in the buffer."""
        description, definitions = self._format.description, self._book.definitions
        found = self._describer.define_all(self._buffer, self._state, definitions, description, marker)
        if found:
            self._book.add_ahead(found, self._cutter.stamp)
        # If the answer does not have this table or cannot be used yet, it is asked for alone.
        yield from self._add(event[: len(event) - self._format.checksum_length])

    def learn_compressed(self, event: bytes) -> Iterator[OutgoingBatch]:
        """Add the table maps in the compressed transaction at the cursor, and note what decoders need for it.

        If that is too much, they do not get it as a whole: its table maps come later, as those of plain ones.
        """
        opened = open_transaction(event, self._format.description)
        position = self._statements.position
        for definition in opened.definitions if opened.needed <= LARGEST_WHOLE else []:
            if definition[4] == types.TABLE_MAP_EVENT:
                yield from self._add(definition)
            else:
                yield from self._statements.read_compressed(definition, position)
        self._state.open_payload(opened.needed)
        if opened.has_whole_images and self._have_names(opened.definitions):
            # Decoders need no descriptions and little memory, so that others of this file need not be opened
            # if they are small: the server's settings seldom change within one.
            self._state.keep_small_payloads_closed()

    def _add(self, event: bytes) -> Iterator[OutgoingBatch]:
        """Add the definition of a table map (without checksum), unless it is known."""
        value = hash_of(event)
        if self._book.use_known(value, self._cutter.stamp):
            return
        definition = self._describer.define(value, self._parse(event))
        if self._book.contradicts(definition, self._cutter.stamp):
            # A batch has one description for a name, and this table was altered since the batch began.
            yield from self._cutter.finished()
            self._book.replace(definition.name)
        self._book.add(definition, self._cutter.stamp)

    def _have_names(self, definitions: Sequence[bytes]) -> bool:
        maps = (self._parse(each) for each in definitions if each[4] == types.TABLE_MAP_EVENT)
        return not any(table_map.needs_catalog for table_map in maps)

    def _parse(self, event: bytes) -> TableMap:
        return TableMap.parse(event, self._format.description.without_checksums())
