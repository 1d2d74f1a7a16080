"""The capability flags that client and server exchange, and the status flags that a server reports.

Names are those of MySQL's protocol pages without their `CLIENT_` and `SERVER_` prefixes; MariaDB's extended
capabilities are sent in a separate field and have a separate class.
"""

from __future__ import annotations

from enum import IntFlag


class Capability(IntFlag):
    """The 32 capability bits of the greeting and of the handshake response."""

    NONE = 0
    LONG_PASSWORD = 1 << 0
    """MariaDB calls it CLIENT_MYSQL: a server that does not set it may send extended capabilities."""
    FOUND_ROWS = 1 << 1
    LONG_FLAG = 1 << 2
    CONNECT_WITH_DB = 1 << 3
    NO_SCHEMA = 1 << 4
    COMPRESS = 1 << 5
    ODBC = 1 << 6
    LOCAL_FILES = 1 << 7
    IGNORE_SPACE = 1 << 8
    PROTOCOL_41 = 1 << 9
    INTERACTIVE = 1 << 10
    SSL = 1 << 11
    IGNORE_SIGPIPE = 1 << 12
    TRANSACTIONS = 1 << 13
    RESERVED = 1 << 14
    SECURE_CONNECTION = 1 << 15
    MULTI_STATEMENTS = 1 << 16
    MULTI_RESULTS = 1 << 17
    PS_MULTI_RESULTS = 1 << 18
    PLUGIN_AUTH = 1 << 19
    CONNECT_ATTRS = 1 << 20
    PLUGIN_AUTH_LENENC_CLIENT_DATA = 1 << 21
    CAN_HANDLE_EXPIRED_PASSWORDS = 1 << 22
    SESSION_TRACK = 1 << 23
    DEPRECATE_EOF = 1 << 24
    OPTIONAL_RESULTSET_METADATA = 1 << 25
    ZSTD_COMPRESSION = 1 << 26
    QUERY_ATTRIBUTES = 1 << 27
    MULTI_FACTOR_AUTHENTICATION = 1 << 28
    CAPABILITY_EXTENSION = 1 << 29
    SSL_VERIFY_SERVER_CERT = 1 << 30
    REMEMBER_OPTIONS = 1 << 31


class MariaDBCapability(IntFlag):
    """MariaDB's extended capabilities: 32 more bits, in bytes that are filler in MySQL's packets."""

    NONE = 0
    PROGRESS = 1 << 0
    COM_MULTI = 1 << 1
    STMT_BULK_OPERATIONS = 1 << 2
    EXTENDED_METADATA = 1 << 3
    CACHE_METADATA = 1 << 4
    BULK_UNIT_RESULTS = 1 << 5


class ServerStatus(IntFlag):
    """The 16 status bits of OK and EOF packets."""

    NONE = 0
    IN_TRANS = 1 << 0
    AUTOCOMMIT = 1 << 1
    MORE_RESULTS_EXISTS = 1 << 3
    NO_GOOD_INDEX_USED = 1 << 4
    NO_INDEX_USED = 1 << 5
    CURSOR_EXISTS = 1 << 6
    LAST_ROW_SENT = 1 << 7
    DB_DROPPED = 1 << 8
    NO_BACKSLASH_ESCAPES = 1 << 9
    METADATA_CHANGED = 1 << 10
    QUERY_WAS_SLOW = 1 << 11
    PS_OUT_PARAMS = 1 << 12
    IN_TRANS_READONLY = 1 << 13
    SESSION_STATE_CHANGED = 1 << 14
