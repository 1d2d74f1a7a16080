"""The events feed's entry for a corrupt event and what was dropped with it (`--on-corrupt skip`).

The network process drops them and sends a batch that contains only a record of them and, as context, the
transaction's GTID event if it is known. Here the record becomes a row like those of real events.
"""

from __future__ import annotations

import json

import pyarrow as pa

from engine.output.change_schema import EVENT_FEED_SCHEMA
from engine.pipeline.messages import Dropped

TYPE = "CORRUPT_EVENT"
"""The entry's event type; no server uses this name."""


def dropped_entry(file: str, dropped: Dropped, gtid: str | None, time: int | None) -> pa.RecordBatch:
    """The feed's row, in transit shape. `gtid` and `time` (µs) of the transaction are None if unknown."""
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
