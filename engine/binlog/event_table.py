"""The events of a batch as arrays: where each starts and ends, its type, and its place in the binlog file.

One kernel goes over the batch's index, checks every event's header against the bytes that are there and
its checksum, and gives the arrays that everything after it works on. No later step looks at an event
without them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from engine.binlog.crc32 import crc32
from engine.binlog.event_index import LEFT_OUT, TRANSACTION_END
from engine.binlog.positions import length_in_file, start_position
from engine.errors import BinlogError
from engine.kernels.kernel import Bytes, Int64s, kernel, read_u32

_HEADER = 19
_TYPE_AT = 4
LARGEST_DATA = 2**31 - 1
"""Bytes of all events of a table: cells are addressed by offsets of 32 bits."""
TOO_LARGE = "the events of one batch expand to more than 2 GiB"
_OK, _OUTSIDE, _TOO_SHORT, _BAD_CHECKSUM = range(4)
_REASONS = {
    _OUTSIDE: "the event's size goes beyond the bytes that were received",
    _TOO_SHORT: "the event is shorter than its header",
    _BAD_CHECKSUM: "the event's checksum does not match its bytes: they were damaged on disk or on the way",
}


@dataclass(frozen=True, slots=True)
class EventTable:
    """Events as parallel arrays, in binlog order. `data` holds their bytes, not always side by side."""

    file: str
    data: Bytes
    starts: Int64s
    """Offset of each event's header in `data`."""
    ends: Int64s
    """Offset just behind its content: its checksum, if any, is left out."""
    types: Int64s
    positions: Int64s
    """Start position in the binlog file (of the outer event for those from a compressed transaction)."""
    transaction_ends: NDArray[np.bool_]
    places: Int64s
    """Number of each event in its batch; that of the outer event for those from a compressed one."""
    context: int
    """The first so many events are context: read them, but nothing comes out for them."""
    codes: frozenset[int] = field(init=False)
    """Which types there are. Most of what is rare need not be looked for."""

    def __post_init__(self) -> None:
        codes = frozenset(np.flatnonzero(np.bincount(self.types)).tolist())
        object.__setattr__(self, "codes", codes)

    def __len__(self) -> int:
        return len(self.starts)

    def head(self, count: int) -> EventTable:
        """The same, with the first `count` events only."""
        if count == len(self):
            return self
        return replace(
            self,
            starts=self.starts[:count],
            ends=self.ends[:count],
            types=self.types[:count],
            positions=self.positions[:count],
            transaction_ends=self.transaction_ends[:count],
            places=self.places[:count],
        )

    def event(self, i: int | np.signedinteger) -> Bytes:
        """The bytes of event `i`, without its checksum."""
        return self.data[self.starts[i] : self.ends[i]]

    def with_content(self, content: Mapping[int, bytes]) -> EventTable:
        """The same with other bytes for some events, by their place; their types are those in the bytes.

        Raises `EventTableError` where all that is more than offsets can address.
        """
        starts, ends, type_codes = self.starts.copy(), self.ends.copy(), self.types.copy()
        end = len(self.data)
        for place, event in content.items():
            starts[place], ends[place], type_codes[place] = end, end + len(event), event[_TYPE_AT]
            end += len(event)
            if end > LARGEST_DATA:
                raise self.error(place, TOO_LARGE, corrupt=False)
        added = np.frombuffer(b"".join(content.values()), np.uint8)
        data = np.concatenate([self.data, added])
        return replace(self, data=data, starts=starts, ends=ends, types=type_codes)

    def error(self, i: int, reason: str, corrupt: bool = True) -> EventTableError:
        """An error at event `i`; not `corrupt` if the event may be sound, but cannot be decoded."""
        return EventTableError(self.file, int(self.positions[i]), reason, int(self.places[i]), corrupt)


class EventTableError(BinlogError):
    """A broken event; `event` is its number in the batch."""

    def __init__(self, file: str, position: int, reason: str, event: int, corrupt: bool) -> None:
        super().__init__(file, position, reason, corrupt)
        self.event = event


@kernel
def _open_events(
    data: Bytes,
    index: NDArray[np.uint32],
    context: int,
    position: int,
    checksum_size: int,
    starts: Int64s,
    ends: Int64s,
    type_codes: Int64s,
    positions: Int64s,
    transaction_ends: NDArray[np.bool_],
) -> tuple[int, int]:
    """Fill the arrays; what stopped it, and how many events are sound."""
    expected = position
    count = 0
    for i in range(index.shape[0]):
        start = np.int64(index[i, 0])
        mark = np.int64(index[i, 1])
        if mark & LEFT_OUT:
            expected += int(start)
            continue
        positions[count] = expected
        if start + 19 > len(data):
            return _OUTSIDE, count
        size = read_u32(data, start + 9)
        if start + size > len(data):
            return _OUTSIDE, count
        if size < 19 + checksum_size:
            return _TOO_SHORT, count
        starts[count] = start
        ends[count] = start + size - checksum_size
        type_codes[count] = mark & 0xFF
        transaction_ends[count] = mark & TRANSACTION_END != 0
        if count >= context:
            positions[count] = start_position(data, start, size, expected)
            expected = positions[count] + length_in_file(data, start, size)
            if checksum_size != 0:
                stored = read_u32(data, start + size - 4)
                if np.int64(crc32(data, start, start + size - 4)) != stored:
                    return _BAD_CHECKSUM, count
        count += 1
    return _OK, count


def open_events(
    file: str, data: Bytes, index: NDArray[np.uint32], context: int, position: int, checksum_size: int
) -> tuple[EventTable, EventTableError | None]:
    """The event table of a batch, as far as its events are sound, and what is wrong with the next one.

    `index` is the batch's (see `engine.binlog.event_index`), `position` the file position of the first event
    behind the `context` events, `checksum_size` 4 or 0 bytes at each event's end.
    """
    starts, ends, type_codes, positions = (np.empty(len(index), np.int64) for _ in range(4))
    transaction_ends = np.empty(len(index), np.bool_)
    status, count = _open_events(
        data,
        index,
        context,
        position,
        checksum_size,
        starts,
        ends,
        type_codes,
        positions,
        transaction_ends,
    )
    table = EventTable(
        file=file,
        data=data,
        starts=starts[:count],
        ends=ends[:count],
        types=type_codes[:count],
        positions=positions[:count],
        transaction_ends=transaction_ends[:count],
        places=np.arange(count),
        context=context,
    )
    if status == _OK:
        return table, None
    return table, EventTableError(file, int(positions[count]), _REASONS[status], count, corrupt=True)
