"""GTIDs of a batch's transactions, in bulk: as text for the `_gtid` column, and as ranges for the GTID set.

Both come out of kernels over the GTID events, since a stream of small transactions has one of them for
every row or two. Tagged GTIDs (MySQL 8.3 and later) are rare and take the readable decoder instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from engine.decode import event_types as types
from engine.decode.columns.digits import write_number
from engine.decode.columns.kernels import address_of, copy
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
def _write_texts(
    data: Bytes,
    starts: Int64s,
    gtid_events: Int64s,
    is_tagged: NDArray[np.bool_],
    mariadb: bool,
    out: Bytes,
    offsets: Int32s,
) -> None:
    """One text per GTID event; an empty one for -1, and for a tagged one."""
    text = address_of(out)
    at = 0
    offsets[0] = 0
    before, before_at = -1, 0
    for i in range(len(gtid_events)):
        if gtid_events[i] >= 0 and not is_tagged[i]:
            start = starts[gtid_events[i]]
            body = start + HEADER_LENGTH
            if mariadb:
                at = write_number(text, at, np.uint64(read_u32(data, body + 8)))
                out[at] = 45
                at = write_number(text, at + 1, np.uint64(read_u32(data, start + 5)))
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


@dataclass(frozen=True, slots=True)
class GtidTexts:
    """Texts, one behind another; an empty one stands for none."""

    offsets: Int32s
    """Where each text starts in `content`, and the last one ends."""
    content: Bytes

    @classmethod
    def of(cls, texts: Sequence[str]) -> GtidTexts:
        """These texts."""
        content = [text.encode() for text in texts]
        return cls(
            np.cumsum([0, *map(len, content)], dtype=np.int32), np.frombuffer(b"".join(content), np.uint8)
        )

    def array(self) -> pa.Array:
        """As strings, null where there is none."""
        buffers = [None, pa.py_buffer(self.offsets), pa.py_buffer(self.content)]
        texts = pa.Array.from_buffers(pa.string(), len(self.offsets) - 1, buffers)
        return pc.if_else(pc.equal(texts, ""), None, texts)


def _is_tagged(events: EventTable, gtid_events: Int64s) -> NDArray[np.bool_]:
    """Which GTID events (-1 for none) are tagged ones."""
    if types.GTID_TAGGED_LOG_EVENT not in events.codes:
        return np.zeros(len(gtid_events), np.bool_)
    return (gtid_events >= 0) & (events.types[gtid_events] == types.GTID_TAGGED_LOG_EVENT)


def gtid_texts(events: EventTable, gtid_events: Int64s, tagged: TaggedGtid) -> GtidTexts:
    """The GTIDs of `gtid_events` (indexes into `events`, -1 for none).

    `tagged` knows those that are read one by one.
    """
    is_tagged = _is_tagged(events, gtid_events)
    out = np.empty(_LONGEST * len(gtid_events), np.uint8)
    offsets = np.empty(len(gtid_events) + 1, np.int32)
    _write_texts(events.data, events.starts, gtid_events, is_tagged, _is_mariadb(events), out, offsets)
    texts = GtidTexts(offsets, out[: offsets[-1]])
    if not is_tagged.any():
        return texts
    values = [text or "" for text in texts.array().to_pylist()]
    for place in np.flatnonzero(is_tagged):
        source, number = tagged(events.event(int(gtid_events[place])).tobytes())
        values[place] = f"{source}:{number}"
    return GtidTexts.of(values)


def _is_mariadb(events: EventTable) -> bool:
    """Whether their GTIDs are MariaDB's."""
    return types.GTID_EVENT in events.codes


def gtid_ranges(events: EventTable, gtid_events: Int64s, tagged: TaggedGtid) -> list[GtidRange]:
    """The transactions of `gtid_events` (indexes into `events`) as ranges, in stream order."""
    if not len(gtid_events):
        return []
    is_tagged, mariadb = _is_tagged(events, gtid_events), _is_mariadb(events)
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
