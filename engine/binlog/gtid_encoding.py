"""A GTID set in MySQL's binary encoding, as PREVIOUS_GTIDS events and COM_BINLOG_DUMP_GTID contain it.

Sets without tags use the encoding that all servers since 5.6 read; sets with tags (MySQL 8.3 and later) use a
newer one.
Sources: `Gtid_set::add_gtid_encoding` and `Gtid_set::encode` in MySQL's `sql/rpl_gtid_set.cc`.
"""

from __future__ import annotations

from uuid import UUID

from engine.binlog.event_reader import EventReader, text
from engine.binlog.gtid_set import GtidError, MysqlGtidSet
from engine.binlog.serialization import string
from engine.errors import EventError, UnsupportedError

_TAGGED_SET = 1
_UUID_LENGTH = 16


def read_gtid_set(reader: EventReader) -> str:
    """A GTID set in MySQL's binary encoding, as text.

    The encoding is the number of sources, with the format in its highest byte (and, in format 1, also in the
    lowest); per source its UUID, in format 1 its tag, and its intervals, whose ends are exclusive.
    """
    start = reader.offset
    head = reader.uint(8)
    tagged = head >> 56
    if tagged > _TAGGED_SET:
        raise UnsupportedError(f"GTID set encoding {tagged} is unknown", start)
    gtid_set = MysqlGtidSet()
    for _ in range(head >> 8 & 0xFFFF_FFFF_FFFF if tagged else head):
        source = str(UUID(bytes=reader.take(_UUID_LENGTH)))
        if tagged and (tag := string(reader)):
            source += ":" + text(tag)
        for _ in range(reader.uint(8)):
            first, end = reader.uint(8), reader.uint(8)
            try:
                gtid_set.add(source, first, end - 1)
            except GtidError as error:
                raise EventError(str(error).rstrip("."), reader.offset) from None
    return str(gtid_set)


def encode_gtid_set(gtid_set: MysqlGtidSet) -> bytes:
    """The set in MySQL's binary encoding."""
    sources = list(gtid_set.intervals())
    tagged = any(":" in source for source, _ in sources)
    head = len(sources) if not tagged else _TAGGED_SET | len(sources) << 8 | _TAGGED_SET << 56
    parts = [head.to_bytes(8, "little")]
    for source, intervals in sources:
        uuid, _, tag = source.partition(":")
        parts.append(UUID(uuid).bytes)
        if tagged:
            # A tag has at most 32 bytes, so its length always takes one byte, whose lowest bit is 0.
            parts.append(bytes([len(tag) << 1]) + tag.encode())
        parts.append(len(intervals).to_bytes(8, "little"))
        parts += [first.to_bytes(8, "little") + (last + 1).to_bytes(8, "little") for first, last in intervals]
    return b"".join(parts)


def decode_gtid_set(data: bytes) -> MysqlGtidSet:
    """The set that `encode_gtid_set` or a replica encoded. Raises `EventError` for other bytes."""
    return MysqlGtidSet.parse(read_gtid_set(EventReader(data)))
