"""Statements as text, and the events before a statement with the values of its functions and variables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from engine.binlog.decimal_text import decimal_text
from engine.binlog.event_body import EventBody
from engine.binlog.event_reader import EventReader, text
from engine.binlog.event_types import EventHeader
from engine.binlog.events.query_status import Status, read_status
from engine.binlog.format_description import FormatDescription
from engine.binlog.mariadb_compression import uncompress
from engine.binlog.texts import decode_text
from engine.errors import EventError

_FIXED_PART = 11
"""Bytes of a query's post header before MySQL 5.0, which added the length of the status variables."""
_INTVAR_KINDS = {1: "LAST_INSERT_ID", 2: "INSERT_ID"}
_BINARY_COLLATION = 63
_STRING, _REAL, _INTEGER, _DECIMAL = 0, 1, 2, 4
_VALUE_TYPES = {_STRING: "string", _REAL: "real", _INTEGER: "integer", _DECIMAL: "decimal"}
_UNSIGNED = 1


@dataclass(frozen=True, slots=True)
class Query(EventBody):
    """QUERY_EVENT: a statement that the server executed."""

    database: str
    """The session's default database; empty if it had none."""
    statement: str
    """Decoded from the client's character set; a byte that is not valid in it becomes `\\xNN`."""
    statement_bytes: bytes | None
    """The statement's bytes if `statement` contains escaped bytes, otherwise None."""
    thread_id: int
    execution_time: int
    """Seconds."""
    error_code: int
    """The error that the statement is expected to end with; 0 for success."""
    status: Status

    @classmethod
    def decode(cls, reader: EventReader, header: EventHeader, fmt: FormatDescription) -> Self:
        """Post header, status variables, database, statement."""
        post_header = reader.part(fmt.post_header_length(header.type_code))
        return cls(**read_query(reader, post_header))


@dataclass(frozen=True, slots=True)
class QueryCompressed(Query):
    """QUERY_COMPRESSED_EVENT: MariaDB's, with `log_bin_compress`."""

    @classmethod
    def decode(cls, reader: EventReader, header: EventHeader, fmt: FormatDescription) -> Self:
        """The fields of a query, but the statement is compressed."""
        post_header = reader.part(fmt.post_header_length(header.type_code))
        return cls(**read_query(reader, post_header, compressed=True))


def read_query(reader: EventReader, post_header: EventReader, compressed: bool = False) -> dict[str, Any]:
    """The fields of a `Query`; `post_header` may contain further fields after them."""
    thread_id, execution_time = post_header.uint(4), post_header.uint(4)
    database_length, error_code = post_header.uint(1), post_header.uint(2)
    status = read_status(reader.part(post_header.uint(2))) if post_header.remaining else {}
    database = text(reader.take(database_length))
    reader.skip(1)
    packed = reader.rest()
    raw = uncompress(packed) if compressed else packed
    statement, faithful = decode_text(raw, status.get("collation_client"))
    return {
        "database": database,
        "statement": statement,
        "statement_bytes": None if faithful else raw,
        "thread_id": thread_id,
        "execution_time": execution_time,
        "error_code": error_code,
        "status": status,
    }


@dataclass(frozen=True, slots=True)
class IntVar(EventBody):
    """INTVAR_EVENT: LAST_INSERT_ID() in the next statement, or its first AUTO_INCREMENT value."""

    kind: str
    value: int

    @classmethod
    def decode(cls, reader: EventReader, header: EventHeader, fmt: FormatDescription) -> Self:
        """Kind and value."""
        kind = reader.uint(1)
        if kind not in _INTVAR_KINDS:
            raise EventError(f"integer variable {kind} is unknown", reader.offset - 1)
        return cls(_INTVAR_KINDS[kind], reader.uint(8))


@dataclass(frozen=True, slots=True)
class Rand(EventBody):
    """RAND_EVENT: the seeds of RAND() in the next statement."""

    seed1: int
    seed2: int

    @classmethod
    def decode(cls, reader: EventReader, header: EventHeader, fmt: FormatDescription) -> Self:
        """Two seeds."""
        return cls(reader.uint(8), reader.uint(8))


@dataclass(frozen=True, slots=True)
class UserVar(EventBody):
    """USER_VAR_EVENT: a user variable that the next statement reads."""

    name: str
    type: str
    """`null`, `string`, `real`, `integer` or `decimal`."""
    value: str | int | float | None
    """A decimal as text; None for NULL, and for strings that are binary or not valid in their collation."""
    value_bytes: bytes | None
    collation: int | None
    unsigned: bool | None

    @classmethod
    def decode(cls, reader: EventReader, header: EventHeader, fmt: FormatDescription) -> Self:
        """Name, whether it is NULL; if not, type, collation, value and, since MySQL 5.5, signedness."""
        name = text(reader.take(reader.uint(4)))
        if reader.uint(1):
            return cls(name, "null", None, None, None, None)
        value_type, collation = reader.uint(1), reader.uint(4)
        value = reader.part(reader.uint(4))
        unsigned = bool(reader.uint(1) & _UNSIGNED) if reader.remaining else False
        if value_type == _STRING:
            return cls(name, "string", *_string(value.rest(), collation), collation, None)
        if value_type == _REAL:
            return cls(name, "real", value.double(), None, None, None)
        if value_type == _INTEGER:
            return cls(name, "integer", value.uint(8) if unsigned else value.sint(8), None, None, unsigned)
        if value_type == _DECIMAL:
            precision, scale = value.uint(1), value.uint(1)
            return cls(name, "decimal", decimal_text(value.rest(), precision, scale), None, None, None)
        raise EventError(f"a user variable cannot be of type {value_type}", reader.offset)


def _string(value: bytes, collation: int) -> tuple[str | None, bytes | None]:
    if collation == _BINARY_COLLATION:
        return None, value
    decoded, faithful = decode_text(value, collation)
    return (decoded, None) if faithful else (None, value)


@dataclass(frozen=True, slots=True)
class RowsQuery(EventBody):
    """ROWS_QUERY_LOG_EVENT: the statement that caused the rows events after it."""

    statement: str
    statement_bytes: bytes | None

    @classmethod
    def decode(cls, reader: EventReader, header: EventHeader, fmt: FormatDescription) -> Self:
        """The first byte is a length that is wrong for statements above 255 bytes, so it is not used."""
        reader.skip(1)
        return cls(*_unlabelled(reader.rest()))


@dataclass(frozen=True, slots=True)
class AnnotateRows(RowsQuery):
    """ANNOTATE_ROWS_EVENT: MariaDB's ROWS_QUERY_LOG_EVENT."""

    @classmethod
    def decode(cls, reader: EventReader, header: EventHeader, fmt: FormatDescription) -> Self:
        """The statement alone."""
        return cls(*_unlabelled(reader.rest()))


def _unlabelled(raw: bytes) -> tuple[str, bytes | None]:
    """A statement in an event without its character set."""
    statement, faithful = decode_text(raw, None)
    return statement, None if faithful else raw
