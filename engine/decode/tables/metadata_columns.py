"""The metadata columns of one table's rows in a batch, built in an arena by a kernel, a function per column.

Their values are the same for all rows of a rows event, so most columns are run-end encoded: a run per commit
time, per transaction, per event, or one for all rows. A stream of small transactions over many tables has few
rows of each table, so no Python runs for a table.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from engine.decode.arrow.column_kernel import FULL, aligned, has_room
from engine.decode.tables.absent_columns import (
    NOTHING_ABSENT,
    build_absent_columns,
    build_nothing_absent,
)
from engine.decode.tables.message_parts import put_buffer, put_no_buffer, put_node, put_run_ends
from engine.kernels.kernel import Bytes, Int32s, Int64s, inlined, read_u32
from engine.kernels.memory import address_of, copy_padded

_MICROSECONDS = 1_000_000
SEQUENCE, FIRST_TIME, LAST_TIME, FACTS = range(4)
"""What `build_metadata` says of the columns: where the values of `_seq` are, the smallest and the largest
`_commit_timestamp`; and how many such numbers there are."""
_BYTES_PER_ROW = 1 + 8
"""The code of `_change_type` and the number of `_seq`."""
_BYTES_PER_RUN = (4 + 8) + (4 + 1 + 4) + (4 + 8)
"""The most for a rows event: a run of `_commit_timestamp`, of `_gtid` and of `_pos`."""
_FIXED_BYTES = 4 + 8 + 8 + NOTHING_ABSENT + 12 * 8
"""The first offset of `_gtid`, the run and the offsets of `_file`, `_absent_columns` of complete images, and
what aligns the buffers."""


class Sources(NamedTuple):
    """What metadata columns are made of: facts about a batch's events and transactions."""

    starts: Int64s
    """Per event the offset of its header in the batch."""
    ends: Int64s
    """Per event the offset after its content."""
    positions: Int64s
    """Per event its position in the binlog file."""
    before: Int64s
    """Per event the number of rows and feed entries of the batch before it."""
    file: Bytes
    """The name of the binlog file."""
    times: Int64s
    """Per transaction its commit time in µs, 0 if it has none."""
    gtid_offsets: Int32s
    """Per transaction the start of its GTID's text in `gtids`, and the end of the last one."""
    gtids: Bytes
    """Texts, an empty one for a transaction without a GTID."""


class TableEvents(NamedTuple):
    """The rows events of one table."""

    indexes: Int64s
    """Per rows event its index in the batch."""
    rows: Int64s
    """Per rows event its number of rows, which may be 0."""
    transactions: Int64s
    """Per rows event the number of its transaction in the batch."""


class TableImages(NamedTuple):
    """The row images of one table, as in `Rows`."""

    change_types: NDArray[np.int8]
    """Per row the code of its change type."""
    bitmap_numbers: Int32s
    """Per row the number of its bitmap, 0 if the image is complete."""
    bitmaps: Bytes
    """Which columns are in the images that are not complete."""


@numba.njit
def build_metadata(
    data: Any,
    sources: Any,
    events: Any,
    images: Any,
    names: Any,
    columns: int,
    memory: Any,
    at: int,
    message: Any,
    notes: Any,
    facts: Any,
) -> Any:
    """Build all metadata columns of a table from `at` on; returns their end, `FULL` or `TOO_LARGE`.

    `events` are its `TableEvents`, `images` its `TableImages`, `names` as in a `TablePlan`, of `columns`
    columns. `facts` receives the numbers above.
    """
    if not has_room(memory, at, _most_bytes(sources, events), notes):
        return FULL
    rows = images.change_types.size
    at = _build_change_types(images, memory, at, message)
    at = _build_commit_times(data, sources, events, rows, memory, at, message, facts)
    at = _build_sequence(sources, events, rows, memory, at, message, facts)
    at = _build_gtids(sources, events, rows, memory, at, message)
    at = _build_file(sources, rows, memory, at, message)
    at = _build_positions(sources, events, rows, memory, at, message)
    if images.bitmaps.size:
        return build_absent_columns(
            images.bitmap_numbers, images.bitmaps, names, columns, memory, at, message, notes
        )
    return build_nothing_absent(rows, memory, at, message)


@numba.njit
def _most_bytes(sources: Any, events: Any) -> Any:
    """The most bytes that the columns take, without lists of absent columns; that of texts is exact."""
    size = np.int64(sources.file.size + _FIXED_BYTES)
    last_transaction = np.int64(-1)
    for event in range(events.rows.size):
        if events.rows[event] > 0:
            size += _BYTES_PER_ROW * events.rows[event] + _BYTES_PER_RUN
            transaction = events.transactions[event]
            if transaction != last_transaction:
                last_transaction = transaction
                size += sources.gtid_offsets[transaction + 1] - sources.gtid_offsets[transaction]
    return size


@numba.njit
def _build_change_types(images: Any, memory: Any, at: int, message: Any) -> Any:
    """Build `_change_type`: a code per row; returns its end, as the functions below do."""
    rows = images.change_types.size
    for row in range(rows):
        memory[at + row] = images.change_types[row]
    words = memory.view(np.int64)
    put_node(words, message, rows, 0)
    put_no_buffer(words, message)
    put_buffer(words, message, at, rows)
    return aligned(at + rows)


@inlined
def _commit_time(data: Bytes, start: int, commit_time: int) -> int:
    """The transaction's commit time; if it has none, the time of the event whose header is at `start`."""
    return commit_time if commit_time > 0 else read_u32(data, start) * _MICROSECONDS


@numba.njit
def _build_commit_times(
    data: Any, sources: Any, events: Any, rows: int, memory: Any, at: int, message: Any, facts: Any
) -> Any:
    """Build `_commit_timestamp`: a run per time."""
    runs = np.int64(0)
    last = np.int64(0)
    for event in range(events.rows.size):
        if events.rows[event] > 0:
            start = sources.starts[events.indexes[event]]
            time = _commit_time(data, start, sources.times[events.transactions[event]])
            runs += runs == 0 or time != last
            last = time
    ends_at = at
    values_at = aligned(ends_at + 4 * runs)
    words, halves = memory.view(np.int64), memory.view(np.int32)
    run_end, value = ends_at >> 2, values_at >> 3
    row = np.int64(0)
    run = np.int64(-1)
    for event in range(events.rows.size):
        if events.rows[event] > 0:
            start = sources.starts[events.indexes[event]]
            time = _commit_time(data, start, sources.times[events.transactions[event]])
            if run < 0 or time != words[value + run]:
                run += 1
                words[value + run] = time
                facts[FIRST_TIME] = time if run == 0 else min(facts[FIRST_TIME], time)
                facts[LAST_TIME] = time if run == 0 else max(facts[LAST_TIME], time)
            row += events.rows[event]
            halves[run_end + run] = row
    put_run_ends(words, message, rows, runs, ends_at)
    put_node(words, message, runs, 0)
    put_no_buffer(words, message)
    put_buffer(words, message, values_at, 8 * runs)
    return values_at + 8 * runs


@numba.njit
def _build_sequence(
    sources: Any, events: Any, rows: int, memory: Any, at: int, message: Any, facts: Any
) -> Any:
    """Build `_seq`: a number per row."""
    words = memory.view(np.int64)
    place = at >> 3
    for event in range(events.rows.size):
        ordinal = sources.before[events.indexes[event]]
        for _ in range(events.rows[event]):
            ordinal += 1
            words[place] = ordinal
            place += 1
    facts[SEQUENCE] = at
    put_node(words, message, rows, 0)
    put_no_buffer(words, message)
    put_buffer(words, message, at, 8 * rows)
    return at + 8 * rows


@numba.njit
def _build_gtids(sources: Any, events: Any, rows: int, memory: Any, at: int, message: Any) -> Any:
    """Build `_gtid`: a run per transaction, NULL if that has no GTID."""
    runs = np.int64(0)
    last = np.int64(-1)
    for event in range(events.rows.size):
        if events.rows[event] > 0 and events.transactions[event] != last:
            last = events.transactions[event]
            runs += 1
    ends_at = at
    valid_at = aligned(ends_at + 4 * runs)
    offsets_at = aligned(valid_at + ((runs + 7) >> 3))
    texts_at = aligned(offsets_at + 4 * (runs + 1))
    memory[valid_at:offsets_at] = 0
    words, halves = memory.view(np.int64), memory.view(np.int32)
    run_end, offset = ends_at >> 2, offsets_at >> 2
    memory_address, gtids = address_of(memory), address_of(sources.gtids)
    halves[offset] = 0
    to = texts_at
    row = np.int64(0)
    run = np.int64(-1)
    nulls = np.int64(0)
    last = np.int64(-1)
    for event in range(events.rows.size):
        if events.rows[event] > 0:
            transaction = events.transactions[event]
            if transaction != last:
                last = transaction
                run += 1
                text = np.int64(sources.gtid_offsets[transaction])
                size = np.int64(sources.gtid_offsets[transaction + 1]) - text
                if size > 0:
                    memory[valid_at + (run >> 3)] |= 1 << (run & 7)
                else:
                    nulls += 1
                copy_padded(memory_address, to, gtids, text, size, sources.gtids.size)
                to += size
                halves[offset + run + 1] = to - texts_at
            row += events.rows[event]
            halves[run_end + run] = row
    put_run_ends(words, message, rows, runs, ends_at)
    put_node(words, message, runs, nulls)
    put_buffer(words, message, valid_at, ((runs + 7) >> 3) if nulls else 0)
    put_buffer(words, message, offsets_at, 4 * (runs + 1))
    put_buffer(words, message, texts_at, to - texts_at)
    return aligned(to)


@numba.njit
def _build_file(sources: Any, rows: int, memory: Any, at: int, message: Any) -> Any:
    """Build `_file`: one run."""
    size = sources.file.size
    ends_at = at
    offsets_at = ends_at + 8
    text_at = offsets_at + 8
    words, halves = memory.view(np.int64), memory.view(np.int32)
    halves[ends_at >> 2] = rows
    halves[offsets_at >> 2] = 0
    halves[(offsets_at >> 2) + 1] = size
    for byte in range(size):
        memory[text_at + byte] = sources.file[byte]
    put_run_ends(words, message, rows, 1, ends_at)
    put_node(words, message, 1, 0)
    put_no_buffer(words, message)
    put_buffer(words, message, offsets_at, 8)
    put_buffer(words, message, text_at, size)
    return aligned(text_at + size)


@numba.njit
def _build_positions(sources: Any, events: Any, rows: int, memory: Any, at: int, message: Any) -> Any:
    """Build `_pos`: a run per rows event."""
    runs = np.int64(0)
    for event in range(events.rows.size):
        runs += events.rows[event] > 0
    ends_at = at
    values_at = aligned(ends_at + 4 * runs)
    words, halves = memory.view(np.int64), memory.view(np.int32)
    run_end, value = ends_at >> 2, values_at >> 3
    row = np.int64(0)
    for event in range(events.rows.size):
        if events.rows[event] > 0:
            row += events.rows[event]
            halves[run_end] = row
            words[value] = sources.positions[events.indexes[event]]
            run_end += 1
            value += 1
    put_run_ends(words, message, rows, runs, ends_at)
    put_node(words, message, runs, 0)
    put_no_buffer(words, message)
    put_buffer(words, message, values_at, 8 * runs)
    return values_at + 8 * runs
