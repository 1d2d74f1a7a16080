"""The format of a binlog file, from its first event.

All other events depend on it: it contains the length of the headers and whether events end with a checksum.
Files of MySQL before 5.0 start with a START_EVENT_V3 instead, whose version determines the same.
Source: `Format_description_event` in MySQL's `control_events.cpp` and MariaDB's `log_event.cc`.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import replace
from functools import lru_cache

from engine.binlog import event_types as t
from engine.binlog.event_reader import EventReader
from engine.dataclass import dataclass
from engine.errors import EventError, UnsupportedError

CHECKSUM_OFF = 0
CHECKSUM_CRC32 = 1
CHECKSUM_UNDEFINED = 255
"""What MariaDB writes for events that come from a server without checksums."""

_SERVER_VERSION_LENGTH = 50
_FIRST_WITH_CHECKSUM = {"mysql": (5, 6, 1), "mariadb": (5, 3, 0)}
_VERSION_1_SIZE = t.HEADER_LENGTH + 2 + _SERVER_VERSION_LENGTH + 4
"""A START_EVENT_V3 smaller than this has the short header of binlog version 1 (MySQL 3.23)."""

_OLD_POST_HEADERS = {
    t.START_EVENT_V3: 56,
    t.QUERY_EVENT: 11,
    t.ROTATE_EVENT: 8,
    t.LOAD_EVENT: 18,
    t.CREATE_FILE_EVENT: 4,
    t.APPEND_BLOCK_EVENT: 4,
    t.EXEC_LOAD_EVENT: 4,
    t.DELETE_FILE_EVENT: 4,
    t.NEW_LOAD_EVENT: 18,
}
_CURRENT_POST_HEADERS = _OLD_POST_HEADERS | {
    t.QUERY_EVENT: 13,
    t.FORMAT_DESCRIPTION_EVENT: 98,
    t.BEGIN_LOAD_QUERY_EVENT: 4,
    t.EXECUTE_LOAD_QUERY_EVENT: 26,
    t.TABLE_MAP_EVENT: 8,
    t.PRE_GA_WRITE_ROWS_EVENT: 8,
    t.PRE_GA_UPDATE_ROWS_EVENT: 8,
    t.PRE_GA_DELETE_ROWS_EVENT: 8,
    t.WRITE_ROWS_EVENT_V1: 8,
    t.UPDATE_ROWS_EVENT_V1: 8,
    t.DELETE_ROWS_EVENT_V1: 8,
    t.INCIDENT_EVENT: 2,
    t.WRITE_ROWS_EVENT: 10,
    t.UPDATE_ROWS_EVENT: 10,
    t.DELETE_ROWS_EVENT: 10,
    t.PARTIAL_UPDATE_ROWS_EVENT: 10,
}


def _post_headers(lengths: dict[int, int]) -> bytes:
    return bytes(lengths.get(code, 0) for code in range(1, max(lengths) + 1))


@dataclass(frozen=True, slots=True)
class FormatDescription:
    """The format of all events that follow it in a file or a stream."""

    binlog_version: int
    """1: MySQL 3.23; 3: 4.0 and 4.1; 4: since 5.0."""
    server_version: str
    created: int
    """Seconds since the epoch if the server had just started, else 0."""
    header_length: int
    """Bytes of the common header."""
    post_header_lengths: bytes
    """Per event type, starting with type 1."""
    checksum_algorithm: int
    """`CHECKSUM_OFF` or `CHECKSUM_CRC32`."""

    @property
    def flavor(self) -> str:
        """`mysql` (including Percona) or `mariadb`."""
        return _flavor(self.server_version)

    @property
    def checksum_length(self) -> int:
        """Size in bytes of the checksum at the end of each event, 0 without checksums."""
        return t.CHECKSUM_LENGTH if self.checksum_algorithm == CHECKSUM_CRC32 else 0

    def post_header_length(self, type_code: int) -> int:
        """Size in bytes of the fixed part of an event's body, 0 for types unknown to the server."""
        if 1 <= type_code <= len(self.post_header_lengths):
            return self.post_header_lengths[type_code - 1]
        return 0

    def without_checksums(self) -> FormatDescription:
        """The same format for events without checksums: those inside a compressed transaction."""
        return _without_checksums(self)

    @classmethod
    def assumed(cls, checksum_algorithm: int = CHECKSUM_OFF) -> FormatDescription:
        """The format of the events that a server sends before the format description: current MySQL's."""
        lengths = _post_headers(_CURRENT_POST_HEADERS)
        return cls(4, "", 0, t.HEADER_LENGTH, lengths, checksum_algorithm)

    @classmethod
    def parse(cls, data: bytes) -> FormatDescription:
        """From a whole FORMAT_DESCRIPTION_EVENT or START_EVENT_V3, with or without its checksum.

        Raises `EventError` for bytes that are not such an event, and for unknown checksum algorithms.
        """
        if len(data) > 4 and data[4] == t.START_EVENT_V3:
            return cls._parse_start(data)
        header = t.EventHeader.parse(data)
        if header.type_code != t.FORMAT_DESCRIPTION_EVENT:
            raise EventError(f"a format description is expected, not a {header.type_name}", 4)
        checksum_length = t.CHECKSUM_LENGTH + len(data) - header.size
        if checksum_length not in (0, t.CHECKSUM_LENGTH):
            raise EventError(f"the event claims {header.size} bytes, but has {len(data)}", 9)
        reader = EventReader(data, t.HEADER_LENGTH)
        binlog_version, server_version, created = _read_start(reader)
        header_length = reader.uint(1)
        if binlog_version != 4 or header_length < t.HEADER_LENGTH:
            reason = f"binlog version {binlog_version} with headers of {header_length} bytes is unknown"
            raise UnsupportedError(reason, t.HEADER_LENGTH)
        checksum_algorithm = CHECKSUM_OFF
        if has_checksum_field(server_version):
            lengths = reader.take(reader.remaining - 1 - checksum_length)
            checksum_algorithm = reader.uint(1)
        else:
            lengths = reader.rest()
        if checksum_algorithm not in (CHECKSUM_OFF, CHECKSUM_CRC32, CHECKSUM_UNDEFINED):
            raise UnsupportedError(f"checksum algorithm {checksum_algorithm} is unknown", reader.offset - 1)
        checksum_algorithm %= CHECKSUM_UNDEFINED
        return cls(4, server_version, created, header_length, lengths, checksum_algorithm)

    @classmethod
    def _parse_start(cls, data: bytes) -> FormatDescription:
        header_length = t.HEADER_LENGTH if len(data) >= _VERSION_1_SIZE else t.OLD_HEADER_LENGTH
        reader = EventReader(data, min(header_length, len(data)))
        binlog_version, server_version, created = _read_start(reader)
        if binlog_version not in (1, 2, 3):
            raise UnsupportedError(f"binlog version {binlog_version} is unknown", header_length)
        lengths = _OLD_POST_HEADERS if binlog_version > 1 else _OLD_POST_HEADERS | {t.ROTATE_EVENT: 0}
        return cls(
            binlog_version, server_version, created, header_length, _post_headers(lengths), CHECKSUM_OFF
        )


def verify_checksum(data: bytes, fmt: FormatDescription) -> None:
    """Verify an event's checksum, if events have one. Raises `EventError` if it does not match.

    Servers set and clear the flag that marks a file as still being written without updating the checksum.
    """
    if not fmt.checksum_length:
        return
    end = len(data) - t.CHECKSUM_LENGTH
    if end < fmt.header_length:
        raise EventError(f"an event of {len(data)} bytes is too short for a checksum")
    content: memoryview | bytearray = memoryview(data)[:end]
    if data[4] == t.FORMAT_DESCRIPTION_EVENT:
        content = bytearray(content)
        content[17] &= ~t.FLAG_BINLOG_IN_USE & 0xFF
    stored, computed = int.from_bytes(data[end:], "little"), zlib.crc32(content)
    if stored != computed:
        raise EventError(f"the checksum is {computed:08x}, but the event contains {stored:08x}", end)


def has_checksum_field(server_version: str) -> bool:
    """Whether servers of this version write checksum algorithm and checksum in the format description."""
    return _numbers(server_version) >= _FIRST_WITH_CHECKSUM[_flavor(server_version)]


def _flavor(server_version: str) -> str:
    return "mariadb" if "mariadb" in server_version.lower() or "-maria-" in server_version else "mysql"


def _read_start(reader: EventReader) -> tuple[int, str, int]:
    return reader.uint(2), reader.fixed_text(_SERVER_VERSION_LENGTH), reader.uint(4)


@lru_cache(maxsize=64)
def _without_checksums(description: FormatDescription) -> FormatDescription:
    return replace(description, checksum_algorithm=CHECKSUM_OFF)


_FIRST_WITH_TWO_CACHES = (5, 5)
_FIRST_WITH_GTIDS = {"mysql": (5, 7), "mariadb": (10, 0)}
_FIRST_WITH_SIGNS_OF_YEARS = (8, 0, 21)
_FIRST_WITH_POINTS_IN_JSON = (8, 0)
_FIRST_WITH_DROPS_IN_CLIENTS_CHARSET = {"mysql": (5, 7), "mariadb": (10, 5)}
"""Measured with MySQL 5.6.24 and 5.7.22; MariaDB before 10.5 was not, and may be either."""
_UNKNOWN = (0, 0, 0)


def rollback_undoes_rows(description: FormatDescription) -> bool:
    """Whether ROLLBACK undoes all rows in its transaction, on servers of this version."""
    return _numbers(description.server_version) >= _FIRST_WITH_TWO_CACHES


def announces_transactions(description: FormatDescription) -> bool:
    """Whether servers of this version write a GTID event, if an anonymous one, before every transaction."""
    return _numbers(description.server_version) >= _FIRST_WITH_GTIDS[description.flavor]


def drops_may_be_in_utf8(description: FormatDescription) -> bool:
    """Whether a DROP TABLE that the server writes itself may be in UTF-8 in place of the client's charset."""
    return _numbers(description.server_version) < _FIRST_WITH_DROPS_IN_CLIENTS_CHARSET[description.flavor]


def years_have_signs(description: FormatDescription) -> bool:
    """Whether the signedness in table maps includes YEAR columns: in MariaDB, and in MySQL since 2020.

    The function that includes them (`has_signedess_information_type`) is in a source file of that year,
    which 8.0.20 lacks, so 8.0.21 is taken as the first.
    """
    return description.flavor == "mariadb" or _is_since(description, _FIRST_WITH_SIGNS_OF_YEARS)


def json_doubles_have_points(description: FormatDescription) -> bool:
    """Whether the server prints each DOUBLE in a JSON document with a decimal point or an exponent (1.0).

    MySQL 5.7 prints one that is whole like an integer (1).
    """
    return _is_since(description, _FIRST_WITH_POINTS_IN_JSON)


def _is_since(description: FormatDescription, first: tuple[int, ...]) -> bool:
    """Whether the server's version is `first` or a later one, as one that is not known is taken to be."""
    version = _numbers(description.server_version)
    return version == _UNKNOWN or version >= first


@lru_cache(maxsize=64)
def _numbers(server_version: str) -> tuple[int, ...]:
    numbers = re.match(r"(\d+)\.(\d+)\.(\d+)", server_version)
    return tuple(map(int, numbers.groups())) if numbers else _UNKNOWN
