"""GTIDs of a batch's transactions, in bulk: as text for the `_gtid` column, and as ranges for the GTID set.

Both come out of kernels over the GTID events, since a stream of small transactions has one of them for
every row or two. Tagged GTIDs (MySQL 8.3 and later) are rare and take the readable decoder instead.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.decode.columns.digits import write_number
from engine.decode.columns.kernels import address_of, copy
from engine.decode.event_roles import EVENT_ROLES, MARIADB_GTID, TAGGED_GTID
from engine.decode.event_table import EventTable
from engine.decode.event_types import HEADER_LENGTH
from engine.kernels import Bytes, Int32s, Int64s, inlined, kernel, read_u32, read_u64

_UUID = 36
_LONGEST = 64
"""Bytes of the longest untagged GTID text, 36 + 1 + 20, and those behind it that writing numbers changes."""

TaggedGtid = Callable[[bytes], tuple[str, int]]
"""(`uuid:tag`, number) of a GTID_TAGGED_LOG_EVENT's bytes."""

GtidRange = tuple[str, int, int, int]
"""As `engine.messages.Result.gtids` has it."""

_HEX = np.frombuffer(b"0123456789abcdef", np.uint8).copy()


@kernel
def _put_uuid(data: Bytes, source: int, out: Bytes, at: int) -> None:
    for i in range(16):
        if i == 4 or i == 6 or i == 8 or i == 10:
            out[at] = 45
            at += 1
        out[at] = _HEX[data[source + i] >> 4]
        out[at + 1] = _HEX[data[source + i] & 15]
        at += 2


@inlined
def _same_source(data: Bytes, body: int, other: int) -> bool:
    """Whether two GTID events of MySQL, given by their bodies, have the same UUID."""
    return read_u64(data, body + 1) == read_u64(data, other + 1) and (
        read_u64(data, body + 9) == read_u64(data, other + 9)
    )


@kernel
def _write_texts(data: Bytes, starts: Int64s, mariadb: bool, out: Bytes, offsets: Int32s) -> None:
    """One text per GTID event start in `starts`; an empty one for -1."""
    text = address_of(out)
    at = 0
    offsets[0] = 0
    before, before_at = -1, 0
    for i in range(len(starts)):
        if starts[i] >= 0:
            body = starts[i] + HEADER_LENGTH
            if mariadb:
                at = write_number(text, at, np.uint64(read_u32(data, body + 8)))
                out[at] = 45
                at = write_number(text, at + 1, np.uint64(read_u32(data, starts[i] + 5)))
                out[at] = 45
                at = write_number(text, at + 1, np.uint64(read_u64(data, body)))
            else:
                if before >= 0 and _same_source(data, body, before):
                    copy(text, at, text, before_at, _UUID)
                else:
                    _put_uuid(data, body + 1, out, at)
                before, before_at = body, at
                at += _UUID
                out[at] = 58
                at = write_number(text, at + 1, np.uint64(read_u64(data, body + 17)))
        offsets[i + 1] = at


@kernel
def _find_runs(data: Bytes, starts: Int64s, mariadb: bool, runs: Int64s) -> int:
    """Runs of consecutive GTIDs of one source: [first's event start, first number, last number]."""
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
                joins = _same_source(data, body, before)
        if joins:
            runs[count - 1, 2] = number
        else:
            runs[count, 0] = starts[i]
            runs[count, 1] = number
            runs[count, 2] = number
            count += 1
    return count


def _split(events: EventTable, gtid_events: Int64s) -> tuple[NDArray[np.bool_], bool]:
    """Which GTID events are tagged ones, and whether the rest are MariaDB's."""
    roles = EVENT_ROLES[events.types[gtid_events]]
    return roles == TAGGED_GTID, bool(np.any(roles == MARIADB_GTID))


def gtid_texts(events: EventTable, gtid_events: Int64s, tagged: TaggedGtid) -> pa.Array:
    """The GTIDs of `gtid_events` (indexes into `events`, -1 for none) as strings, null where there is none.

    `tagged` knows those that are read one by one.
    """
    missing = gtid_events < 0
    is_tagged, mariadb = _split(events, gtid_events)
    is_tagged &= ~missing
    starts = np.where(missing | is_tagged, -1, events.starts[gtid_events])
    out = np.empty(_LONGEST * max(1, len(starts)), np.uint8)
    offsets = np.empty(len(starts) + 1, np.int32)
    _write_texts(events.data, starts, mariadb, out, offsets)
    validity = None
    if missing.any():
        validity = pa.py_buffer(np.packbits(~missing, bitorder="little"))
    texts = pa.Array.from_buffers(
        pa.string(), len(starts), [validity, pa.py_buffer(offsets), pa.py_buffer(out)], int(missing.sum())
    )
    if not is_tagged.any():
        return texts
    values = texts.to_pylist()
    for place in np.nonzero(is_tagged)[0]:
        source, number = tagged(events.event(int(gtid_events[place])).tobytes())
        values[place] = f"{source}:{number}"
    return pa.array(values, pa.string())


def gtid_ranges(events: EventTable, gtid_events: Int64s, tagged: TaggedGtid) -> list[GtidRange]:
    """The transactions of `gtid_events` (indexes into `events`) as ranges, in stream order."""
    if not len(gtid_events):
        return []
    is_tagged, mariadb = _split(events, gtid_events)
    starts = events.starts[gtid_events[~is_tagged]]
    runs = np.empty((len(starts), 3), np.int64)
    count = _find_runs(events.data, starts, mariadb, runs)
    sources = gtid_sources(events.data, runs[:count, 0], mariadb)
    ranges = [
        (source, int(first), int(last), int(mariadb))
        for source, first, last in zip(sources, runs[:count, 1], runs[:count, 2], strict=True)
    ]
    for place in gtid_events[is_tagged]:
        source, number = tagged(events.event(int(place)).tobytes())
        ranges.append((source, number, number, 0))
    return ranges


def gtid_sources(data: Bytes, starts: Int64s, mariadb: bool) -> list[str]:
    """Per GTID event its source: `uuid`, or `domain-server` for MariaDB."""
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
