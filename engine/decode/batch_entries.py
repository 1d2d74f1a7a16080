"""What a batch would add to an output, without decoding a value: its tables, and its number of entries.

The first pass over an archive needs no more: a part's entry numbers depend on those before it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.dataclass import dataclass
from engine.decode.arrow.codec import Counters
from engine.decode.batch_walk import BatchWalk
from engine.decode.feed.events_feed import closing_statement, feed_batch
from engine.decode.feed.statement_tables import StatementChanges
from engine.decode.rows.prepared import NO_XA, XaEvents, xa_events
from engine.decode.tables.table_decoder import TableDecoder
from engine.kernels.kernel import Bytes
from engine.pipeline.messages import Batch, StatementFacts


@dataclass(frozen=True, slots=True)
class BatchTables:
    """The tables of a batch."""

    tables: Sequence[TableDecoder]
    """Those with rows."""
    xa: XaEvents


@dataclass(frozen=True, slots=True)
class BatchEntries:
    """The entries of a batch."""

    tables: Sequence[TableDecoder]
    """Those with rows."""
    number: int
    """Rows and entries of the feed: `Result.ordinals`."""
    statement: StatementFacts | None
    """As in `Result`."""
    xa: XaEvents = NO_XA


def batch_tables(walk: BatchWalk, batch: Batch, index: NDArray[np.uint32], data: Bytes) -> BatchTables:
    """What `batch_entries` finds, without the numbers of entries, and with tables of rolled back rows.

    Raises `EventTableError` for a broken event.
    """
    if batch.dropped is not None or not batch.context_events:
        return BatchTables((), NO_XA)
    opened = walk.open(batch, index, data)
    if opened.error is not None:
        raise opened.error
    assert opened.description is not None
    description = opened.description.without_checksums()
    found = walk.tables(opened.events, description, batch)
    return BatchTables(found.decoders, xa_events(found.events, found.groups, description))


def batch_entries(walk: BatchWalk, batch: Batch, index: NDArray[np.uint32], data: Bytes) -> BatchEntries:
    """What `BatchDecoder.decode` would find. Raises `EventTableError` for a broken event."""
    if batch.dropped is not None:
        return BatchEntries((), 1, None)
    opened = walk.open(batch, index, data)
    if opened.error is not None:
        raise opened.error
    if opened.description is None or len(opened.events) <= opened.events.context:
        return BatchEntries((), 0, None)
    description = opened.description.without_checksums()
    found = walk.walk(opened.events, description, batch, Counters())
    statement = None
    if len(found.groups.feed_events) and batch.status.schema_changes:
        changes = StatementChanges(batch.status.schema_changes)
        events, groups = found.events, found.groups
        entries = feed_batch(events, groups, found.before, description, found.tagged.split, changes)
        statement = closing_statement(entries, events, groups, changes)
    xa = xa_events(found.events, found.groups, description)
    return BatchEntries(found.rows.with_rows(), int(found.before[-1]), statement, xa)
