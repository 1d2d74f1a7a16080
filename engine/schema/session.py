"""What the meaning of a statement depends on besides its text: server, sql_mode, defaults of the session.

A QUERY event contains the session's settings as status variables (`engine.binlog.events.query_status`);
where a server does not write one, its default for that server version counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Literal, cast

from engine.binlog.charsets import collation_charset
from engine.binlog.collations import UTF8MB3, UTF8MB4, charset_of_collation, collation_name
from engine.binlog.events.statements import Query
from engine.dataclass import dataclass
from engine.schema.collations import default_collation
from engine.schema.names import AS_WRITTEN, NameRules
from engine.schema.server_settings import USUAL_SETTINGS, ServerSettings

Flavor = Literal["mysql", "mariadb"]

_REAL_AS_FLOAT = 1 << 0
_ANSI_QUOTES = 1 << 2
_NO_AUTO_VALUE_ON_ZERO = 1 << 19
_NO_BACKSLASH_ESCAPES = 1 << 20
_STRICT_TRANS_TABLES = 1 << 21
_STRICT_ALL_TABLES = 1 << 22
_ORACLE = 1 << 9
_MSSQL = 1 << 10
_MAXDB = 1 << 12
_WITHOUT_TABLE_OPTIONS = 0b111_0101_1111 << 8
"""Foreign dialects, MYSQL323, MYSQL40, NO_TABLE_OPTIONS and ANSI."""
_MARIADB_EMPTY_STRING_IS_NULL = 1 << 32
_MYSQL_TRUNCATE_FRACTIONS = 1 << 32
_MYSQL_UTF8_IS_UTF8MB4 = 1 << 33
_MARIADB_ROUND_FRACTIONS = 1 << 34
"""Bits of sql_mode: those without a flavor are the same in both (`system_variables.h`, `sql_class.h`)."""

_MARIADB_EXPLICIT_TIMESTAMP = 1 << 24
"""In `flags2`, MariaDB's `OPTION_EXPLICIT_DEF_TIMESTAMP`."""
_MARIADB_SENDS_EXPLICIT_TIMESTAMP: dict[tuple[int, ...], int] = {
    (10, 5): 17,
    (10, 6): 9,
    (10, 7): 5,
    (10, 8): 4,
    (10, 9): 2,
}
"""The first release of a series of MariaDB in which sessions have the variable, and events the bit."""
_MARIADB_ALWAYS_SENDS_IT_SINCE = (10, 10)
_EXPLICIT_TIMESTAMP_SINCE = {"mysql": (8, 0, 2), "mariadb": (10, 10, 0)}
"""`explicit_defaults_for_timestamp` is on by default."""
MARIADB_CHARSETS_IN_CONTEXT_SINCE = (10, 9, 0)
"""MariaDB's version since which clauses about character sets have another meaning. Servers of 10.5 and 10.11
differ; which version in between is the first is an inference."""
_COLLATE_COUNTS_SINCE = {"mysql": (8, 0, 16), "mariadb": MARIADB_CHARSETS_IN_CONTEXT_SINCE}
"""MySQL 8.0.15 and 9.7 differ; in between, the collation may be another one of the same character set."""


@dataclass(frozen=True, slots=True)
class StatementSession:
    """The settings under which a server executed a statement."""

    flavor: Flavor
    version: tuple[int, ...]
    database: str = ""
    """The default database; empty if there was none."""
    sql_mode: int = 0
    client_charset: str | None = None
    """The statement's own character set; None if not known."""
    server_collation: str | None = None
    """Canonical name (`engine.binlog.collations`); the default of new databases. None if not known."""
    collation_database: str | None = None
    """Canonical name of the variable, where it is not the collation of the default database."""
    collations: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Character set → its default collation in this session, where it differs from the server's own."""
    explicit_timestamp: bool = True
    """`explicit_defaults_for_timestamp`: TIMESTAMP columns without attributes are as other columns."""
    utf8: str = UTF8MB3
    """The character set that the name `utf8` stands for."""
    default_engine: str | None = None
    """In lower case: the storage engine of tables whose statement names none; None for InnoDB."""
    names: NameRules = AS_WRITTEN
    shows_creation: bool = False
    """CREATE … IF NOT EXISTS has made what it names: the event has the number of a transaction of the server.

    MySQL since 8.0 and MariaDB since 10.6 write it for storage engines whose statements are atomic."""

    @property
    def mariadb(self) -> bool:
        """Whether the server is MariaDB."""
        return self.flavor == "mariadb"

    @property
    def ansi_quotes(self) -> bool:
        """Whether `"` quotes identifiers."""
        return bool(self.sql_mode & _ANSI_QUOTES)

    @property
    def bracket_quotes(self) -> bool:
        """Whether `[` and `]` quote identifiers."""
        return self.mariadb and bool(self.sql_mode & _MSSQL)

    @property
    def backslash_escapes(self) -> bool:
        """Whether a backslash in a string escapes the character after it."""
        return not self.sql_mode & _NO_BACKSLASH_ESCAPES

    @property
    def real_as_float(self) -> bool:
        """Whether REAL is FLOAT."""
        return bool(self.sql_mode & _REAL_AS_FLOAT)

    @property
    def strict(self) -> bool:
        """Whether InnoDB refuses values that do not fit a column."""
        return bool(self.sql_mode & (_STRICT_TRANS_TABLES | _STRICT_ALL_TABLES))

    @property
    def numbers_zeros(self) -> bool:
        """Whether AUTO_INCREMENT gives a number to rows with 0, and not only to those with NULL."""
        return not self.sql_mode & _NO_AUTO_VALUE_ON_ZERO

    @property
    def oracle(self) -> bool:
        """Whether the statement is in MariaDB's Oracle dialect."""
        return self.mariadb and bool(self.sql_mode & _ORACLE)

    @property
    def empty_string_is_null(self) -> bool:
        """Whether the literal of an empty string is NULL."""
        return self.mariadb and bool(self.sql_mode & _MARIADB_EMPTY_STRING_IS_NULL)

    @property
    def maxdb(self) -> bool:
        """Whether the statement is in the dialect of MaxDB, which MySQL has before 8.0."""
        return bool(self.sql_mode & _MAXDB)

    @property
    def omits_table_options(self) -> bool:
        """Whether the server writes CREATE TABLE … SELECT into the binlog without the table's options."""
        return bool(self.sql_mode & _WITHOUT_TABLE_OPTIONS)

    @property
    def default_is_of_context(self) -> bool:
        """Whether DEFAULT for a character set or a collation is what it is in MariaDB since 10.9.

        CHARACTER SET DEFAULT is then the character set of the table's database, with its default collation;
        before, and in MySQL, it is the collation that the session has from its default database.
        """
        return self.mariadb and self.version >= MARIADB_CHARSETS_IN_CONTEXT_SINCE

    @property
    def charset_replaces_collate(self) -> bool:
        """Whether CHARACTER SET cancels a COLLATE before it in the options of a table or database."""
        return self.version < _COLLATE_COUNTS_SINCE[self.flavor]

    @property
    def rounds_fractions(self) -> bool:
        """Whether fractions of seconds are rounded to a column's digits, and not cut."""
        if self.mariadb:
            return bool(self.sql_mode & _MARIADB_ROUND_FRACTIONS)
        return not self.sql_mode & _MYSQL_TRUNCATE_FRACTIONS

    def default_collation(self, charset: str) -> str | None:
        """The collation of a canonical character set named without one; None if there is no such set."""
        return self.collations.get(charset) or default_collation(charset, self.flavor, self.version)


def session_of(
    query: Query, server_version: str, flavor: str, settings: ServerSettings = USUAL_SETTINGS
) -> StatementSession:
    """The session of a QUERY event; `server_version` as in the format description: `11.8.6-MariaDB-log`."""
    status = query.status
    names = NameRules(settings.lower_case_table_names)
    version = version_of(server_version)
    sql_mode, client = status.get("sql_mode", 0), status.get("collation_client")
    collations: dict[str, str] = {}
    for number in (status.get("default_collation_for_utf8mb4"),):
        _add_collation(collations, number, flavor)
    for _, number in status.get("character_set_collations", ()):
        _add_collation(collations, number, flavor)
    return StatementSession(
        flavor=cast(Flavor, flavor),
        version=version,
        database=names.stored_database(query.database),
        sql_mode=sql_mode,
        client_charset=None if client is None else collation_charset(client),
        server_collation=_collation(status.get("collation_server"), flavor),
        collation_database=_collation(status.get("collation_database"), flavor),
        collations=MappingProxyType(collations),
        explicit_timestamp=_explicit_timestamp(query, version, flavor, settings),
        utf8=UTF8MB4 if flavor == "mysql" and sql_mode & _MYSQL_UTF8_IS_UTF8MB4 else settings.utf8,
        default_engine=settings.default_engine,
        names=names,
        shows_creation="ddl_xid" in status,
    )


def version_of(server_version: str) -> tuple[int, ...]:
    """The numbers of a server's version: `8.0.36-28` is (8, 0, 36)."""
    numbers = []
    # Old MariaDB servers call themselves 5.5.5-10.x for the sake of old replicas.
    text = server_version.removeprefix("5.5.5-") if "-10." in server_version[:9] else server_version
    for part in text.partition("-")[0].split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        numbers.append(int(digits))
    return tuple(numbers)


def _collation(number: int | None, flavor: str) -> str | None:
    return None if number is None else collation_name(number, flavor)


def _add_collation(collations: dict[str, str], number: int | None, flavor: str) -> None:
    name = _collation(number, flavor)
    charset = None if name is None else charset_of_collation(name)
    if name is not None and charset is not None:
        collations[charset] = name


def _explicit_timestamp(
    query: Query, version: tuple[int, ...], flavor: str, settings: ServerSettings
) -> bool:
    status = query.status
    if flavor == "mysql" and "explicit_defaults_for_timestamp" in status:
        return bool(status["explicit_defaults_for_timestamp"])
    if flavor == "mariadb" and _sends_explicit_timestamp(version) and "flags2" in status:
        return bool(status["flags2"] & _MARIADB_EXPLICIT_TIMESTAMP)
    if settings.explicit_timestamp is not None and settings.version[:2] == version[:2]:
        return settings.explicit_timestamp
    return version >= _EXPLICIT_TIMESTAMP_SINCE[flavor]


def _sends_explicit_timestamp(version: tuple[int, ...]) -> bool:
    first = _MARIADB_SENDS_EXPLICIT_TIMESTAMP.get(version[:2])
    return version >= _MARIADB_ALWAYS_SENDS_IT_SINCE or (first is not None and version[2:] >= (first,))
