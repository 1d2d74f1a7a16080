"""Events that begin, identify and end transactions on MySQL servers.

Sources: `Gtid_event`, `Previous_gtids_event`, `Transaction_context_event` and `View_change_event` in MySQL's
`control_events.cpp`; `Gtid_set::add_gtid_encoding` in `rpl_gtid_set.cc`.
"""

from __future__ import annotations

from typing import Self
from uuid import UUID

from engine.binlog.event_body import EventBody
from engine.binlog.event_reader import EventReader, text
from engine.binlog.event_types import ANONYMOUS_GTID_LOG_EVENT, EventHeader
from engine.binlog.format_description import FormatDescription
from engine.binlog.gtid_encoding import read_gtid_set
from engine.binlog.serialization import read_message, signed, string, unsigned
from engine.dataclass import dataclass
from engine.errors import EventError

_MAX_XID_PART = 64
_UUID_LENGTH = 16
_LOGICAL_CLOCK = 2
_COMMIT_TIME_FOLLOWS = 1 << 55
_SERVER_VERSION_FOLLOWS = 1 << 31
_VIEW_ID_LENGTH = 40


@dataclass(frozen=True, slots=True)
class Xid(EventBody):
    """XID_EVENT: the transaction is committed."""

    xid: int

    @classmethod
    def decode(cls, reader: EventReader, header: EventHeader, fmt: FormatDescription) -> Self:
        """The storage engine's number of the transaction."""
        return cls(reader.uint(8))


@dataclass(frozen=True, slots=True)
class XaPrepare(EventBody):
    """XA_PREPARE_LOG_EVENT: the transaction is prepared; XA COMMIT or XA ROLLBACK follows as a query."""

    one_phase: bool
    """Whether the transaction is committed at once instead (XA COMMIT … ONE PHASE)."""
    format_id: int
    gtrid: bytes
    bqual: bytes

    @classmethod
    def decode(cls, reader: EventReader, header: EventHeader, fmt: FormatDescription) -> Self:
        """One-phase flag and XID."""
        one_phase, format_id = bool(reader.uint(1)), reader.sint(4)
        gtrid_length, bqual_length = reader.uint(4), reader.uint(4)
        if max(gtrid_length, bqual_length) > _MAX_XID_PART:
            raise EventError("a part of the XID has more than 64 bytes", reader.offset)
        return cls(one_phase, format_id, reader.take(gtrid_length), reader.take(bqual_length))


@dataclass(frozen=True, slots=True)
class Gtid(EventBody):
    """GTID_LOG_EVENT, ANONYMOUS_GTID_LOG_EVENT and GTID_TAGGED_LOG_EVENT: a transaction begins."""

    gtid: str | None
    """`uuid:number` or `uuid:tag:number`; None if GTIDs are off."""
    may_have_statements: bool
    """Whether the transaction may contain changes in statement format."""
    last_committed: int | None = None
    """`sequence_number` of the last transaction in this file that must be committed before this one."""
    sequence_number: int | None = None
    immediate_commit_timestamp: int | None = None
    """Commit time in µs since the epoch on the server that wrote this binlog."""
    original_commit_timestamp: int | None = None
    """Commit time in µs since the epoch on the server where the transaction was executed first."""
    transaction_length: int | None = None
    """Total size in bytes of the transaction's events, this one included."""
    immediate_server_version: int | None = None
    """Such as 80015 for 8.0.15; 999999 if unknown."""
    original_server_version: int | None = None
    commit_group_ticket: int | None = None

    @classmethod
    def decode(cls, reader: EventReader, header: EventHeader, fmt: FormatDescription) -> Self:
        """Later servers have appended fields to the event, so all after the first three may be absent."""
        flags, uuid, number = reader.uint(1), reader.take(_UUID_LENGTH), reader.sint(8)
        anonymous = header.type_code == ANONYMOUS_GTID_LOG_EVENT
        if number != 0 if anonymous else number < 1:
            raise EventError(f"{number} is not a valid GTID number", reader.offset - 8)
        values: dict[str, int] = {}
        if reader.remaining >= 17 and reader.uint(1) == _LOGICAL_CLOCK:
            values["last_committed"], values["sequence_number"] = reader.sint(8), reader.sint(8)
            values |= _read_commit(reader)
        gtid = None if anonymous else f"{UUID(bytes=uuid)}:{number}"
        return cls(gtid=gtid, may_have_statements=bool(flags & 1), **values)

    @property
    def source(self) -> str | None:
        """The GTID without its number."""
        return self.gtid and self.gtid.rpartition(":")[0]

    @property
    def number(self) -> int | None:
        """The number at the end of the GTID."""
        return int(self.gtid.rpartition(":")[2]) if self.gtid else None


def _read_commit(reader: EventReader) -> dict[str, int]:
    """The fields after the logical clock since MySQL 8.0: times, length, versions, ticket."""
    values: dict[str, int] = {}
    if reader.remaining < 7:
        return values
    immediate = original = reader.uint(7)
    if immediate & _COMMIT_TIME_FOLLOWS:
        immediate, original = immediate - _COMMIT_TIME_FOLLOWS, reader.uint(7)
    values["immediate_commit_timestamp"], values["original_commit_timestamp"] = immediate, original
    if reader.remaining:
        values["transaction_length"] = reader.length_encoded()
    if reader.remaining >= 4:
        immediate = original = reader.uint(4)
        if immediate & _SERVER_VERSION_FOLLOWS:
            immediate, original = immediate - _SERVER_VERSION_FOLLOWS, reader.uint(4)
        values["immediate_server_version"], values["original_server_version"] = immediate, original
    if reader.remaining >= 8:
        values["commit_group_ticket"] = reader.uint(8)
    return values


def _uuid(reader: EventReader) -> UUID:
    """Sixteen bytes, each serialized as an integer."""
    values = [unsigned(reader) for _ in range(_UUID_LENGTH)]
    if max(values) > 0xFF:
        raise EventError("a byte of the UUID is above 255", reader.offset)
    return UUID(bytes=bytes(values))


_TAGGED_FIELDS = {
    0: ("flags", unsigned),
    1: ("uuid", _uuid),
    2: ("number", signed),
    3: ("tag", string),
    4: ("last_committed", signed),
    5: ("sequence_number", signed),
    6: ("immediate_commit_timestamp", unsigned),
    7: ("original_commit_timestamp", unsigned),
    8: ("transaction_length", unsigned),
    9: ("immediate_server_version", unsigned),
    10: ("original_server_version", unsigned),
    11: ("commit_group_ticket", unsigned),
}


@dataclass(frozen=True, slots=True)
class GtidTagged(Gtid):
    """GTID_TAGGED_LOG_EVENT: since MySQL 8.3, for GTIDs that have a tag."""

    @classmethod
    def decode(cls, reader: EventReader, header: EventHeader, fmt: FormatDescription) -> Self:
        """A serialized message; fields that are equal on both servers are written once."""
        start = reader.offset
        values = read_message(reader, _TAGGED_FIELDS)
        try:
            flags, uuid, number, tag = (values.pop(name) for name in ("flags", "uuid", "number", "tag"))
        except KeyError as missing:
            raise EventError(f"the GTID lacks its {missing.args[0]}", start) from None
        if number < 1:
            raise EventError(f"{number} is not a valid GTID number", start)
        for name in ("commit_timestamp", "server_version"):
            if f"immediate_{name}" in values:
                values.setdefault(f"original_{name}", values[f"immediate_{name}"])
        source = f"{uuid}:{text(tag)}" if tag else str(uuid)
        return cls(gtid=f"{source}:{number}", may_have_statements=bool(flags & 1), **values)


@dataclass(frozen=True, slots=True)
class PreviousGtids(EventBody):
    """PREVIOUS_GTIDS_LOG_EVENT: the GTIDs of all transactions before this file."""

    gtid_set: str

    @classmethod
    def decode(cls, reader: EventReader, header: EventHeader, fmt: FormatDescription) -> Self:
        """A GTID set."""
        return cls(read_gtid_set(reader))


@dataclass(frozen=True, slots=True)
class TransactionContext(EventBody):
    """TRANSACTION_CONTEXT_EVENT: what group replication uses to certify a transaction."""

    server_uuid: str
    thread_id: int
    gtid_specified: bool
    snapshot_version: str
    """The GTID set of the database snapshot that the transaction read."""
    write_set: tuple[bytes, ...]
    read_set: tuple[bytes, ...]

    @classmethod
    def decode(cls, reader: EventReader, header: EventHeader, fmt: FormatDescription) -> Self:
        """Lengths first, then the parts."""
        uuid_length, thread_id, gtid_specified = reader.uint(1), reader.uint(4), bool(reader.uint(1))
        snapshot_length, write_count, read_count = reader.uint(4), reader.uint(4), reader.uint(4)
        return cls(
            server_uuid=text(reader.take(uuid_length)),
            thread_id=thread_id,
            gtid_specified=gtid_specified,
            snapshot_version=read_gtid_set(reader.part(snapshot_length)),
            write_set=_items(reader, write_count),
            read_set=_items(reader, read_count),
        )


def _items(reader: EventReader, count: int) -> tuple[bytes, ...]:
    return tuple(reader.take(reader.uint(2)) for _ in range(count))


@dataclass(frozen=True, slots=True)
class ViewChange(EventBody):
    """VIEW_CHANGE_EVENT: a server joined or left the replication group."""

    view_id: str
    sequence_number: int
    certification_info: dict[str, bytes]

    @classmethod
    def decode(cls, reader: EventReader, header: EventHeader, fmt: FormatDescription) -> Self:
        """The view and the certification info so far."""
        view_id, sequence_number, count = reader.fixed_text(_VIEW_ID_LENGTH), reader.uint(8), reader.uint(4)
        info = {}
        for _ in range(count):
            key = text(reader.take(reader.uint(2)))
            info[key] = reader.take(reader.uint(4))
        return cls(view_id, sequence_number, info)
