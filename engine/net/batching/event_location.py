"""Finds the event at the cursor in received bytes: those of a server's packets, or of a binlog file.

An event of several packets (over 16 MB) is joined in place, so that its bytes are in one piece. Every length
is compared with the bytes that were received.
"""

from __future__ import annotations

from engine.binlog.event_types import HEADER_LENGTH, SIZE_AT
from engine.kernels.kernel import Bytes, Int64s, copy_within, inlined, kernel, read_u24, read_u32
from engine.net.batching.kernel_status import BAD_PACKET, BAD_SIZE, END, MORE, SERVER_ERROR, TOO_LARGE
from engine.net.batching.stream_state import (
    CURSOR,
    EVENT_NEXT,
    EVENT_SIZE,
    EVENT_START,
    JOINED_CURSOR,
    NEEDED,
)

LOCATED = -1
"""In place of a status: the whole event at the cursor was received."""

_MAX_EVENT = 2_000_000_000
MAX_PACKET = 0xFFFFFF
"""Bytes of a packet that another one continues."""


@inlined
def locate_packet(data: Bytes, filled: int, state: Int64s, marker: int) -> int:
    """Set EVENT_* for the packet at the cursor, and join its parts; returns `LOCATED`, or a status."""
    cursor = state[CURSOR]
    state[NEEDED] = 5
    if filled - cursor < 5:
        return MORE
    length = read_u24(data, cursor)
    first = data[cursor + 4]
    if length == 0 or (first != 0 and first != 0xFE and first != 0xFF):
        return BAD_PACKET
    if first != 0:
        state[NEEDED] = 4 + length
        if filled - cursor < 4 + length:
            return MORE
        state[EVENT_START] = cursor + 4
        state[EVENT_SIZE] = length
        state[EVENT_NEXT] = cursor + 4 + length
        if first == 0xFF:
            return SERVER_ERROR
        return END if length < 9 else BAD_PACKET
    start = cursor + 4 + marker
    if length < marker + HEADER_LENGTH:
        return BAD_SIZE
    state[NEEDED] = 4 + marker + HEADER_LENGTH
    if filled - cursor < state[NEEDED]:
        return MORE
    size = read_u32(data, start + SIZE_AT)
    if size > _MAX_EVENT:
        return TOO_LARGE
    continuations = (size + marker) // MAX_PACKET
    whole = size + marker + 4 * (continuations + 1)
    if length != min(size + marker, MAX_PACKET):
        return BAD_SIZE
    state[NEEDED] = whole
    if filled - cursor < whole:
        return MORE
    if continuations and state[JOINED_CURSOR] != cursor:
        left = size + marker - MAX_PACKET
        target = cursor + 4 + MAX_PACKET
        source = target
        for _ in range(continuations):
            part = min(left, MAX_PACKET)
            if read_u24(data, source) != part:
                return BAD_PACKET
            copy_within(data, source + 4, target, part)
            source += 4 + part
            target += part
            left -= part
        # The kernel may return to Python now, and come to the same event again.
        state[JOINED_CURSOR] = cursor
    state[EVENT_START] = start
    state[EVENT_SIZE] = size
    state[EVENT_NEXT] = cursor + whole
    return LOCATED


@kernel
def locate_bare(data: Bytes, filled: int, state: Int64s) -> int:
    """The same for the event at the cursor of a binlog file's bytes."""
    cursor = state[CURSOR]
    state[NEEDED] = HEADER_LENGTH
    if filled - cursor < HEADER_LENGTH:
        return MORE
    size = read_u32(data, cursor + SIZE_AT)
    if size < HEADER_LENGTH:
        return BAD_SIZE
    if size > _MAX_EVENT:
        return TOO_LARGE
    state[NEEDED] = size
    if filled - cursor < size:
        return MORE
    state[EVENT_START] = cursor
    state[EVENT_SIZE] = size
    state[EVENT_NEXT] = cursor + size
    return LOCATED
