"""The status variables of QUERY events, one by one, as MySQL's and MariaDB's sources lay them out."""

from __future__ import annotations

import struct

import pytest

from engine.binlog.event_reader import EventReader
from engine.binlog.events.query_status import read_status
from engine.errors import EventError

VARIABLES = {
    "flags2": (b"\x00" + struct.pack("<I", 0x4000), {"flags2": 0x4000}),
    "sql_mode": (b"\x01" + struct.pack("<Q", 1 << 40), {"sql_mode": 1 << 40}),
    "catalog of MySQL 5.0.0 to 5.0.3": (b"\x02\x03std\0", {"catalog": "std"}),
    "auto_increment": (
        b"\x03" + struct.pack("<HH", 2, 1),
        {"auto_increment_increment": 2, "auto_increment_offset": 1},
    ),
    "charset": (
        b"\x04" + struct.pack("<HHH", 8, 33, 2304),
        {"collation_client": 8, "collation_connection": 33, "collation_server": 2304},
    ),
    "time_zone": (b"\x05\x06+02:00", {"time_zone": "+02:00"}),
    "catalog": (b"\x06\x03std", {"catalog": "std"}),
    "lc_time_names": (b"\x07\x04\x00", {"lc_time_names": 4}),
    "charset of the database": (b"\x08\x2f\x00", {"collation_database": 47}),
    "table_map_for_update": (b"\x09" + struct.pack("<Q", 5), {"table_map_for_update": 5}),
    "master_data_written": (b"\x0a" + struct.pack("<I", 123), {"original_size": 123}),
    "invoker": (b"\x0b\x02me\x04host", {"invoker_user": "me", "invoker_host": "host"}),
    "updated databases": (b"\x0c\x02a\0\xc3\xbc\0", {"updated_databases": ["a", "ü"]}),
    "more databases than are listed": (b"\x0c\xfe", {"updated_databases": None}),
    "microseconds": (b"\x0d" + (999_999).to_bytes(3, "little"), {"microseconds": 999_999}),
    "explicit_defaults_for_timestamp": (b"\x10\x01", {"explicit_defaults_for_timestamp": 1}),
    "ddl_logged_with_xid": (b"\x11" + struct.pack("<Q", 77), {"ddl_xid": 77}),
    "default_collation_for_utf8mb4": (b"\x12\xff\x00", {"default_collation_for_utf8mb4": 255}),
    "sql_require_primary_key": (b"\x13\x01", {"sql_require_primary_key": 1}),
    "default_table_encryption": (b"\x14\x01", {"default_table_encryption": 1}),
    "enable_cascade_triggers": (b"\x15\x01", {"enable_cascade_triggers": 1}),
    "MariaDB's microseconds": (b"\x80" + (999_999).to_bytes(3, "little"), {"microseconds": 999_999}),
    "MariaDB's xid of a definition": (b"\x81" + struct.pack("<Q", 42), {"ddl_xid": 42}),
    "MariaDB's start of an ALTER": (b"\x82\x02", {"gtid_flags_extra": 2}),
    "MariaDB's end of an ALTER": (
        b"\x82\x04" + struct.pack("<Q", 42),
        {"gtid_flags_extra": 4, "start_alter_sequence_number": 42},
    ),
    "MariaDB's collations of character sets": (
        b"\x83\x01" + struct.pack("<HH", 33, 2048),
        {"character_set_collations": [(33, 2048)]},
    ),
}


@pytest.mark.parametrize("name", VARIABLES)
def test_each_variable(name: str) -> None:
    stored, want = VARIABLES[name]
    assert read_status(EventReader(stored)) == want


@pytest.mark.parametrize("name", VARIABLES)
def test_each_variable_cut_off(name: str) -> None:
    stored, _ = VARIABLES[name]
    for end in range(1, len(stored)):
        with pytest.raises(EventError):
            read_status(EventReader(stored[:end]))


def test_all_in_one_event() -> None:
    stored, wants = zip(*(VARIABLES[name] for name in VARIABLES), strict=True)
    together = read_status(EventReader(b"".join(stored)))
    assert together == {key: value for want in wants for key, value in want.items()}
