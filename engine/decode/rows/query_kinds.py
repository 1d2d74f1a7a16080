"""The kinds (`engine.binlog.statements`) of the statements in a batch's events feed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.binlog import event_types as types
from engine.binlog.event_table import EventTable
from engine.binlog.format_description import FormatDescription
from engine.binlog.statements import statement_kind, statement_start
from engine.decode.rows.event_groups import EventGroups
from engine.kernels.kernel import Bytes, Int64s, kernel


@kernel
def _kinds(data: Bytes, starts: Int64s, ends: Int64s, post_header: int, kinds: Int64s) -> None:
    for i in range(len(starts)):
        text = statement_start(data, starts[i], ends[i], post_header)
        kinds[i] = statement_kind(data, text, ends[i])


def query_kinds(
    events: EventTable, groups: EventGroups, description: FormatDescription
) -> tuple[NDArray[np.bool_], Int64s]:
    """Which of `groups.feed_events` are QUERY events, and the kinds of these, in order.

    The events are those that `group_events` has checked.
    """
    are_queries = events.types[groups.feed_events] == types.QUERY_EVENT
    indexes = groups.feed_events[are_queries]
    kinds = np.empty(len(indexes), np.int64)
    if len(indexes):
        post_header = description.post_header_length(types.QUERY_EVENT)
        _kinds(events.data, events.starts[indexes], events.ends[indexes], post_header, kinds)
    return are_queries, kinds
