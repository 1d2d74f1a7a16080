"""The metadata columns of one table's rows in a batch, built in an arena by a kernel.

Their values are the same for all rows of a rows event, so most columns are run-end encoded: a run per commit
time, per transaction, per event, or one for all rows. A stream of small transactions over many tables has few
rows of each table, so no Python runs for a table.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

from engine.decode.arrow.column_kernel import FULL, aligned, has_room
from engine.decode.tables.absent_columns import (
    NOTHING_ABSENT,
    build_absent_columns,
    build_nothing_absent,
)
from engine.decode.tables.message_parts import put_buffer, put_no_buffer, put_node
from engine.kernels.kernel import Bytes, Int32s, Int64s, inlined, read_u32
from engine.kernels.memory import PADDING, address_of, copy_padded

_MICROSECONDS = 1_000_000
SEQUENCE, FIRST_TIME, LAST_TIME, FACTS = range(4)
"""What `build_metadata` says of the columns: where the values of `_seq` are, the smallest and the largest
`_commit_timestamp`; and how many such numbers there are."""
_BUFFERS = 12
"""The most buffers whose start is aligned."""


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


@inlined
def _time(data: Bytes, start: int, commit_time: int) -> int:
    """The commit time; if a transaction has none, the event's own time."""
    return commit_time if commit_time > 0 else read_u32(data, start) * _MICROSECONDS


@numba.njit
def build_metadata(
    data: Any,
    sources: Any,
    change_types: Any,
    images: Any,
    counts: Any,
    events: Any,
    transactions: Any,
    bitmaps: Any,
    names: Any,
    columns: int,
    memory: Any,
    at: int,
    message: Any,
    notes: Any,
    facts: Any,
) -> Any:
    """Build all metadata columns of a table from `at` on; returns their end, `FULL` or `TOO_LARGE`.

    `change_types` and `images` are per row, as in `Rows`, `counts`, `events` and `transactions` per rows
    event: its rows, its index in the batch, and its transaction in the batch. `facts` receives the numbers
    above.
    """
    starts, times, gtid_offsets = sources.starts, sources.times, sources.gtid_offsets
    rows = np.int64(0)
    runs = np.int64(0)
    time_runs = np.int64(0)
    gtid_runs = np.int64(0)
    gtid_bytes = np.int64(0)
    last_time = np.int64(0)
    last_transaction = np.int64(-1)
    for i in range(len(events)):
        if counts[i] > 0:
            time = _time(data, starts[events[i]], times[transactions[i]])
            time_runs += runs == 0 or time != last_time
            if transactions[i] != last_transaction:
                gtid_runs += 1
                gtid_bytes += gtid_offsets[transactions[i] + 1] - gtid_offsets[transactions[i]]
            last_time = time
            last_transaction = transactions[i]
            rows += counts[i]
            runs += 1
    file_size = len(sources.file)
    needed = 9 * rows + 12 * runs + 12 * time_runs + 9 * gtid_runs + gtid_bytes + file_size + NOTHING_ABSENT
    if not has_room(memory, at, needed + 8 * _BUFFERS + PADDING, notes):
        return FULL

    words, halves = memory.view(np.int64), memory.view(np.int32)
    types_at = at
    sequence_at = aligned(types_at + rows)
    position_ends_at = sequence_at + 8 * rows
    positions_at = aligned(position_ends_at + 4 * runs)
    time_ends_at = positions_at + 8 * runs
    times_at = aligned(time_ends_at + 4 * time_runs)
    gtid_ends_at = times_at + 8 * time_runs
    valid_at = aligned(gtid_ends_at + 4 * gtid_runs)
    gtid_offsets_at = aligned(valid_at + ((gtid_runs + 7) >> 3))
    gtids_at = aligned(gtid_offsets_at + 4 * (gtid_runs + 1))

    for i in range(rows):
        memory[types_at + i] = change_types[i]
    for i in range(valid_at, gtid_offsets_at):
        memory[i] = 0
    sequence, position_end, position = sequence_at >> 3, position_ends_at >> 2, positions_at >> 3
    time_end, time_value = time_ends_at >> 2, times_at >> 3
    gtid_end, gtid_offset = gtid_ends_at >> 2, gtid_offsets_at >> 2
    memory_address, texts = address_of(memory), address_of(sources.gtids)
    halves[gtid_offset] = 0
    gtid = gtids_at
    row = np.int64(0)
    run = np.int64(0)
    time_run = np.int64(-1)
    gtid_run = np.int64(-1)
    gtid_nulls = np.int64(0)
    last_transaction = np.int64(-1)
    first_time = np.int64(0)
    for i in range(len(events)):
        if counts[i] > 0:
            index = events[i]
            transaction = transactions[i]
            ordinal = sources.before[index]
            for _ in range(counts[i]):
                ordinal += 1
                words[sequence + row] = ordinal
                row += 1
            halves[position_end + run] = row
            words[position + run] = sources.positions[index]
            run += 1
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
                    memory[valid_at + (gtid_run >> 3)] |= 1 << (gtid_run & 7)
                else:
                    gtid_nulls += 1
                copy_padded(memory_address, gtid, texts, text, size, sources.gtids.size)
                gtid += size
                halves[gtid_offset + gtid_run + 1] = gtid - gtids_at
            halves[gtid_end + gtid_run] = row
    all_rows_at = aligned(gtid)
    halves[all_rows_at >> 2] = rows
    file_offsets_at = all_rows_at + 8
    halves[file_offsets_at >> 2] = 0
    halves[(file_offsets_at >> 2) + 1] = file_size
    file_at = file_offsets_at + 8
    for i in range(file_size):
        memory[file_at + i] = sources.file[i]
    end = aligned(file_at + file_size)

    # _change_type
    put_node(words, message, rows, 0)
    put_no_buffer(words, message)
    put_buffer(words, message, types_at, rows)
    # _commit_timestamp
    put_node(words, message, rows, 0)
    put_node(words, message, time_runs, 0)
    put_node(words, message, time_runs, 0)
    put_no_buffer(words, message)
    put_buffer(words, message, time_ends_at, 4 * time_runs)
    put_no_buffer(words, message)
    put_buffer(words, message, times_at, 8 * time_runs)
    # _seq
    put_node(words, message, rows, 0)
    put_no_buffer(words, message)
    put_buffer(words, message, sequence_at, 8 * rows)
    # _gtid
    put_node(words, message, rows, 0)
    put_node(words, message, gtid_runs, 0)
    put_node(words, message, gtid_runs, gtid_nulls)
    put_no_buffer(words, message)
    put_buffer(words, message, gtid_ends_at, 4 * gtid_runs)
    put_buffer(words, message, valid_at, ((gtid_runs + 7) >> 3) if gtid_nulls else 0)
    put_buffer(words, message, gtid_offsets_at, 4 * (gtid_runs + 1))
    put_buffer(words, message, gtids_at, gtid - gtids_at)
    # _file
    put_node(words, message, rows, 0)
    put_node(words, message, 1, 0)
    put_node(words, message, 1, 0)
    put_no_buffer(words, message)
    put_buffer(words, message, all_rows_at, 4)
    put_no_buffer(words, message)
    put_buffer(words, message, file_offsets_at, 8)
    put_buffer(words, message, file_at, file_size)
    # _pos
    put_node(words, message, rows, 0)
    put_node(words, message, runs, 0)
    put_node(words, message, runs, 0)
    put_no_buffer(words, message)
    put_buffer(words, message, position_ends_at, 4 * runs)
    put_no_buffer(words, message)
    put_buffer(words, message, positions_at, 8 * runs)

    facts[SEQUENCE] = sequence_at
    facts[FIRST_TIME] = first_time
    facts[LAST_TIME] = last_time
    if bitmaps.size:
        return build_absent_columns(images, bitmaps, names, columns, memory, end, message, notes)
    return build_nothing_absent(rows, memory, end, message)
