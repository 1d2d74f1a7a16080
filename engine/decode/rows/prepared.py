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
from engine.decode.rows.event_groups import EventGroups
from engine.decode.rows.query_kinds import query_kinds
from engine.errors import EventError
from engine.kernels.kernel import Int64s
from engine.pipeline.messages import PreparedEntries, XaFacts

_TYPES = (types.XA_PREPARE_LOG_EVENT, types.QUERY_EVENT)


def xa_facts(
    events: EventTable, groups: EventGroups, before: Int64s, description: FormatDescription
) -> XaFacts | None:
    """What the batch says of XA transactions; None if nothing. Raises `EventTableError`.

    `before`: per event the number of entries of the batch before it.
    """
    if events.codes.isdisjoint(_TYPES):
        return None
    are_queries, kinds = query_kinds(events, groups, description)
    wanted = events.types[groups.feed_events] == types.XA_PREPARE_LOG_EVENT
    wanted[are_queries] = kinds == XA_COMMIT
    prepared: dict[str, PreparedEntries] = {}
    committed: list[str] = []
    for index in map(int, groups.feed_events[wanted]):
        try:
            body = decode_event(events.event(index).tobytes(), description).body
        except EventError as error:
            raise events.error(index, str(error), error.corrupt) from error
        if isinstance(body, XaPrepare) and not body.one_phase:
            xid = xid_text(body.gtrid, body.bqual, body.format_id)
            prepared[xid] = _entries(xid, events, index, before)
        elif isinstance(body, Query) and (ended := ended_xid(body.statement)) is not None:
            prepared.pop(ended, None)
            committed.append(ended)
    return XaFacts(list(prepared.values()), committed) if prepared or committed else None


def _entries(xid: str, events: EventTable, prepare: int, before: Int64s) -> PreparedEntries:
    """Those from the last transaction end before XA PREPARE on."""
    ends = np.flatnonzero(events.transaction_ends[events.context : prepare])
    first = int(before[events.context + int(ends[-1]) + 1]) + 1 if len(ends) else 0
    return PreparedEntries(xid, first, int(before[prepare]))
