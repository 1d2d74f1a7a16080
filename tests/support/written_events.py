"""Which events servers write in the tests' workloads, and a file's events decoded one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from engine.binlog.events.decoding import Event
from engine.binlog.files import read_events
from engine.decode.inspect.event_stream import PlacedEvent, decode_all

LABELS = {
    "FORMAT_DESCRIPTION_EVENT": "Start: binlog",
    "PREVIOUS_GTIDS_LOG_EVENT": "Previous-GTIDs",
    "GTID_LOG_EVENT": "GTID",
    "ANONYMOUS_GTID_LOG_EVENT": "Anonymous_GTID",
    "GTID_TAGGED_LOG_EVENT": "GTID",
    "QUERY_EVENT": "Query",
    "ROWS_QUERY_LOG_EVENT": "Rows_query",
    "TABLE_MAP_EVENT": "Table_map",
    "WRITE_ROWS_EVENT": "Write_rows:",
    "UPDATE_ROWS_EVENT": "Update_rows:",
    "DELETE_ROWS_EVENT": "Delete_rows:",
    "PARTIAL_UPDATE_ROWS_EVENT": "Update_rows_partial",
    "WRITE_ROWS_EVENT_V1": "Write_rows:",
    "UPDATE_ROWS_EVENT_V1": "Update_rows:",
    "DELETE_ROWS_EVENT_V1": "Delete_rows:",
    "WRITE_ROWS_COMPRESSED_EVENT_V1": "Write_compressed_rows",
    "UPDATE_ROWS_COMPRESSED_EVENT_V1": "Update_compressed_rows",
    "DELETE_ROWS_COMPRESSED_EVENT_V1": "Delete_compressed_rows",
    "QUERY_COMPRESSED_EVENT": "Query_compressed",
    "XID_EVENT": "Xid",
    "XA_PREPARE_LOG_EVENT": "X",
    "INTVAR_EVENT": "Intvar",
    "RAND_EVENT": "Rand",
    "USER_VAR_EVENT": "User_var",
    "BEGIN_LOAD_QUERY_EVENT": "",
    "EXECUTE_LOAD_QUERY_EVENT": "Execute_load_query",
    "TRANSACTION_PAYLOAD_EVENT": "Transaction_Payload",
    "ROTATE_EVENT": "Rotate",
    "GTID_LIST_EVENT": "Gtid list",
    "BINLOG_CHECKPOINT_EVENT": "Binlog checkpoint",
    "GTID_EVENT": "GTID",
}

COMMON = {
    *(
        "FORMAT_DESCRIPTION_EVENT",
        "QUERY_EVENT",
        "TABLE_MAP_EVENT",
        "XID_EVENT",
        "INTVAR_EVENT",
        "RAND_EVENT",
    ),
    *("USER_VAR_EVENT", "BEGIN_LOAD_QUERY_EVENT", "EXECUTE_LOAD_QUERY_EVENT", "ROTATE_EVENT"),
}

MYSQL = COMMON | {
    *("PREVIOUS_GTIDS_LOG_EVENT", "GTID_LOG_EVENT", "ROWS_QUERY_LOG_EVENT"),
    *("WRITE_ROWS_EVENT", "UPDATE_ROWS_EVENT", "DELETE_ROWS_EVENT"),
}

MARIADB = COMMON | {
    *(
        "GTID_LIST_EVENT",
        "BINLOG_CHECKPOINT_EVENT",
        "GTID_EVENT",
        "ANNOTATE_ROWS_EVENT",
        "XA_PREPARE_LOG_EVENT",
    ),
    *("WRITE_ROWS_EVENT_V1", "UPDATE_ROWS_EVENT_V1", "DELETE_ROWS_EVENT_V1", "QUERY_COMPRESSED_EVENT"),
    *("WRITE_ROWS_COMPRESSED_EVENT_V1", "UPDATE_ROWS_COMPRESSED_EVENT_V1", "DELETE_ROWS_COMPRESSED_EVENT_V1"),
}

MYSQL_57 = MYSQL | {"XA_PREPARE_LOG_EVENT"}
MYSQL_80 = MYSQL_57 | {"PARTIAL_UPDATE_ROWS_EVENT"}

WRITTEN = {
    "mysql-5.6": MYSQL,
    "mysql-5.7": MYSQL_57,
    "mysql-8.0": MYSQL_80,
    "mysql-9.7": MYSQL_80 | {"TRANSACTION_PAYLOAD_EVENT", "GTID_TAGGED_LOG_EVENT"},
    "mariadb-10.11": MARIADB,
    "mariadb-11.8": MARIADB,
}
"""What the workload makes each server write."""


def fields_of(event: Event) -> Any:
    """The body of an event, whose class follows from the type that the event was chosen by."""
    return event.body


def decode_file(path: Path) -> list[PlacedEvent]:
    return list(decode_all((path.name, position, data) for position, data in read_events(path)))
