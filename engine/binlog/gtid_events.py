"""The GTID events of a batch as ranges of transactions, for the executed GTID set.

A kernel finds runs of consecutive numbers of one source, since a stream of small transactions has a GTID
event for every row or two. Tagged GTIDs (MySQL 8.3 and later) are rare and are decoded one by one in Python.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from engine.binlog import event_types as types
from engine.binlog.event_table import EventTable
from engine.binlog.event_types import HEADER_LENGTH
from engine.binlog.gtid_set import GtidRange
from engine.kernels.kernel import Bytes, Int64s, inlined, kernel, read_u32, read_u64

SplitTaggedGtid = Callable[[bytes], tuple[str, int]]
"""Decodes the bytes of a GTID_TAGGED_LOG_EVENT: (`uuid:tag`, number)."""


@inlined
def same_source(data: Bytes, body: int, other: int) -> bool:
    """Whether two MySQL GTID events, given by the offsets of their bodies, have the same UUID."""
    return read_u64(data, body + 1) == read_u64(data, other + 1) and (
        read_u64(data, body + 9) == read_u64(data, other + 9)
    )


@kernel
def _find_runs(data: Bytes, starts: Int64s, mariadb: bool, runs: Int64s) -> int:
    """Find runs of consecutive GTIDs of one source: [first event's start, first number, last number]."""
    count = 0
    for i in range(len(starts)):
        body = starts[i] + HEADER_LENGTH
        number = read_u64(data, body) if mariadb else read_u64(data, body + 17)
        joins = count > 0 and number == runs[count - 1, 2] + 1
        if joins:
            before = runs[count - 1, 0] + HEADER_LENGTH
            if mariadb:
                joins = read_u32(data, before + 8) == read_u32(data, body + 8) and (
                    read_u32(data, before - 14) == read_u32(data, body - 14)
                )
            else:
                joins = same_source(data, body, before)
        if joins:
            runs[count - 1, 2] = number
        else:
            runs[count, 0] = starts[i]
            runs[count, 1] = number
            runs[count, 2] = number
            count += 1
    return count


def is_tagged(events: EventTable, gtid_events: Int64s) -> NDArray[np.bool_]:
    """Which GTID events (indexes; -1 for none) are tagged ones."""
    if types.GTID_TAGGED_LOG_EVENT not in events.codes:
        return np.zeros(len(gtid_events), np.bool_)
    return (gtid_events >= 0) & (events.types[gtid_events] == types.GTID_TAGGED_LOG_EVENT)


def is_mariadb(events: EventTable) -> bool:
    """Whether the events are from MariaDB, and have its GTIDs."""
    return types.GTID_EVENT in events.codes


def gtid_ranges(events: EventTable, gtid_events: Int64s, tagged: SplitTaggedGtid) -> list[GtidRange]:
    """The transactions of `gtid_events` (indexes into `events`) as ranges, in binlog order."""
    if not len(gtid_events):
        return []
    tagged_events, mariadb = is_tagged(events, gtid_events), is_mariadb(events)
    starts = events.starts[gtid_events[~tagged_events]]
    runs = np.empty((len(starts), 3), np.int64)
    count = _find_runs(events.data, starts, mariadb, runs)
    sources = gtid_sources(events.data, runs[:count, 0], mariadb)
    ranges = [
        GtidRange(source, int(first), int(last))
        for source, first, last in zip(sources, runs[:count, 1], runs[:count, 2], strict=True)
    ]
    for index in gtid_events[tagged_events]:
        source, number = tagged(events.event(int(index)).tobytes())
        ranges.append(GtidRange(source, number, number))
    return ranges


def gtid_sources(data: Bytes, starts: Int64s, mariadb: bool) -> list[str]:
    """The source of each GTID event: `uuid`, or `domain-server` for MariaDB."""
    sources = []
    for start in starts:
        body = int(start) + HEADER_LENGTH
        if mariadb:
            domain, server = (
                int.from_bytes(data[at : at + 4].tobytes(), "little") for at in (body + 8, int(start) + 5)
            )
            sources.append(f"{domain}-{server}")
        else:
            text = data[body + 1 : body + 17].tobytes().hex()
            sources.append("-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:])))
    return sources
