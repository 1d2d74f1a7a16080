"""All event types that servers have ever written into a binlog, and the events' common header.

The constants are plain integers under MySQL's names, so that numba kernels can use them; `EVENT_NAMES` is
made from them, so a type is declared in one line. Sources: MySQL's `binlog_event.h` and MariaDB's
`log_event.h`; a name that MySQL has dropped is that of the last version that had it.
"""

from __future__ import annotations

import struct

from engine.dataclass import dataclass
from engine.errors import EventError

# MySQL 3.23 and later
UNKNOWN_EVENT = 0
START_EVENT_V3 = 1
QUERY_EVENT = 2
STOP_EVENT = 3
ROTATE_EVENT = 4
INTVAR_EVENT = 5
LOAD_EVENT = 6
SLAVE_EVENT = 7
CREATE_FILE_EVENT = 8
APPEND_BLOCK_EVENT = 9
EXEC_LOAD_EVENT = 10
DELETE_FILE_EVENT = 11
NEW_LOAD_EVENT = 12
RAND_EVENT = 13
USER_VAR_EVENT = 14
# MySQL 5.0
FORMAT_DESCRIPTION_EVENT = 15
XID_EVENT = 16
BEGIN_LOAD_QUERY_EVENT = 17
EXECUTE_LOAD_QUERY_EVENT = 18
# MySQL 5.1
TABLE_MAP_EVENT = 19
PRE_GA_WRITE_ROWS_EVENT = 20
PRE_GA_UPDATE_ROWS_EVENT = 21
PRE_GA_DELETE_ROWS_EVENT = 22
WRITE_ROWS_EVENT_V1 = 23
UPDATE_ROWS_EVENT_V1 = 24
DELETE_ROWS_EVENT_V1 = 25
INCIDENT_EVENT = 26
HEARTBEAT_LOG_EVENT = 27
# MySQL 5.6
IGNORABLE_LOG_EVENT = 28
ROWS_QUERY_LOG_EVENT = 29
WRITE_ROWS_EVENT = 30
UPDATE_ROWS_EVENT = 31
DELETE_ROWS_EVENT = 32
GTID_LOG_EVENT = 33
ANONYMOUS_GTID_LOG_EVENT = 34
PREVIOUS_GTIDS_LOG_EVENT = 35
# MySQL 5.7
TRANSACTION_CONTEXT_EVENT = 36
VIEW_CHANGE_EVENT = 37
XA_PREPARE_LOG_EVENT = 38
# MySQL 8.0
PARTIAL_UPDATE_ROWS_EVENT = 39
TRANSACTION_PAYLOAD_EVENT = 40
HEARTBEAT_LOG_EVENT_V2 = 41
# MySQL 8.3
GTID_TAGGED_LOG_EVENT = 42
# MariaDB
ANNOTATE_ROWS_EVENT = 160
BINLOG_CHECKPOINT_EVENT = 161
GTID_EVENT = 162
GTID_LIST_EVENT = 163
START_ENCRYPTION_EVENT = 164
QUERY_COMPRESSED_EVENT = 165
WRITE_ROWS_COMPRESSED_EVENT_V1 = 166
UPDATE_ROWS_COMPRESSED_EVENT_V1 = 167
DELETE_ROWS_COMPRESSED_EVENT_V1 = 168
WRITE_ROWS_COMPRESSED_EVENT = 169
UPDATE_ROWS_COMPRESSED_EVENT = 170
DELETE_ROWS_COMPRESSED_EVENT = 171
PARTIAL_ROW_DATA_EVENT = 172

EVENT_NAMES: dict[int, str] = {code: name for name, code in list(globals().items()) if "_EVENT" in name}
"""Type code → name, in order of the codes."""


def event_name(type_code: int) -> str:
    """MySQL's name of a type, `UNKNOWN_EVENT` if it has none."""
    return EVENT_NAMES.get(type_code, EVENT_NAMES[UNKNOWN_EVENT])


@dataclass(frozen=True, slots=True)
class RowsKind:
    """The properties in which the types of rows events differ."""

    change: str
    """`write`, `update` or `delete`."""
    version: int
    """0: MySQL before 5.1.16; 1: until 5.6, and MariaDB; 2: with extra row info in the post header."""
    compressed: bool = False
    """MariaDB: the bytes after the column bitmaps are compressed."""
    partial_json: bool = False
    """Postimages may contain JSON differences instead of values."""


ROWS_EVENTS: dict[int, RowsKind] = {
    PRE_GA_WRITE_ROWS_EVENT: RowsKind("write", 0),
    PRE_GA_UPDATE_ROWS_EVENT: RowsKind("update", 0),
    PRE_GA_DELETE_ROWS_EVENT: RowsKind("delete", 0),
    WRITE_ROWS_EVENT_V1: RowsKind("write", 1),
    UPDATE_ROWS_EVENT_V1: RowsKind("update", 1),
    DELETE_ROWS_EVENT_V1: RowsKind("delete", 1),
    WRITE_ROWS_EVENT: RowsKind("write", 2),
    UPDATE_ROWS_EVENT: RowsKind("update", 2),
    DELETE_ROWS_EVENT: RowsKind("delete", 2),
    PARTIAL_UPDATE_ROWS_EVENT: RowsKind("update", 2, partial_json=True),
    WRITE_ROWS_COMPRESSED_EVENT_V1: RowsKind("write", 1, compressed=True),
    UPDATE_ROWS_COMPRESSED_EVENT_V1: RowsKind("update", 1, compressed=True),
    DELETE_ROWS_COMPRESSED_EVENT_V1: RowsKind("delete", 1, compressed=True),
    WRITE_ROWS_COMPRESSED_EVENT: RowsKind("write", 2, compressed=True),
    UPDATE_ROWS_COMPRESSED_EVENT: RowsKind("update", 2, compressed=True),
    DELETE_ROWS_COMPRESSED_EVENT: RowsKind("delete", 2, compressed=True),
}

NO_TABLE = 0xFFFFFF
"""Table id of a rows event without rows, which only ends its statement."""

# Header flags
FLAG_BINLOG_IN_USE = 0x1
FLAG_FORCED_ROTATE = 0x2
FLAG_THREAD_SPECIFIC = 0x4
FLAG_SUPPRESS_USE = 0x8
FLAG_UPDATE_TABLE_MAP_VERSION = 0x10
FLAG_ARTIFICIAL = 0x20
FLAG_RELAY_LOG = 0x40
FLAG_IGNORABLE = 0x80
FLAG_NO_FILTER = 0x100
FLAG_MTS_ISOLATE = 0x200
FLAG_MARIADB_ACCEPT_OWN = 0x4000
FLAG_MARIADB_SKIP_REPLICATION = 0x8000

HEADER_LENGTH = 19
SIZE_AT, NEXT_POSITION_AT, FLAGS_AT = 9, 13, 17
"""Offsets in the header."""
OLD_HEADER_LENGTH = 13
"""MySQL 3.23 (binlog version 1): without next position and flags."""
CHECKSUM_LENGTH = 4

_HEADER = struct.Struct("<IBIIIH")
_OLD_HEADER = struct.Struct("<IBII")


@dataclass(frozen=True, slots=True)
class EventHeader:
    """The common header."""

    timestamp: int
    """Seconds since the epoch, on the server's clock, when the statement began."""
    type_code: int
    server_id: int
    size: int
    """Size in bytes of the whole event: header, body and checksum."""
    next_position: int
    """Position of the next event in the file, modulo 2^32; 0 for events that are not in a file."""
    flags: int

    @property
    def type_name(self) -> str:
        """MySQL's name of the event's type."""
        return event_name(self.type_code)

    @classmethod
    def parse(cls, data: bytes, header_length: int = HEADER_LENGTH) -> EventHeader:
        """The header at the start of `data`. Raises `EventError` if `data` is too short."""
        if len(data) < header_length:
            raise EventError(f"an event header has {header_length} bytes, but only {len(data)} are left")
        if header_length == OLD_HEADER_LENGTH:
            timestamp, type_code, server_id, size = _OLD_HEADER.unpack_from(data)
            header = cls(timestamp, type_code, server_id, size, 0, 0)
        else:
            header = cls(*_HEADER.unpack_from(data))
        if header.size < header_length:
            raise EventError(f"the event claims a size of {header.size} bytes, less than its header", SIZE_AT)
        return header
