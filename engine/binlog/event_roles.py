"""The role of each event type in the stream, as a table for kernels.

The network process uses roles to find transaction boundaries, the decoders to group events; both branch on
a role, never on lists of types.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.binlog import event_types as types

(
    CONTENT,
    MYSQL_GTID,
    ANONYMOUS_GTID,
    TAGGED_GTID,
    MARIADB_GTID,
    QUERY,
    STATEMENT,
    TABLE_MAP,
    ROWS,
    TRANSACTION_FINISH,
    PAYLOAD,
    MANAGEMENT,
    FORMAT,
    ROTATE,
    HEARTBEAT,
) = range(15)
"""CONTENT: any other part of a transaction. STATEMENT: a statement in another event than QUERY, or an
incident; like QUERY, a transaction unless it is inside one. TRANSACTION_FINISH: ends a transaction (XID,
XA PREPARE). PAYLOAD: a whole compressed transaction after its GTID. MANAGEMENT: an event between
transactions. HEARTBEAT: never in a file."""

BETWEEN_TRANSACTIONS = (
    *(MYSQL_GTID, ANONYMOUS_GTID, TAGGED_GTID, MARIADB_GTID),
    *(MANAGEMENT, FORMAT, ROTATE),
)
"""Roles of the events that begin a transaction or are between two, where each has a GTID event."""

_ROLES: dict[int, tuple[int, ...]] = {
    MYSQL_GTID: (types.GTID_LOG_EVENT,),
    ANONYMOUS_GTID: (types.ANONYMOUS_GTID_LOG_EVENT,),
    TAGGED_GTID: (types.GTID_TAGGED_LOG_EVENT,),
    MARIADB_GTID: (types.GTID_EVENT,),
    QUERY: (types.QUERY_EVENT,),
    STATEMENT: (
        types.EXECUTE_LOAD_QUERY_EVENT,
        types.QUERY_COMPRESSED_EVENT,
        types.LOAD_EVENT,
        types.NEW_LOAD_EVENT,
        types.EXEC_LOAD_EVENT,
        types.DELETE_FILE_EVENT,
        types.INCIDENT_EVENT,
    ),
    TABLE_MAP: (types.TABLE_MAP_EVENT,),
    ROWS: tuple(code for code, kind in types.ROWS_EVENTS.items() if not kind.compressed),
    TRANSACTION_FINISH: (types.XID_EVENT, types.XA_PREPARE_LOG_EVENT),
    PAYLOAD: (types.TRANSACTION_PAYLOAD_EVENT,),
    MANAGEMENT: (
        types.STOP_EVENT,
        types.SLAVE_EVENT,
        types.PREVIOUS_GTIDS_LOG_EVENT,
        types.BINLOG_CHECKPOINT_EVENT,
        types.GTID_LIST_EVENT,
        types.START_ENCRYPTION_EVENT,
    ),
    FORMAT: (types.FORMAT_DESCRIPTION_EVENT, types.START_EVENT_V3),
    ROTATE: (types.ROTATE_EVENT,),
    HEARTBEAT: (types.HEARTBEAT_LOG_EVENT, types.HEARTBEAT_LOG_EVENT_V2),
}

EVENT_ROLES: NDArray[np.int64] = np.full(256, CONTENT, np.int64)
"""Type code → role."""
IS_UPDATE = np.zeros(256, np.bool_)
"""Type code → whether the images of a rows event come in pairs, each with a bitmap of columns."""
HAS_EXTRA_INFO = np.zeros(256, np.bool_)
"""Type code → whether a rows event has extra info before its number of columns."""
IS_COMPRESSED = np.zeros(256, np.bool_)
"""Type code → whether the row images of a rows event are compressed (MariaDB)."""
for _role, _codes in _ROLES.items():
    EVENT_ROLES[list(_codes)] = _role
for _code, _rows_kind in types.ROWS_EVENTS.items():
    IS_UPDATE[_code] = _rows_kind.change == "update"
    HAS_EXTRA_INFO[_code] = _rows_kind.version == 2
    IS_COMPRESSED[_code] = _rows_kind.compressed
