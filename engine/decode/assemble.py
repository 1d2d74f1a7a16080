"""From a walked table to a record batch: the families' arrays, then the metadata columns.

What repeats from row to row (transaction, event, file) is worked out per event and run-end encoded; only
`_change_type` and `_seq` cost bytes per row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.change_schema import UTC_MICROSECONDS
from engine.decode.columns.base import Codec, Counters
from engine.decode.event_table import EventTable
from engine.decode.gtids import gtid_texts
from engine.decode.tables import TableDecoder
from engine.decode.walk import Rows
from engine.errors import EngineError, EventError
from engine.kernels import Bytes, Int64s

TaggedGtid = Callable[[bytes], tuple[str, int]]
"""(`uuid:tag`, number) of a GTID_TAGGED_LOG_EVENT's bytes."""

_NONE_ABSENT = pa.array([None], pa.list_(pa.string()))
"""What `_absent_columns` says of a row that has all columns."""


@dataclass(frozen=True, slots=True)
class TableRows:
    """The rows of one table in a batch, with what is known per rows event (those without rows left out)."""

    decoder: TableDecoder
    rows: Rows
    events: Int64s
    """The rows events (indexes into the event table)."""
    transactions: Int64s
    """Per rows event its transaction's number in the batch."""
    gtid_events: Int64s
    """Per rows event its transaction's GTID event, or -1."""
    times: Int64s
    """Per rows event its commit time in µs."""
    ordinals: Int64s
    """Per rows event how many rows and feed entries of the batch come before it."""


def _run_starts(values: Int64s) -> Int64s:
    """The places where a new run of equal values starts."""
    changes = np.empty(len(values), np.bool_)
    changes[:1] = True
    np.not_equal(values[1:], values[:-1], out=changes[1:])
    return np.flatnonzero(changes)


def _run_ends(starts: Int64s, row_ends: Int64s) -> pa.Array:
    """Run ends in rows, for runs of events that start at `starts`."""
    last_events = np.append(starts[1:], len(row_ends)) - 1
    return pa.array(row_ends[last_events].astype(np.int32))


def _runs(run_ends: pa.Array, values: pa.Array) -> pa.Array:
    return pa.RunEndEncodedArray.from_arrays(run_ends, values)


def absent_columns(rows: Rows, names: tuple[str, ...]) -> pa.Array:
    """Plain array: per row the names of the columns that its image lacks, null where it has all."""
    ends, values = _absent_runs(rows, names)
    return values.take(pa.array(np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))))


def _absent_runs(rows: Rows, names: tuple[str, ...]) -> tuple[NDArray[np.int32], pa.Array]:
    total = len(rows.images)
    if not len(rows.bitmaps):
        return np.array([total], np.int32), _NONE_ABSENT
    lists: list[list[str] | None] = [None]
    for bitmap in rows.bitmaps:
        present = np.unpackbits(bitmap, bitorder="little")
        lists.append([name for name, bit in zip(names, present, strict=False) if not bit])
    starts = _run_starts(rows.images.astype(np.int64))
    ends = np.append(starts[1:], total).astype(np.int32)
    return ends, pa.array(lists, _NONE_ABSENT.type).take(pa.array(rows.images[starts]))


def _ordinals(table: TableRows, row_ends: Int64s) -> NDArray[np.int64]:
    """Per row its place in the batch, from 1."""
    counts = table.rows.counts
    first_rows = row_ends - counts
    return np.arange(1, int(row_ends[-1]) + 1) + np.repeat(table.ordinals - first_rows, counts)


def build_columns(
    data: Bytes, rows: Rows, names: Sequence[str], codecs: Sequence[Codec], counters: Counters
) -> list[pa.Array]:
    """The array of each column. Errors name it: `EngineError`, or `EventError` with an offset in `data`."""
    columns = []
    for place, (name, codec) in enumerate(zip(names, codecs, strict=True)):
        try:
            columns.append(codec.build(data, rows.cells[:, place], counters))
        except EventError as error:
            raise type(error)(f"column {name}: {error.reason}", error.offset) from error
        except EngineError as error:
            raise EngineError(f"column {name}: {error}") from error
    return columns


def assemble(events: EventTable, table: TableRows, tagged: TaggedGtid, counters: Counters) -> pa.RecordBatch:
    """The rows as a record batch in transit shape (see `engine.change_schema`)."""
    rows = table.rows
    row_ends = np.cumsum(rows.counts)
    columns = build_columns(events.data, rows, table.decoder.names, table.decoder.codecs, counters)
    transaction_starts = _run_starts(table.transactions)
    time_starts = _run_starts(table.times)
    times = pa.array(table.times[time_starts], UTC_MICROSECONDS)
    gtids = gtid_texts(events, table.gtid_events[transaction_starts], tagged)
    absent_ends, absent_lists = _absent_runs(rows, table.decoder.names)
    total = int(row_ends[-1])
    columns += [
        pa.array(rows.change_types),
        _runs(_run_ends(time_starts, row_ends), times),
        pa.array(_ordinals(table, row_ends)),
        _runs(_run_ends(transaction_starts, row_ends), gtids),
        _runs(pa.array([total], pa.int32()), pa.array([events.file])),
        _runs(pa.array(row_ends.astype(np.int32)), pa.array(events.positions[table.events])),
        _runs(pa.array(absent_ends), absent_lists),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=table.decoder.transit_schema)
