"""Which entries of a batch belong to transactions that XA PREPARE ends, and which of these XA COMMIT ends.

Rows of such a transaction are entries like all others; the sink undoes them if an XA ROLLBACK follows.
"""

from __future__ import annotations

import numpy as np

from engine.binlog import event_types as types
from engine.binlog.event_table import EventTable
from engine.binlog.events.decoding import decode_event
from engine.binlog.events.statements import Query
from engine.binlog.events.transactions import XaPrepare
from engine.binlog.format_description import FormatDescription
from engine.binlog.statements import XA_COMMIT
from engine.binlog.xids import ended_xid, xid_text
from engine.dataclass import dataclass
from engine.decode.rows.event_groups import EventGroups
from engine.decode.rows.query_kinds import query_kinds
from engine.errors import EventError
from engine.kernels.kernel import Int64s
from engine.pipeline.messages import PreparedEntries, XaFacts

_TYPES = (types.XA_PREPARE_LOG_EVENT, types.QUERY_EVENT)


@dataclass(frozen=True, slots=True)
class PreparedEvents:
    """A transaction that XA PREPARE ends."""

    xid: str
    first: int | None
    """Its first event (index into the event table); None: it may have begun in an earlier batch."""
    last: int
    """XA PREPARE itself."""
    begin: int | None
    """The positions of these in the file; of one in a compressed transaction, that of the transaction."""
    end: int


@dataclass(frozen=True, slots=True)
class XaEvents:
    """The XA transactions of a batch."""

    prepared: list[PreparedEvents]
    """Those that are prepared at its end, and were not at its start."""
    committed: list[str]
    """XIDs of XA COMMIT statements; the transaction may have been prepared in the same batch."""


NO_XA = XaEvents([], [])


def xa_events(events: EventTable, groups: EventGroups, description: FormatDescription) -> XaEvents:
    """The XA transactions of the batch. Raises `EventTableError`."""
    if events.codes.isdisjoint(_TYPES):
        return NO_XA
    are_queries, kinds = query_kinds(events, groups, description)
    wanted = events.types[groups.feed_events] == types.XA_PREPARE_LOG_EVENT
    wanted[are_queries] = kinds == XA_COMMIT
    prepared: dict[str, PreparedEvents] = {}
    committed: list[str] = []
    for index in map(int, groups.feed_events[wanted]):
        try:
            body = decode_event(events.event(index).tobytes(), description).body
        except EventError as error:
            raise events.error(index, str(error), error.corrupt) from error
        if isinstance(body, XaPrepare) and not body.one_phase:
            xid = xid_text(body.gtrid, body.bqual, body.format_id)
            prepared[xid] = _prepared(xid, events, index)
        elif isinstance(body, Query) and (ended := ended_xid(body.statement)) is not None:
            prepared.pop(ended, None)
            committed.append(ended)
    return XaEvents(list(prepared.values()), committed)


def xa_facts(found: XaEvents, before: Int64s) -> XaFacts | None:
    """The same by entries; `before`: per event the number of entries of the batch before it."""
    if not (found.prepared or found.committed):
        return None
    entries = [
        PreparedEntries(
            each.xid, 0 if each.first is None else int(before[each.first]) + 1, int(before[each.last])
        )
        for each in found.prepared
    ]
    return XaFacts(entries, found.committed)


def _prepared(xid: str, events: EventTable, prepare: int) -> PreparedEvents:
    """The events after the last transaction end before XA PREPARE."""
    end = int(events.positions[prepare])
    ends = np.flatnonzero(events.transaction_ends[events.context : prepare])
    if not len(ends):
        return PreparedEvents(xid, None, prepare, None, end)
    first = events.context + int(ends[-1]) + 1
    return PreparedEvents(xid, first, prepare, int(events.positions[first]), end)
