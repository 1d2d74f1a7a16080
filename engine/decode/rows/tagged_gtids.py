"""Decodes tagged GTID events (MySQL 8.3 and later) one by one: rare, and of fields without fixed offsets."""

from __future__ import annotations

import numpy as np

from engine.binlog import event_types as types
from engine.binlog.event_table import EventTable
from engine.binlog.events.decoding import TaggedGtid, decode_event
from engine.binlog.events.transactions import Gtid
from engine.binlog.format_description import FormatDescription
from engine.decode.rows.event_groups import EventGroups
from engine.errors import EventError


class TaggedGtids:
    """Reads the tagged GTID events of the binlog file that begins with `description`."""

    def __init__(self, description: FormatDescription) -> None:
        self._description = description
        self.split = TaggedGtid(description)
        """An event's (`uuid:tag`, number). Raises `EventError`."""

    def fill_commit_times(self, events: EventTable, groups: EventGroups) -> None:
        """Set the commit times of transactions with tagged GTIDs, which `group_events` leaves at 0."""
        if types.GTID_TAGGED_LOG_EVENT not in events.codes:
            return
        indexes = groups.transaction_gtids
        tagged = (indexes >= 0) & (events.types[indexes] == types.GTID_TAGGED_LOG_EVENT)
        for transaction in np.flatnonzero(tagged):
            index = int(indexes[transaction])
            try:
                body = decode_event(events.event(index).tobytes(), self._description).body
            except EventError as error:
                raise events.error(index, str(error), error.corrupt) from error
            assert isinstance(body, Gtid)
            time = body.original_commit_timestamp or body.immediate_commit_timestamp or 0
            groups.transaction_times[transaction] = time
