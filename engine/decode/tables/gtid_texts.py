"""The GTIDs of a batch's transactions as text, for the `_gtid` column.

A kernel over the GTID events writes them, since a stream of small transactions has a GTID event for every row
or two. Tagged GTIDs (MySQL 8.3 and later) are rare and are decoded one by one in Python.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from engine.binlog.event_table import EventTable
from engine.binlog.event_types import HEADER_LENGTH
from engine.binlog.gtid_events import SplitTaggedGtid, is_mariadb, is_tagged, same_source
from engine.dataclass import dataclass
from engine.decode.arrow.column_kernel import LARGEST_CONTENT
from engine.decode.columns.digits import write_number
from engine.kernels.kernel import Bytes, Int32s, Int64s, kernel, read_u32, read_u64
from engine.kernels.memory import address_of, copy

_UUID = 36
_LONGEST = 64
"""Bytes of the longest untagged GTID text, 36 + 1 + 20, and the 7 after it that writing a number changes."""
_MOST_TEXTS = LARGEST_CONTENT // 90
"""Arrow's offsets reach no further; the longest text is that of a tagged GTID, 36 + 1 + 32 + 1 + 20 bytes."""

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
    """Write one text per GTID event; an empty one for -1 and for tagged GTIDs."""
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
                if before >= 0 and same_source(data, body, before):
                    copy(text, at, text, before_at, _UUID)
                else:
                    _put_uuid(data, body + 1, out, at)
                before, before_at = body, at
                at += _UUID
                out[at] = 58
                at = write_number(text, at + 1, np.uint64(read_u64(data, body + 17)))
        offsets[i + 1] = at


@dataclass(frozen=True, slots=True)
class GtidTexts:
    """Concatenated texts; an empty text means no GTID."""

    offsets: Int32s
    """Start of each text in `content`, then the end of the last one."""
    content: Bytes

    @classmethod
    def of(cls, texts: Sequence[str]) -> GtidTexts:
        """With these texts."""
        content = [text.encode() for text in texts]
        offsets = np.cumsum([0, *map(len, content)], dtype=np.int32)
        # Not read-only: for a kernel that would be another type, for which it would be compiled again.
        return cls(offsets, np.frombuffer(bytearray(b"".join(content)), np.uint8))

    def array(self) -> pa.Array:
        """The texts as an Arrow array, null for empty ones."""
        buffers = [None, pa.py_buffer(self.offsets), pa.py_buffer(self.content)]
        texts = pa.Array.from_buffers(pa.string(), len(self.offsets) - 1, buffers)
        return pc.if_else(pc.equal(texts, ""), None, texts)


def gtid_texts(events: EventTable, gtid_events: Int64s, tagged: SplitTaggedGtid) -> GtidTexts:
    """The GTIDs of `gtid_events` (indexes into `events`, -1 for none).

    `tagged` decodes the tagged ones. Raises `EventTableError` for more GTIDs than a column can have.
    """
    if len(gtid_events) > _MOST_TEXTS:
        # No server writes so many that a batch can have them.
        reason = f"a batch has {len(gtid_events)} transactions, more than {_MOST_TEXTS}"
        raise events.error(int(gtid_events.max()), reason, corrupt=False)
    tagged_events = is_tagged(events, gtid_events)
    out = np.empty(_LONGEST * len(gtid_events), np.uint8)
    offsets = np.empty(len(gtid_events) + 1, np.int32)
    _write_texts(events.data, events.starts, gtid_events, tagged_events, is_mariadb(events), out, offsets)
    texts = GtidTexts(offsets, out[: offsets[-1]])
    if not tagged_events.any():
        return texts
    values = [text or "" for text in texts.array().to_pylist()]
    for index in np.flatnonzero(tagged_events):
        source, number = tagged(events.event(int(gtid_events[index])).tobytes())
        values[index] = f"{source}:{number}"
    return GtidTexts.of(values)
