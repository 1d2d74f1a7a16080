"""The status variables of a QUERY event: the session's settings that its statement depends on.

A sequence of codes with values. The length of a value depends on its code, so reading stops at the first
unknown code. Source: `Query_event` in MySQL's `statement_events.cpp`, `Query_log_event` in MariaDB's
`log_event.cc`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.binlog.event_reader import EventReader, text

_TOO_MANY_DATABASES = 254
"""Instead of a count: the statement changed more databases than MySQL lists."""
_START_ALTER, _COMMIT_ALTER, _ROLLBACK_ALTER = 0x02, 0x04, 0x08
"""MariaDB's flags of an ALTER in two parts, `log_event.h`; the second has the number of its START ALTER."""

Status = dict[str, Any]


def read_status(reader: EventReader) -> Status:
    """All status variables up to the reader's end, by name."""
    status: Status = {}
    while reader.remaining:
        code = reader.uint(1)
        if code not in _VARIABLES:
            status["unknown_variable"] = code
            status["unknown_bytes"] = reader.rest()
            break
        status |= _VARIABLES[code](reader)
    return status


def takes_effect(status: Status) -> bool:
    """Whether a statement takes effect with its event; false for START ALTER and ROLLBACK ALTER."""
    return not status.get("gtid_flags_extra", 0) & (_START_ALTER | _ROLLBACK_ALTER)


def _number(name: str, length: int) -> Callable[[EventReader], Status]:
    return lambda reader: {name: reader.uint(length)}


def _short_text(reader: EventReader) -> str:
    return text(reader.take(reader.uint(1)))


def _terminated_catalog(reader: EventReader) -> Status:
    catalog = _short_text(reader)
    reader.skip(1)
    return {"catalog": catalog}


def _auto_increment(reader: EventReader) -> Status:
    return {"auto_increment_increment": reader.uint(2), "auto_increment_offset": reader.uint(2)}


def _collations(reader: EventReader) -> Status:
    return {
        "collation_client": reader.uint(2),
        "collation_connection": reader.uint(2),
        "collation_server": reader.uint(2),
    }


def _invoker(reader: EventReader) -> Status:
    return {"invoker_user": _short_text(reader), "invoker_host": _short_text(reader)}


def _updated_databases(reader: EventReader) -> Status:
    count = reader.uint(1)
    if count >= _TOO_MANY_DATABASES:
        return {"updated_databases": None}
    return {"updated_databases": [text(reader.terminated()) for _ in range(count)]}


def _mariadb_alter(reader: EventReader) -> Status:
    flags = reader.uint(1)
    status: Status = {"gtid_flags_extra": flags}
    if flags & (_COMMIT_ALTER | _ROLLBACK_ALTER):
        status["start_alter_sequence_number"] = reader.uint(8)
    return status


def _mariadb_collations(reader: EventReader) -> Status:
    pairs = [(reader.uint(2), reader.uint(2)) for _ in range(reader.uint(1))]
    return {"character_set_collations": pairs}


_VARIABLES: dict[int, Callable[[EventReader], Status]] = {
    0: _number("flags2", 4),
    1: _number("sql_mode", 8),
    2: _terminated_catalog,
    3: _auto_increment,
    4: _collations,
    5: lambda reader: {"time_zone": _short_text(reader)},
    6: lambda reader: {"catalog": _short_text(reader)},
    7: _number("lc_time_names", 2),
    8: _number("collation_database", 2),
    9: _number("table_map_for_update", 8),
    10: _number("original_size", 4),
    11: _invoker,
    12: _updated_databases,
    13: _number("microseconds", 3),
    16: _number("explicit_defaults_for_timestamp", 1),
    17: _number("ddl_xid", 8),
    18: _number("default_collation_for_utf8mb4", 2),
    19: _number("sql_require_primary_key", 1),
    20: _number("default_table_encryption", 1),
    21: _number("enable_cascade_triggers", 1),
    128: _number("microseconds", 3),
    129: _number("ddl_xid", 8),
    130: _mariadb_alter,
    131: _mariadb_collations,
}
"""Code → reader of its value. Codes from 128 are MariaDB's."""
