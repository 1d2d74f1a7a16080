"""Which of its prepared XA transactions a server still has after it was started.

MariaDB writes XA PREPARE into the binlog first. If it crashes before the storage engine has prepared the
transaction, its recovery rolls it back, and the binlog does not say so. What XA RECOVER lists is left. So is
what the binlog ends later, since only a prepared transaction can be ended. If the binlog prepares an XID once
more instead, the earlier transaction is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from engine.binlog import event_types as types
from engine.binlog.event_types import SIZE_AT
from engine.binlog.events.decoding import decode_event
from engine.binlog.events.mariadb import MariadbGtid
from engine.binlog.format_description import FormatDescription
from engine.binlog.xids import xid_text
from engine.net.batching.outgoing_batch import OutgoingBatch
from engine.net.client.connection import Connection
from engine.net.client.dump_batches import dump_batches
from engine.net.client.source_facts import SourceFacts
from engine.net.client.xa_recover import prepared_xids

_TYPE_BITS = 0xFF
_PREPARED, _ENDED = "prepared_xa", "completed_xa"


def surviving_xids(
    connect: Callable[[], Connection],
    facts: SourceFacts,
    file: str,
    position: int,
    meanwhile: Callable[[], None],
) -> frozenset[str]:
    """Of all XIDs that were prepared before an event of `file`, where the server was started: those left.

    Other XIDs may be among them. `connect` returns connections to the server; `meanwhile` is called again and
    again while its binlog is read from there to its end. Raises `EngineError`.
    """
    with connect() as connection:
        listed = prepared_xids(connection)
    first_steps: dict[str, str] = {}
    for batch in dump_batches(connect(), facts, file, position):
        meanwhile()
        for xid, step in _steps(batch):
            first_steps.setdefault(xid, step)
    ended = {xid for xid, step in first_steps.items() if step == _ENDED}
    return frozenset(ended | (listed - first_steps.keys()))


def _steps(batch: OutgoingBatch) -> Iterator[tuple[str, str]]:
    """The XID of each XA transaction in a batch that is prepared or ended, and which of the two."""
    context = batch.header.context_events
    kinds = batch.index[context:, 1] & _TYPE_BITS
    description = None
    for row in np.flatnonzero(kinds == types.GTID_EVENT) + context:
        event = _event(batch, int(row))
        description = description or FormatDescription.parse(_event(batch, 0))
        body = decode_event(event, description).body
        if isinstance(body, MariadbGtid) and body.xa_gtrid is not None:
            step = _PREPARED if _PREPARED in body.flags else _ENDED
            yield xid_text(body.xa_gtrid, body.xa_bqual or b"", body.xa_format_id or 0), step


def _event(batch: OutgoingBatch, row: int) -> bytes:
    start = int(batch.index[row, 0])
    size = int.from_bytes(batch.data[start + SIZE_AT : start + SIZE_AT + 4].tobytes(), "little")
    return batch.data[start : start + size].tobytes()
