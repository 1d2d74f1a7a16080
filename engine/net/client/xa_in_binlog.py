"""XA transactions that a binlog has as prepared, and that the server does not list.

MariaDB, and MySQL before 8.0.30, write XA PREPARE into the binlog before the storage engine prepares the
transaction, and list the transaction after that. If the server crashes in between, its recovery rolls the
transaction back, and the binlog does not say so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

from engine.binlog import event_types as types
from engine.binlog.event_body import EventBody
from engine.binlog.event_table import open_events
from engine.binlog.events.decoding import decode_event
from engine.binlog.events.mariadb import MariadbGtid
from engine.binlog.events.statements import Query
from engine.binlog.events.transactions import XaPrepare
from engine.binlog.format_description import FormatDescription
from engine.binlog.xids import ended_xid, xid_text
from engine.net.batching.outgoing_batch import OutgoingBatch
from engine.net.client.connection import Connection
from engine.net.client.dump_batches import dump_batches
from engine.net.client.dump_requests import FIRST_POSITION
from engine.net.client.refusals import Refusal
from engine.net.client.source_facts import SourceFacts
from engine.net.client.xa_recover import HIDDEN, prepared_xids

_PREPARED, _ENDED = "prepared_xa", "completed_xa"
"""MariaDB's names of the two steps, flags of GTID events."""
_TYPES = (types.GTID_EVENT, types.XA_PREPARE_LOG_EVENT, types.QUERY_EVENT)
"""The events that show steps: MariaDB's, and MySQL's two."""
_TYPE_AT = 4
_XA = b"XA "
_LONGEST_SECONDS = 10.0
_PAUSE_SECONDS = 0.05


def surviving_xids(
    connect: Callable[[], Connection],
    facts: SourceFacts,
    file: str,
    position: int,
    meanwhile: Callable[[], None],
) -> frozenset[str]:
    """Of all XIDs that were prepared before an event of `file`, where the server was started: those left.

    What the server lists is left. So is what the binlog ends later, since only a prepared transaction can be
    ended. If the binlog prepares an XID once more instead, the earlier transaction is gone. Other XIDs may be
    in the result. `connect` returns connections to the server; `meanwhile` is called now and then while its
    binlog is read from there to its end. Raises `EngineError`.
    """
    listed = _listed(connect)
    first_steps: dict[str, str] = {}
    for batch in dump_batches(connect(), facts, file, position):
        meanwhile()
        for xid, step in _steps(batch):
            first_steps.setdefault(xid, step)
    ended = {xid for xid, step in first_steps.items() if step == _ENDED}
    return frozenset(ended | (listed - first_steps.keys()))


def wait_until_listed(connect: Callable[[], Connection], facts: SourceFacts, file: str) -> None:
    """Wait until the server lists all that are prepared in `file`, or in a later one.

    Not longer than a storage engine takes to prepare a transaction, and not where the server does not list
    them for this user. Raises `EngineError`.
    """
    deadline = time.monotonic() + _LONGEST_SECONDS
    try:
        while _prepared_from(connect, facts, file) - _listed(connect) and time.monotonic() < deadline:
            time.sleep(_PAUSE_SECONDS)
    except Refusal as refusal:
        if refusal.code != HIDDEN:
            raise


def _prepared_from(connect: Callable[[], Connection], facts: SourceFacts, file: str) -> set[str]:
    """What the binlog prepares from the begin of a file on, and does not end."""
    last_steps = {
        xid: step
        for batch in dump_batches(connect(), facts, file, FIRST_POSITION)
        for xid, step in _steps(batch)
    }
    return {xid for xid, step in last_steps.items() if step == _PREPARED}


def _listed(connect: Callable[[], Connection]) -> frozenset[str]:
    with connect() as connection:
        return prepared_xids(connection)


def _steps(batch: OutgoingBatch) -> Iterator[tuple[str, str]]:
    """The XID of each XA transaction in a batch that is prepared or ended, and which of the two.

    Raises `EventTableError` for damage.
    """
    header = batch.header
    events, error = open_events(
        header.file, batch.data, batch.index, header.context_events, header.position, checksum_size=0
    )
    if error is not None:
        raise error
    rows = np.flatnonzero(np.isin(events.types, _TYPES))
    rows = rows[rows >= header.context_events]
    if not len(rows):
        return
    # Every batch that has events begins with its format description.
    description = FormatDescription.parse(events.event(0).tobytes())
    for row in rows:
        event = events.event(row).tobytes()
        if event[_TYPE_AT] != types.QUERY_EVENT or _XA in event:
            yield from _step(decode_event(event, description).body)


def _step(body: EventBody) -> Iterator[tuple[str, str]]:
    """The same for one event."""
    if isinstance(body, MariadbGtid) and body.xa_gtrid is not None:
        step = _PREPARED if _PREPARED in body.flags else _ENDED
        yield xid_text(body.xa_gtrid, body.xa_bqual or b"", body.xa_format_id or 0), step
    elif isinstance(body, XaPrepare) and not body.one_phase:
        yield xid_text(body.gtrid, body.bqual, body.format_id), _PREPARED
    elif isinstance(body, Query) and (xid := ended_xid(body.statement)) is not None:
        yield xid, _ENDED
