"""The rows of all tables of a batch as record batch messages, by the kernel that builds tables.

The kernel (`table_kernel`) builds one table after the other until it needs Python: for a column that no
kernel builds, or for a table that has no room left in the arena, which gets an arena of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from engine.binlog.event_table import EventTable, EventTableError
from engine.dataclass import dataclass
from engine.decode.arrow.arena import SMALL_ROOM, Arena, ArenaFull, in_own_arena
from engine.decode.arrow.codec import Counters, error_of_column, too_large
from engine.decode.arrow.column_kernel import COUNTERS, FULL, LEFT, MOST_PARTS, NOTES, SIZE, new_notes
from engine.decode.arrow.record_message import RecordMessage
from engine.decode.rows.walked_tables import WalkedTables
from engine.decode.tables.message_parts import BASE, BUFFER, NODE
from engine.decode.tables.metadata_columns import Sources
from engine.decode.tables.table_decoder import TableDecoder
from engine.decode.tables.table_kernel import (
    AT,
    BEGIN,
    COLUMN_INDEX,
    DONE,
    MESSAGE,
    RESULT_END,
    RESULTS,
    STATE,
    TABLE,
    build_tables,
)
from engine.decode.tables.table_plan import Plans
from engine.errors import EngineError, EventError
from engine.kernels.kernel import Int64s


class TableMessage(NamedTuple):
    """A record batch in transit shape (`engine.output.change_schema`), with what the sink needs."""

    database: str
    table: str
    schema: bytes
    message: RecordMessage
    sequence: int
    """Offset of the values of `_seq` in the message."""
    min_timestamp: int
    max_timestamp: int


class PlacedTable(NamedTuple):
    """A table's message, and its offset and length in the arena; None if the arena was too small for it."""

    table: TableMessage
    span: tuple[int, int] | None

    @classmethod
    def of(cls, table: TableMessage, fits: bool) -> PlacedTable:
        """With the message's span, if it `fits` into the arena."""
        message = table.message
        return cls(table, (message.start, len(message.content)) if fits else None)


@dataclass(frozen=True, slots=True)
class TableRows:
    """The rows of several tables in a batch."""

    decoders: Sequence[TableDecoder]
    """Of each table."""
    walked: WalkedTables
    transactions: Int64s
    """Per rows event the number of its transaction in the batch."""

    def with_rows(self) -> list[TableDecoder]:
        """The decoders of the tables that have rows; a rows event may have none."""
        found = self.walked.found[:, 0].tolist()
        return [decoder for decoder, rows in zip(self.decoders, found, strict=True) if rows]


def build_messages(
    events: EventTable, rows: TableRows, sources: Sources, arena: Arena, counters: Counters
) -> list[PlacedTable]:
    """The messages of all tables that have rows, in `arena` as far as there is room.

    Raises `EventTableError` for a broken value, and for values that cannot be decoded.
    """
    if not rows.decoders:
        return []
    building = _Building(events, rows, sources)
    placed: list[PlacedTable] = []
    while building.next_table < len(rows.decoders):
        placed += [PlacedTable.of(table, True) for table in building.build(arena, len(rows.decoders))]
        if building.next_table < len(rows.decoders):
            placed.append(PlacedTable.of(building.build_alone(), False))
    counters.add_noted(building.counted)
    return placed


class _Building:
    """The kernel's state while the tables of one batch are built."""

    def __init__(self, events: EventTable, rows: TableRows, sources: Sources) -> None:
        self._events, self._rows, self._sources = events, rows, sources
        self._plans = Plans.of([decoder.plan for decoder in rows.decoders])
        self._state = np.zeros(STATE, np.int64)
        self._state[COLUMN_INDEX] = -1
        self._parts, self._notes = np.zeros(MOST_PARTS, np.int64), new_notes()
        self._results = np.zeros((len(rows.decoders), RESULTS), np.int64)
        self.counted = np.zeros(NOTES, np.int64)
        """What column kernels have counted."""

    @property
    def next_table(self) -> int:
        """The first table that is not built yet."""
        return int(self._state[TABLE])

    def build(self, arena: Arena, last: int) -> list[TableMessage]:
        """Build tables up to, but not including, `last`, or the first for which `arena` has no room."""
        first = self.next_table
        self._state[BEGIN] = arena.end
        try:
            while (status := self._run(arena, last)) != DONE:
                self._build_column(status, arena)
        except ArenaFull as full:
            self._notes[SIZE] = full.size
        arena.end = int(self._state[BEGIN])
        self._state[COLUMN_INDEX] = -1
        built = range(first, self.next_table)
        return [self._message(table, arena) for table in built if self._results[table, RESULT_END]]

    def build_alone(self) -> TableMessage:
        """Build the next table in memory of its own."""

        def build(arena: Arena) -> TableMessage:
            messages = self.build(arena, self.next_table + 1)
            if not messages:
                raise ArenaFull(int(self._notes[SIZE]))
            return messages[0]

        return in_own_arena(2 * (int(self._notes[SIZE]) + SMALL_ROOM), build)

    def _run(self, arena: Arena, last: int) -> int:
        return build_tables(
            self._events.data,
            self._rows.walked,
            self._rows.transactions,
            self._sources,
            self._plans,
            arena.memory,
            last,
            self._state,
            self._parts,
            self._notes,
            self.counted,
            self._results,
        )

    def _build_column(self, status: int, arena: Arena) -> None:
        """Build the column that the kernel left, or raise what its status says."""
        state, data = self._state, self._events.data
        table, column = self.next_table, int(state[COLUMN_INDEX])
        decoder = self._rows.decoders[table]
        if status == FULL:
            raise ArenaFull(int(self._notes[SIZE]))
        if column == len(decoder.columns):
            # Of the metadata columns, only this one can have too much content.
            error = error_of_column("_absent_columns", too_large(int(self._notes[SIZE])))
            raise self._located(table, error)
        codec = decoder.columns[column].codec
        arena.base, arena.end = int(state[MESSAGE + BASE]), int(state[AT])
        counters = Counters()
        try:
            if status != LEFT:
                raise codec.failure(status, data, self._notes)
            cells = self._rows.walked.rows(table).cells[:, column]
            array = codec.build_in_python(data, cells, arena, counters)
        except EngineError as error:
            raise self._located(table, error_of_column(decoder.names[column], error)) from error
        for name, number in COUNTERS.items():
            self._notes[number] += counters.values.get(name, 0)
        for cursor, numbers in ((NODE, array.nodes), (BUFFER, array.buffers)):
            first = int(state[MESSAGE + cursor])
            arena.memory.view(np.int64)[first : first + len(numbers)] = numbers
            state[MESSAGE + cursor] += len(numbers)
        state[AT], state[COLUMN_INDEX] = arena.end, column + 1

    def _located(self, table: int, error: EngineError) -> EventTableError:
        """The error at the event whose row caused it, or at the table's first event."""
        events, decoder = self._events, self._rows.decoders[table]
        name = f"{decoder.database}.{decoder.table}"
        first = int(self._rows.walked.events[self._rows.walked.bounds[table, 0]])
        if not isinstance(error, EventError):
            return events.error(first, f"in rows of {name}, {error}", error.corrupt)
        inside = (events.starts <= error.offset) & (error.offset < events.ends)
        at = int(np.flatnonzero(inside)[0]) if inside.any() else first
        return events.error(at, f"in a row of {name}, {error.reason}", error.corrupt)

    def _message(self, table: int, arena: Arena) -> TableMessage:
        decoder = self._rows.decoders[table]
        start, end, sequence, first_time, last_time = self._results[table].tolist()
        rows = int(self._rows.walked.found[table, 0])
        message = RecordMessage(arena.memory[start:end], rows, start)
        return TableMessage(
            decoder.database, decoder.table, decoder.schema_bytes, message, sequence, first_time, last_time
        )
