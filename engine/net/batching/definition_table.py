"""The kernels' hash table of table definitions.

It is an open-addressed array [slots, (hash, number, wanted)] whose length is a power of two. The keys are the
hashes of table maps; number is -1 in a free slot. Half of the slots are free, so that each search ends.
"""

from __future__ import annotations

import numpy as np

from engine.binlog.event_types import HEADER_LENGTH
from engine.kernels.kernel import Bytes, Int64s, inlined, kernel, read_u64

_DEFINITION = HEADER_LENGTH + 6
"""Where the definition begins in a table map: after the header and the table id."""


@inlined
def table_map_hash(data: Bytes, start: int, end: int) -> int:
    """The hash of a table map's definition: all of the event data[start:end] after the table id."""
    value = np.int64(-3750763034362895579)
    at = start + _DEFINITION
    while at + 8 <= end:
        value = (value ^ read_u64(data, at)) * np.int64(-7046029254386353131)
        value ^= (value >> 32) & 0xFFFFFFFF
        at += 8
    while at < end:
        value = (value ^ np.int64(data[at])) * np.int64(1099511628211)
        at += 1
    # The lowest bits choose the slot.
    return int(value ^ ((value >> 29) & 0x7FFFFFFFF))


@kernel
def find_definition(definitions: Int64s, value: int) -> int:
    """The slot of the hash `value`, or the free slot for it."""
    mask = definitions.shape[0] - 1
    slot = value & mask
    while definitions[slot, 1] != -1 and definitions[slot, 0] != value:
        slot = (slot + 1) & mask
    return slot
