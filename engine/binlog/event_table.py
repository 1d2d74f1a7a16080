"""The events of a batch as arrays: where each starts and ends, its type, and its position in the binlog file.

One kernel reads the batch's index, checks every event's header against the size of the data, and its checksum
against its bytes. All later steps find events only through these arrays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

import numpy as np
from numpy.typing import NDArray

from engine.binlog.crc32 import crc32
from engine.binlog.event_index import LEFT_OUT, TRANSACTION_END
from engine.binlog.event_positions import length_in_file, start_position
from engine.binlog.event_types import HEADER_LENGTH, SIZE_AT
from engine.dataclass import dataclass
from engine.errors import BinlogError
from engine.kernels.kernel import Bytes, Int64s, kernel, read_u32

_TYPE_AT = 4
LARGEST_DATA = 2**31 - 1
"""Largest total size in bytes of a table's events, since offsets of cells have 32 bits."""
TOO_LARGE = "the events of one batch expand to more than 2 GiB"
_OK, _OUTSIDE, _TOO_SHORT, _BAD_CHECKSUM = range(4)
_REASONS = {
    _OUTSIDE: "the event's size exceeds the bytes that were received",
    _TOO_SHORT: "the event is shorter than its header",
    _BAD_CHECKSUM: "the event's checksum does not match its bytes: they were damaged on disk or in transit",
}


@dataclass(frozen=True, slots=True)
class EventTable:
    """Events as parallel arrays, in binlog order. `data` contains their bytes, possibly with gaps."""

    file: str
    data: Bytes
    starts: Int64s
    """Offset of each event's header in `data`."""
    ends: Int64s
    """Offset after each event's content, which excludes the checksum."""
    types: Int64s
    positions: Int64s
    """Position of each event in the binlog file; for events in a compressed transaction, its position."""
    transaction_ends: NDArray[np.bool_]
    batch_indexes: Int64s
    """Index of each event in its batch; for events in a compressed transaction, its index."""
    context: int
    """Number of events at the start that are context: they are read, but nothing is emitted for them."""
    codes: frozenset[int] = field(init=False)
    """The type codes of all events, so that steps for rare types can be skipped."""

    def __post_init__(self) -> None:
        codes = frozenset(np.flatnonzero(np.bincount(self.types)).tolist())
        object.__setattr__(self, "codes", codes)

    def __len__(self) -> int:
        return len(self.starts)

    def head(self, count: int) -> EventTable:
        """The table of the first `count` events."""
        if count == len(self):
            return self
        return replace(
            self,
            starts=self.starts[:count],
            ends=self.ends[:count],
            types=self.types[:count],
            positions=self.positions[:count],
            transaction_ends=self.transaction_ends[:count],
            batch_indexes=self.batch_indexes[:count],
        )

    def event(self, i: int | np.signedinteger) -> Bytes:
        """The bytes of event `i`, without its checksum."""
        return self.data[self.starts[i] : self.ends[i]]

    def with_content(self, content: Mapping[int, bytes]) -> EventTable:
        """The same table with other bytes for some events, by index; their types are those in the bytes.

        Raises `EventTableError` if the total size exceeds `LARGEST_DATA`.
        """
        starts, ends, type_codes = self.starts.copy(), self.ends.copy(), self.types.copy()
        end = len(self.data)
        for i, event in content.items():
            starts[i], ends[i], type_codes[i] = end, end + len(event), event[_TYPE_AT]
            end += len(event)
            if end > LARGEST_DATA:
                raise self.error(i, TOO_LARGE, corrupt=False)
        added = np.frombuffer(b"".join(content.values()), np.uint8)
        data = np.concatenate([self.data, added])
        return replace(self, data=data, starts=starts, ends=ends, types=type_codes)

    def error(self, i: int, reason: str, corrupt: bool = True) -> EventTableError:
        """An error at event `i`; `corrupt` is False if the event may be intact, but cannot be decoded."""
        return EventTableError(self.file, int(self.positions[i]), reason, int(self.batch_indexes[i]), corrupt)


class EventTableError(BinlogError):
    """A broken event; `event` is its index in the batch."""

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
    """Fill the arrays; returns a status and the number of intact events before the first broken one."""
    expected = position
    count = 0
    for i in range(index.shape[0]):
        start = np.int64(index[i, 0])
        mark = np.int64(index[i, 1])
        if mark & LEFT_OUT:
            expected += int(start)
            continue
        positions[count] = expected
        if start + HEADER_LENGTH > len(data):
            return _OUTSIDE, count
        size = read_u32(data, start + SIZE_AT)
        if start + size > len(data):
            return _OUTSIDE, count
        if size < HEADER_LENGTH + checksum_size:
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
    """The table of a batch's events before the first broken one, and the error of that one, if any.

    `index` is the batch's (see `engine.binlog.event_index`), `position` the file position of the first event
    after the `context` events, `checksum_size` the size in bytes of each event's checksum (4 or 0).
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
        batch_indexes=np.arange(count),
        context=context,
    )
    if status == _OK:
        return table, None
    return table, EventTableError(file, int(positions[count]), _REASONS[status], count, corrupt=True)
