"""Events that only MariaDB writes. Source: MariaDB's `log_event.h` and `log_event.cc`."""

from __future__ import annotations

from typing import Self

from engine.binlog.event_body import EventBody
from engine.binlog.event_reader import EventReader, text
from engine.binlog.event_types import EventHeader
from engine.binlog.format_description import FormatDescription
from engine.dataclass import dataclass

_GTID_FLAGS = {
    0x01: "standalone",
    0x02: "group_commit",
    0x04: "transactional",
    0x08: "allow_parallel",
    0x10: "waited",
    0x20: "ddl",
    0x40: "prepared_xa",
    0x80: "completed_xa",
}
_GTID_EXTRA_FLAGS = {
    0x01: "multi_engine",
    0x02: "start_alter",
    0x04: "commit_alter",
    0x08: "rollback_alter",
    0x10: "thread_id",
}
_GROUP_COMMIT, _XA, _MULTI_ENGINE, _ALTER_END, _THREAD = 0x02, 0xC0, 0x01, 0x0C, 0x10
_PADDING = 6
_GTID_COUNT_BITS = 28
_GTID_LIST_FLAGS = {0x1: "until_reached", 0x2: "ignore_gtids"}


@dataclass(frozen=True, slots=True)
class MariadbGtid(EventBody):
    """GTID_EVENT: begins a transaction (instead of BEGIN), or precedes a statement that is a transaction."""

    gtid: str
    """`domain-server-number`."""
    flags: tuple[str, ...]
    commit_id: int | None
    """Equal for transactions that were committed as a group."""
    xa_format_id: int | None
    xa_gtrid: bytes | None
    xa_bqual: bytes | None
    extra_engines: int | None
    start_alter_sequence_number: int | None
    """The number of the START ALTER event that this one completes."""
    thread_id: int | None

    @classmethod
    def decode(cls, reader: EventReader, header: EventHeader, fmt: FormatDescription) -> Self:
        """Number, domain, flags; then the fields that the flags announce; then padding."""
        number, domain, flags = reader.uint(8), reader.uint(4), reader.uint(1)
        commit_id = reader.uint(8) if flags & _GROUP_COMMIT else None
        xa_format_id = xa_gtrid = xa_bqual = None
        if flags & _XA:
            xa_format_id, gtrid_length, bqual_length = reader.sint(4), reader.uint(1), reader.uint(1)
            xa_gtrid, xa_bqual = reader.take(gtrid_length), reader.take(bqual_length)
        extra = reader.uint(1) if reader.remaining else 0
        names = [name for bit, name in _GTID_FLAGS.items() if flags & bit]
        names += [name for bit, name in _GTID_EXTRA_FLAGS.items() if extra & bit]
        return cls(
            gtid=f"{domain}-{header.server_id}-{number}",
            flags=tuple(names),
            commit_id=commit_id,
            xa_format_id=xa_format_id,
            xa_gtrid=xa_gtrid,
            xa_bqual=xa_bqual,
            extra_engines=reader.uint(1) if extra & _MULTI_ENGINE else None,
            start_alter_sequence_number=reader.uint(8) if extra & _ALTER_END else None,
            thread_id=reader.uint(4) if extra & _THREAD else None,
        )


@dataclass(frozen=True, slots=True)
class GtidList(EventBody):
    """GTID_LIST_EVENT: the last transaction of each domain and server before this file."""

    gtids: tuple[str, ...]
    flags: tuple[str, ...]

    @classmethod
    def decode(cls, reader: EventReader, header: EventHeader, fmt: FormatDescription) -> Self:
        """Count and flags share four bytes."""
        head = reader.uint(4)
        gtids = []
        for _ in range(head & (1 << _GTID_COUNT_BITS) - 1):
            domain, server, number = reader.uint(4), reader.uint(4), reader.uint(8)
            gtids.append(f"{domain}-{server}-{number}")
        flags = head >> _GTID_COUNT_BITS
        return cls(tuple(gtids), tuple(name for bit, name in _GTID_LIST_FLAGS.items() if flags & bit))


@dataclass(frozen=True, slots=True)
class BinlogCheckpoint(EventBody):
    """BINLOG_CHECKPOINT_EVENT: files before this one are not needed for crash recovery."""

    file: str

    @classmethod
    def decode(cls, reader: EventReader, header: EventHeader, fmt: FormatDescription) -> Self:
        """The file's name after its length."""
        return cls(text(reader.take(reader.uint(4))))


@dataclass(frozen=True, slots=True)
class StartEncryption(EventBody):
    """START_ENCRYPTION_EVENT: the rest of the file is encrypted with a key that only the server has."""

    scheme: int
    key_version: int
    nonce: bytes

    @classmethod
    def decode(cls, reader: EventReader, header: EventHeader, fmt: FormatDescription) -> Self:
        """Scheme, key version, nonce."""
        return cls(reader.uint(1), reader.uint(4), reader.take(12))


@dataclass(frozen=True, slots=True)
class PartialRowData(EventBody):
    """PARTIAL_ROW_DATA_EVENT (MariaDB 12.3): a fragment of a rows event that was too large."""

    pieces: int
    piece: int
    """The fragment's number, from 1."""
    original_size: int | None
    data: bytes

    @classmethod
    def decode(cls, reader: EventReader, header: EventHeader, fmt: FormatDescription) -> Self:
        """Count, number, flags, the original event's size if the flags announce it, the fragment."""
        pieces, piece, flags = reader.uint(4), reader.uint(4), reader.uint(1)
        return cls(pieces, piece, reader.uint(8) if flags & 1 else None, reader.rest())
