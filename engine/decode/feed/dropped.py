"""The entry of the events feed for what was dropped with a corrupt event (`--on-corrupt skip`).

The network process dropped it and sent a batch with nothing but its record, and the transaction's GTID event
as context where that is known. Here the record becomes a row like those of real events.
"""

from __future__ import annotations

import json

import pyarrow as pa

from engine.output.change_schema import EVENT_FEED_SCHEMA
from engine.pipeline.messages import Dropped

TYPE = "CORRUPT_EVENT"
"""What the feed has in place of an event's type; no server's event is called so."""


def dropped_entry(file: str, dropped: Dropped, gtid: str | None, time: int | None) -> pa.RecordBatch:
    """The feed's row, in transit shape. `gtid`, `time`: of the transaction (µs), null where nobody knows."""
    data = {
        "reason": dropped.reason,
        "dropped": dropped.what,
        "start": dropped.start,
        "end": dropped.end,
        "gtid": gtid,
    }
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    row = (1, file, dropped.position, gtid, time, TYPE, None, None, text)
    return pa.RecordBatch.from_arrays(
        [pa.array([value], field.type) for value, field in zip(row, EVENT_FEED_SCHEMA, strict=True)],
        schema=EVENT_FEED_SCHEMA,
    )
