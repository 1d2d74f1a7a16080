"""A GTID set in MySQL's binary encoding, as COM_BINLOG_DUMP_GTID carries it.

Sets without tags take the encoding that all servers since 5.6 read; tags (MySQL 8.3 on) need the newer one,
which `engine.decode.events.transactions.read_gtid_set` describes. Source: `Gtid_set::encode` in MySQL's
`sql/rpl_gtid_set.cc`.
"""

from __future__ import annotations

from uuid import UUID

from engine.decode.events.transactions import read_gtid_set
from engine.decode.reader import EventReader
from engine.gtid import MysqlGtidSet

_TAGGED = 1


def encode_gtid_set(gtid_set: MysqlGtidSet) -> bytes:
    """The set's bytes; interval ends are exclusive."""
    sources = list(gtid_set.intervals())
    tagged = any(":" in source for source, _ in sources)
    head = len(sources) if not tagged else _TAGGED | len(sources) << 8 | _TAGGED << 56
    parts = [head.to_bytes(8, "little")]
    for source, intervals in sources:
        uuid, _, tag = source.partition(":")
        parts.append(UUID(uuid).bytes)
        if tagged:
            # A tag has 32 bytes at most, so that its length always takes one byte, whose lowest bit is 0.
            parts.append(bytes([len(tag) << 1]) + tag.encode())
        parts.append(len(intervals).to_bytes(8, "little"))
        parts += [first.to_bytes(8, "little") + (last + 1).to_bytes(8, "little") for first, last in intervals]
    return b"".join(parts)


def decode_gtid_set(data: bytes) -> MysqlGtidSet:
    """The set that `encode_gtid_set` wrote down, or a replica; raises `EventError`."""
    return MysqlGtidSet.parse(read_gtid_set(EventReader(data)))
