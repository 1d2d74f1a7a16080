"""How much the compressed transactions of a batch expand to.

A decoder expands all of a batch before it reads a row, and a transaction may expand to a thousand times its
event's size. So a batch is limited by the sizes that its events claim as well, not only by its own bytes.
"""

from __future__ import annotations

import numpy as np

from engine.kernels.kernel import Bytes, kernel, read_u16, read_u24, read_u64

MOST_EXPANDED = 64 << 20
"""Bytes that a batch of several compressed transactions may expand to; one alone may be larger."""

_END, _UNCOMPRESSED_SIZE = 0, 3
"""Types of fields in TRANSACTION_PAYLOAD_EVENT (`engine.binlog.events.payload`)."""


@kernel
def expanded_size(data: Bytes, body: int, end: int) -> int:
    """The size that the compressed transaction data[body:end] claims; 0 where it does not say.

    Types and lengths of the known fields take one byte. Decoders report other bytes.
    """
    at = body
    while at + 2 <= end and data[at] != _END:
        value = at + 2
        after = value + data[at + 1]
        if after > end or after == value:
            return 0
        if data[at] == _UNCOMPRESSED_SIZE:
            return _length_encoded(data, value, after)
        at = after
    return 0


@kernel
def _length_encoded(data: Bytes, at: int, end: int) -> int:
    """The length-encoded integer data[at:end], which is not empty; 0 where that is none."""
    first, size = np.int64(data[at]), end - at - 1
    if first < 251 and size == 0:
        return int(first)
    if first == 252 and size == 2:
        return read_u16(data, at + 1)
    if first == 253 and size == 3:
        return read_u24(data, at + 1)
    if first == 254 and size == 8:
        return max(0, read_u64(data, at + 1))
    return 0
