"""Decodes any event from its bytes. A new event type needs a body class and one line in `_BODIES`."""

from __future__ import annotations

import json
from typing import Any

from engine.binlog import event_types as t
from engine.binlog.event_body import EventBody
from engine.binlog.event_headers import open_event
from engine.binlog.events import load_data, management, mariadb, payload, rows, statements, transactions
from engine.binlog.format_description import FormatDescription
from engine.binlog.gtid_set import MariadbGtidSet
from engine.binlog.table_map import TableMap
from engine.dataclass import dataclass
from engine.errors import EventError

_BODIES: dict[int, type[EventBody]] = {
    t.START_EVENT_V3: management.Format,
    t.FORMAT_DESCRIPTION_EVENT: management.Format,
    t.STOP_EVENT: management.Stop,
    t.ROTATE_EVENT: management.Rotate,
    t.SLAVE_EVENT: management.Slave,
    t.INCIDENT_EVENT: management.Incident,
    t.HEARTBEAT_LOG_EVENT: management.Heartbeat,
    t.HEARTBEAT_LOG_EVENT_V2: management.HeartbeatV2,
    t.IGNORABLE_LOG_EVENT: management.Opaque,
    t.QUERY_EVENT: statements.Query,
    t.QUERY_COMPRESSED_EVENT: statements.QueryCompressed,
    t.INTVAR_EVENT: statements.IntVar,
    t.RAND_EVENT: statements.Rand,
    t.USER_VAR_EVENT: statements.UserVar,
    t.ROWS_QUERY_LOG_EVENT: statements.RowsQuery,
    t.ANNOTATE_ROWS_EVENT: statements.AnnotateRows,
    t.LOAD_EVENT: load_data.Load,
    t.NEW_LOAD_EVENT: load_data.Load,
    t.CREATE_FILE_EVENT: load_data.CreateFile,
    t.APPEND_BLOCK_EVENT: load_data.FileBlock,
    t.EXEC_LOAD_EVENT: load_data.FileEnd,
    t.DELETE_FILE_EVENT: load_data.FileEnd,
    t.BEGIN_LOAD_QUERY_EVENT: load_data.FileBlock,
    t.EXECUTE_LOAD_QUERY_EVENT: load_data.ExecuteLoadQuery,
    t.XID_EVENT: transactions.Xid,
    t.XA_PREPARE_LOG_EVENT: transactions.XaPrepare,
    t.GTID_LOG_EVENT: transactions.Gtid,
    t.ANONYMOUS_GTID_LOG_EVENT: transactions.Gtid,
    t.GTID_TAGGED_LOG_EVENT: transactions.GtidTagged,
    t.PREVIOUS_GTIDS_LOG_EVENT: transactions.PreviousGtids,
    t.TRANSACTION_CONTEXT_EVENT: transactions.TransactionContext,
    t.VIEW_CHANGE_EVENT: transactions.ViewChange,
    t.TRANSACTION_PAYLOAD_EVENT: payload.TransactionPayload,
    t.TABLE_MAP_EVENT: TableMap,
    **dict.fromkeys(t.ROWS_EVENTS, rows.RowsHeader),
    t.BINLOG_CHECKPOINT_EVENT: mariadb.BinlogCheckpoint,
    t.GTID_EVENT: mariadb.MariadbGtid,
    t.GTID_LIST_EVENT: mariadb.GtidList,
    t.START_ENCRYPTION_EVENT: mariadb.StartEncryption,
    t.PARTIAL_ROW_DATA_EVENT: mariadb.PartialRowData,
}


@dataclass(frozen=True, slots=True)
class Event:
    """A decoded event."""

    header: t.EventHeader
    body: EventBody

    @property
    def type_name(self) -> str:
        """MySQL's name of the event's type."""
        return self.header.type_name

    def to_json(self) -> dict[str, Any]:
        """Header and body in JSON types, under the names of `events --json`."""
        header = self.header
        return {
            "size": header.size,
            "timestamp": header.timestamp,
            "server_id": header.server_id,
            "type": header.type_name,
            "type_code": header.type_code,
            "flags": header.flags,
            "data": self.body.to_json(),
        }


def decode_event(data: bytes, fmt: FormatDescription) -> Event:
    """A whole event, with or without its checksum, which is not verified here.

    The body of an unknown type is its bytes (`Opaque`). Raises `EventError` for anything malformed.
    """
    if data[4:5] and data[4] in (t.FORMAT_DESCRIPTION_EVENT, t.START_EVENT_V3):
        fmt = FormatDescription.parse(data)
    header, reader = open_event(data, fmt)
    body_type = _BODIES.get(header.type_code, management.Opaque)
    return Event(header, body_type.decode(reader, header, fmt))


def feed_entry(event: Event, **more: Any) -> tuple[str, str | None, str | None, str]:
    """The event for the events feed: type, database, statement, and all its fields as a JSON object.

    The object also has the event's timestamp, which is when its statement began: the value of NOW() in it;
    and the keys and values of `more`.
    """
    database = getattr(event.body, "database", None)
    statement = getattr(event.body, "statement", None)
    content = {"timestamp": event.header.timestamp} | event.body.to_json() | more
    data = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return event.type_name, database or None, statement, data


def gtid_set_text(event: Event) -> str | None:
    """The executed GTID set in an event at the start of a file; None for events without one."""
    if isinstance(event.body, transactions.PreviousGtids):
        return event.body.gtid_set
    if isinstance(event.body, mariadb.GtidList):
        return str(MariadbGtidSet.parse(",".join(event.body.gtids)))
    return None


@dataclass(frozen=True, slots=True)
class TaggedGtid:
    """Reads GTID_TAGGED_LOG_EVENTs of one format: bytes → (`uuid:tag`, number). Raises `EventError`."""

    fmt: FormatDescription

    def __call__(self, data: bytes) -> tuple[str, int]:
        body = decode_event(data, self.fmt).body
        if not isinstance(body, transactions.GtidTagged) or body.source is None or body.number is None:
            raise EventError("a tagged GTID event is expected", 4)
        return body.source, body.number
