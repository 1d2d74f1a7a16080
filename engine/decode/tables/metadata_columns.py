"""The metadata columns of one table's rows in a batch, built in an arena by one kernel.

Their values are the same for all rows of a rows event, so most columns are run-end encoded: a run per commit
time, per transaction, per event, or one for all rows. A stream of small transactions over many tables has few
rows of each table, so Python does little work per table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.binlog.event_table import EventTable
from engine.decode.arrow.arena import NO_BUFFER, Arena, ArenaFull, ArrayParts
from engine.decode.rows.walk import Rows
from engine.decode.tables.absent_columns import absent_columns
from engine.decode.tables.gtid_texts import GtidTexts
from engine.kernels.kernel import Bytes, Int32s, Int64s, inlined, kernel, read_u32
from engine.kernels.memory import PADDING, address_of, copy_padded

_MICROSECONDS = 1_000_000
(
    _CHANGE_TYPES,
    _SEQUENCE,
    _POSITION_ENDS,
    _POSITIONS,
    _TIME_ENDS,
    _TIMES,
    _GTID_ENDS,
    _GTID_VALIDITY,
    _GTID_OFFSETS,
    _GTIDS,
    _ALL_ROWS_END,
    _FILE_OFFSETS,
    _FILE,
    _NO_OFFSETS,
    _NOTHING_VALID,
    _BUFFERS,
) = range(16)
"""The buffers whose offset and size `_build` returns, and their number."""
_ROWS, _EVENTS, _TIME_RUNS, _GTID_RUNS, _GTID_NULLS, _FIRST_TIME, _LAST_TIME, _NUMBERS = range(8)
"""The numbers that `_build` returns, and how many they are."""
_SHORT_BUFFERS = 256 + PADDING
"""Bytes that suffice for the buffers whose size does not depend on the rows, with alignment and padding."""


@dataclass(frozen=True, slots=True)
class Transactions:
    """A batch's transactions; rows refer to them by number."""

    times: Int64s
    """Commit times in µs, 0 if the transaction has none."""
    gtids: GtidTexts


@dataclass(frozen=True, slots=True)
class TableRows:
    """The rows of one table in a batch, and values per rows event."""

    rows: Rows
    events: Int64s
    """The rows events (indexes into the event table)."""
    transactions: Int64s
    """Per rows event the number of its transaction in the batch."""


class MetadataColumns(NamedTuple):
    """All metadata columns of a table's rows, in order."""

    parts: ArrayParts
    sequence: int
    """Offset of the values of `_seq`, from the arena's `base`."""
    first_time: int
    """Smallest and largest `_commit_timestamp`."""
    last_time: int


@inlined
def _take(regions: Int64s, buffer: int, at: int, size: int) -> int:
    """Record the offset and size of a buffer; returns the next buffer's offset."""
    regions[buffer, 0] = at
    regions[buffer, 1] = size
    return int(at + ((size + 7) & ~7))


@inlined
def _time(data: Bytes, start: int, commit_time: int) -> int:
    """The commit time; if a transaction has none, the event's own time."""
    return commit_time if commit_time > 0 else read_u32(data, start) * _MICROSECONDS


@kernel
def _build(
    memory: Bytes,
    at: int,
    limit: int,
    data: Bytes,
    starts: Int64s,
    positions: Int64s,
    before: Int64s,
    file: Bytes,
    change_types: NDArray[np.int8],
    counts: Int64s,
    rows_events: Int64s,
    transactions: Int64s,
    times: Int64s,
    gtid_offsets: Int32s,
    gtids: Bytes,
    regions: Int64s,
    numbers: Int64s,
) -> int:
    """Build all buffers from `at` on; returns their end, or ~n if they may need n bytes, above `limit`."""
    rows = np.int64(0)
    events = np.int64(0)
    time_runs = np.int64(0)
    gtid_runs = np.int64(0)
    gtid_bytes = np.int64(0)
    last_time = np.int64(0)
    last_transaction = np.int64(-1)
    for i in range(len(rows_events)):
        if counts[i] > 0:
            time = _time(data, starts[rows_events[i]], times[transactions[i]])
            time_runs += events == 0 or time != last_time
            if transactions[i] != last_transaction:
                gtid_runs += 1
                gtid_bytes += gtid_offsets[transactions[i] + 1] - gtid_offsets[transactions[i]]
            last_time = time
            last_transaction = transactions[i]
            rows += counts[i]
            events += 1
    needed = 9 * rows + 12 * events + 12 * time_runs + 9 * gtid_runs + gtid_bytes + len(file)
    if at + needed + _SHORT_BUFFERS > limit:
        return int(~(needed + _SHORT_BUFFERS))

    buffers, texts_of = address_of(memory), address_of(gtids)
    words = memory.view(np.int64)
    halves = memory.view(np.int32)
    types_at = at
    at = _take(regions, _CHANGE_TYPES, at, rows)
    for i in range(rows):
        memory[types_at + i] = change_types[i]
    sequence = at >> 3
    at = _take(regions, _SEQUENCE, at, 8 * rows)
    position_end = at >> 2
    at = _take(regions, _POSITION_ENDS, at, 4 * events)
    position = at >> 3
    at = _take(regions, _POSITIONS, at, 8 * events)
    time_end = at >> 2
    at = _take(regions, _TIME_ENDS, at, 4 * time_runs)
    time_value = at >> 3
    at = _take(regions, _TIMES, at, 8 * time_runs)
    gtid_end = at >> 2
    at = _take(regions, _GTID_ENDS, at, 4 * gtid_runs)
    gtid_valid = at
    at = _take(regions, _GTID_VALIDITY, at, (gtid_runs + 7) >> 3)
    for i in range(gtid_valid, at):
        memory[i] = 0
    gtid_offset = at >> 2
    at = _take(regions, _GTID_OFFSETS, at, 4 * (gtid_runs + 1))
    gtid = at

    halves[gtid_offset] = 0
    row = np.int64(0)
    event = np.int64(0)
    time_run = np.int64(-1)
    gtid_run = np.int64(-1)
    gtid_nulls = np.int64(0)
    last_transaction = np.int64(-1)
    first_time = np.int64(0)
    for i in range(len(rows_events)):
        if counts[i] > 0:
            index = rows_events[i]
            transaction = transactions[i]
            ordinal = before[index]
            for _ in range(counts[i]):
                ordinal += 1
                words[sequence + row] = ordinal
                row += 1
            halves[position_end + event] = row
            words[position + event] = positions[index]
            event += 1
            time = _time(data, starts[index], times[transaction])
            if time_run < 0:
                first_time = time
                last_time = time
            if time_run < 0 or time != words[time_value + time_run]:
                time_run += 1
                words[time_value + time_run] = time
                first_time = min(first_time, time)
                last_time = max(last_time, time)
            halves[time_end + time_run] = row
            if transaction != last_transaction:
                last_transaction = transaction
                gtid_run += 1
                text = np.int64(gtid_offsets[transaction])
                size = np.int64(gtid_offsets[transaction + 1]) - text
                if size > 0:
                    memory[gtid_valid + (gtid_run >> 3)] |= 1 << (gtid_run & 7)
                else:
                    gtid_nulls += 1
                copy_padded(buffers, gtid, texts_of, text, size, gtids.size)
                gtid += int(size)
                halves[gtid_offset + gtid_run + 1] = gtid - at
            halves[gtid_end + gtid_run] = row
    at = _take(regions, _GTIDS, at, gtid - at)

    halves[at >> 2] = rows
    at = _take(regions, _ALL_ROWS_END, at, 4)
    halves[at >> 2] = 0
    halves[(at >> 2) + 1] = len(file)
    at = _take(regions, _FILE_OFFSETS, at, 8)
    for i in range(len(file)):
        memory[at + i] = file[i]
    at = _take(regions, _FILE, at, len(file))
    words[at >> 3] = 0
    at = _take(regions, _NO_OFFSETS, at, 8)
    words[at >> 3] = 0
    at = _take(regions, _NOTHING_VALID, at, 1)

    numbers[_ROWS] = rows
    numbers[_EVENTS] = events
    numbers[_TIME_RUNS] = time_runs
    numbers[_GTID_RUNS] = gtid_runs
    numbers[_GTID_NULLS] = gtid_nulls
    numbers[_FIRST_TIME] = first_time
    numbers[_LAST_TIME] = last_time
    return at


def build_metadata(
    arena: Arena,
    events: EventTable,
    before: Int64s,
    transactions: Transactions,
    table: TableRows,
    names: tuple[str, ...],
) -> MetadataColumns:
    """The metadata columns of a table's rows. Raises `ArenaFull`.

    `before`: per event the number of rows and feed entries of the batch before it; `names`: of the table's
    columns.
    """
    rows = table.rows
    regions = np.empty((_BUFFERS, 2), np.int64)
    numbers = np.empty(_NUMBERS, np.int64)
    end = _build(
        arena.memory,
        arena.end,
        len(arena.memory),
        events.data,
        events.starts,
        events.positions,
        before,
        np.frombuffer(events.file.encode(), np.uint8),
        rows.change_types,
        rows.counts,
        table.events,
        table.transactions,
        transactions.times,
        transactions.gtids.offsets,
        transactions.gtids.content,
        regions,
        numbers,
    )
    if end < 0:
        raise ArenaFull(~end)
    arena.end = end
    regions[:, 0] -= arena.base
    at = [tuple(region) for region in regions.tolist()]
    total, runs, time_runs, gtid_runs, gtid_nulls, first_time, last_time = numbers.tolist()
    absent = absent_columns(arena, rows, names) if len(rows.bitmaps) else None
    if absent is None:
        empty = (*at[_NO_OFFSETS][:1], 4, *NO_BUFFER)
        absent = ArrayParts(
            (total, 0, 1, 0, 1, 1, 0, 0),
            (*NO_BUFFER, *at[_ALL_ROWS_END], *at[_NOTHING_VALID], *at[_NO_OFFSETS], *NO_BUFFER, *empty),
        )
    validity = at[_GTID_VALIDITY] if gtid_nulls else NO_BUFFER
    nodes = (
        *(total, 0),
        *(total, 0, time_runs, 0, time_runs, 0),
        *(total, 0),
        *(total, 0, gtid_runs, 0, gtid_runs, gtid_nulls),
        *(total, 0, 1, 0, 1, 0),
        *(total, 0, runs, 0, runs, 0),
        *absent.nodes,
    )
    buffers = (
        *(*NO_BUFFER, *at[_CHANGE_TYPES]),
        *(*NO_BUFFER, *at[_TIME_ENDS], *NO_BUFFER, *at[_TIMES]),
        *(*NO_BUFFER, *at[_SEQUENCE]),
        *(*NO_BUFFER, *at[_GTID_ENDS], *validity, *at[_GTID_OFFSETS], *at[_GTIDS]),
        *(*NO_BUFFER, *at[_ALL_ROWS_END], *NO_BUFFER, *at[_FILE_OFFSETS], *at[_FILE]),
        *(*NO_BUFFER, *at[_POSITION_ENDS], *NO_BUFFER, *at[_POSITIONS]),
        *absent.buffers,
    )
    return MetadataColumns(ArrayParts(nodes, buffers), at[_SEQUENCE][0], first_time, last_time)
