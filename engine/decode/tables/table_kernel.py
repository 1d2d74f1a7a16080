"""Builds the record batches of all tables of a batch, one message after the other, in one kernel.

A table's message is the metadata from its plan, then its columns, each by its codec's kernel, then the
metadata columns. The kernel returns to Python only for what Python has to do: a column that no kernel builds,
a table for which there is no room, a broken cell. It then goes on where it was.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from engine.decode.arrow.column_kernel import COLUMN, FULL, LEFT, ZERO_DATES, has_room
from engine.decode.arrow.record_message import clear_gaps
from engine.decode.rows.walked_tables import WalkedTables
from engine.decode.tables.message_parts import BASE, BUFFER, NODE, put_buffer, put_node
from engine.decode.tables.metadata_columns import (
    FACTS,
    SEQUENCE,
    Sources,
    TableEvents,
    TableImages,
    build_metadata,
)
from engine.decode.tables.table_plan import (
    BODY_LENGTH,
    BUFFERS,
    COLUMN_NUMBERS,
    CONSTANTS,
    CONSTANTS_SIZE,
    FIRST_BUFFER,
    FIRST_NODE,
    FORM,
    KERNEL,
    METADATA,
    METADATA_SIZE,
    NAMES,
    NAMES_SIZE,
    NODES,
    ROWS,
    Plans,
)
from engine.kernels.kernel import Bytes, Int64s, kernel
from engine.kernels.memory import address_of, bytes_at, copy, prefetch
from engine.kernels.typed import call_of
from engine.output.direct_io import DIRECT_BYTES, DIRECT_PAGE

DONE = 0
"""The status after the last table; all others are those of column kernels."""

TABLE, COLUMN_INDEX, BITMAPS, BEGIN, START, AT, MESSAGE = range(7)
"""The state between two calls: the table and its column that come next (column -1: its message has not begun;
after the last one: the metadata columns), the bytes of bitmaps before those of the table, the end of the
message before, where the table's message starts, where its next buffer goes, and the three numbers of
`message_parts`."""
STATE = MESSAGE + 3
"""How many numbers the state has."""

RESULT_START, RESULT_END, RESULT_FACTS = range(3)
RESULTS = RESULT_FACTS + FACTS
"""Numbers of a table's result: where its message starts and ends in the memory, and its `FACTS`, of which the
offset of `_seq` is one in the message."""

_LARGE_EVENTS = DIRECT_BYTES >> 3
"""Bytes of rows events from which a message's body begins on a page at once: it may be large enough for
direct I/O. Pages between small messages would be memory that the processor's caches have to hold for
nothing."""

_call_column = call_of(COLUMN)


@numba.njit
def _begin(plan: Any, expects_large: bool, memory: Any, state: Any, notes: Any) -> Any:
    """Begin the message of a table with its metadata, whose numbers come later; False if there is no room."""
    metadata, size = plan[METADATA], plan[METADATA_SIZE]
    start = state[BEGIN]
    if expects_large:
        start += -(start + size) & (DIRECT_PAGE - 1)
    if not has_room(memory, start, size, notes):
        return False
    copy(address_of(memory), start, address_of(bytes_at(metadata, size)), 0, size)
    state[START] = start
    state[AT] = start + size
    state[MESSAGE + BASE] = start + size
    state[MESSAGE + NODE] = (start + plan[FIRST_NODE]) >> 3
    state[MESSAGE + BUFFER] = (start + plan[FIRST_BUFFER]) >> 3
    return True


@numba.njit
def _build_column(data: Any, cells: Any, column: Any, memory: Any, state: Any, parts: Any, notes: Any) -> Any:
    """Build a column and add its parts to the message; returns its end, or the status of its kernel."""
    if column[KERNEL] == 0:
        return np.int64(LEFT)
    constants = bytes_at(column[CONSTANTS], column[CONSTANTS_SIZE])
    end = _call_column(
        column[KERNEL], (data, cells, column[FORM:], constants, memory, state[AT], parts, notes)
    )
    if end >= 0:
        words, message = memory.view(np.int64), state[MESSAGE:]
        part = 0
        for _ in range(column[NODES]):
            put_node(words, message, parts[part], parts[part + 1])
            part += 2
        for _ in range(column[BUFFERS]):
            put_buffer(words, message, parts[part], parts[part + 1])
            part += 2
    return end


@numba.njit
def _finish(plan: Any, rows: int, end: int, memory: Any, state: Any, notes: Any) -> Any:
    """Write the message's numbers of rows and of bytes; returns its end, or `FULL`.

    A large body begins and ends on a page, as direct I/O needs it.
    """
    words = memory.view(np.int64)
    start, base = state[START], state[MESSAGE + BASE]
    words[(start + plan[ROWS]) >> 3] = rows
    first = start + plan[FIRST_BUFFER]
    clear_gaps(memory, base, first, (8 * state[MESSAGE + BUFFER] - first) >> 4)
    if end - base >= DIRECT_BYTES:
        moved = -base & (DIRECT_PAGE - 1)
        padded = -(end - base) & (DIRECT_PAGE - 1)
        if not has_room(memory, end, moved + padded, notes):
            return np.int64(FULL)
        if moved:
            memory[start + moved : end + moved] = memory[start:end].copy()
            state[START] += moved
            start += moved
            base += moved
            end += moved
        memory[end : end + padded] = 0
        end += padded
    words[(start + plan[BODY_LENGTH]) >> 3] = end - base
    return end


@kernel
def build_tables(
    data: Bytes,
    walked: WalkedTables,
    transactions: Int64s,
    sources: Sources,
    plans: Plans,
    memory: Bytes,
    last: int,
    state: Int64s,
    parts: Int64s,
    notes: Int64s,
    counted: Int64s,
    results: Int64s,
) -> int:
    """Build the messages of the tables from `state[TABLE]` up to, but not including, `last`; returns a
    status.

    `data` has the rows; `transactions` is the transaction of each of `walked.events`. `counted` receives what
    column kernels count in `notes`, table by table; `results` is [table, `RESULTS`]. A table without rows has
    no message.
    """
    for table in range(state[TABLE], last):
        first_event, first_column, first_image, first_cell = walked.bounds[table]
        last_event, last_column, last_image, _ = walked.bounds[table + 1]
        rows = walked.found[table, 0]
        columns = last_column - first_column
        plan = plans.tables[table]
        bitmaps = walked.found[table, 1] * ((columns + 7) >> 3)
        state[TABLE] = table
        if rows > 0:
            events = walked.events[first_event:last_event]
            if state[COLUMN_INDEX] < 0:
                size = np.int64(0)
                for index in events:
                    size += sources.ends[index] - sources.starts[index]
                if size < _LARGE_EVENTS:
                    for index in events:
                        prefetch(address_of(data), sources.starts[index], sources.ends[index])
                notes[ZERO_DATES:] = 0
                if not _begin(plan, size >= _LARGE_EVENTS, memory, state, notes):
                    return FULL
                state[COLUMN_INDEX] = 0
            room = last_image - first_image
            for column in range(state[COLUMN_INDEX], columns):
                state[COLUMN_INDEX] = column
                at = (first_column + column) * COLUMN_NUMBERS
                cell = first_cell + column * room
                end = _build_column(
                    data,
                    walked.cells[cell : cell + rows],
                    plans.columns[at : at + COLUMN_NUMBERS],
                    memory,
                    state,
                    parts,
                    notes,
                )
                if end < 0:
                    return int(end)
                state[AT] = end
            state[COLUMN_INDEX] = columns
            end = build_metadata(
                data,
                sources,
                TableEvents(
                    events,
                    walked.counts[first_event:last_event],
                    transactions[first_event:last_event],
                ),
                TableImages(
                    walked.change_types[first_image : first_image + rows],
                    walked.images[first_image : first_image + rows],
                    walked.bitmaps[state[BITMAPS] : state[BITMAPS] + bitmaps],
                ),
                bytes_at(plan[NAMES], plan[NAMES_SIZE]),
                columns,
                memory,
                state[AT],
                state[MESSAGE:],
                notes,
                results[table, RESULT_FACTS:],
            )
            if end < 0:
                return int(end)
            # Now an offset in the message, which may be moved.
            results[table, RESULT_FACTS + SEQUENCE] -= state[START]
            end = _finish(plan, rows, end, memory, state, notes)
            if end < 0:
                return FULL
            results[table, RESULT_START] = state[START]
            results[table, RESULT_END] = end
            counted[ZERO_DATES:] += notes[ZERO_DATES:]
            state[BEGIN] = end
        state[COLUMN_INDEX] = -1
        state[BITMAPS] += bitmaps
    state[TABLE] = last
    return DONE
