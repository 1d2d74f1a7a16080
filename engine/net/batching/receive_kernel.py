"""The receive kernel: finds events in received bytes and where transactions end, and writes the index.

It works in the very buffer that the socket fills: nothing is stripped or copied, the index says where
each event starts. Only an event that came in several packets (over 16 MB) is joined in place. Whatever
needs a thought (a new binlog file, a table map never seen before, an error packet) stops the kernel, and
Python decides.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.binlog import event_types as types
from engine.binlog import statements
from engine.binlog.crc32 import crc32
from engine.binlog.event_index import LEFT_OUT, TRANSACTION_END
from engine.binlog.event_roles import (
    ANONYMOUS_GTID,
    EVENT_ROLES,
    FORMAT,
    HEARTBEAT,
    MANAGEMENT,
    MARIADB_GTID,
    MYSQL_GTID,
    PAYLOAD,
    QUERY,
    ROTATE,
    STATEMENT,
    TABLE_MAP,
    TAGGED_GTID,
    TRANSACTION_FINISH,
)
from engine.binlog.positions import length_in_file, start_position
from engine.kernels.kernel import (
    Bytes,
    Int64s,
    copy_within,
    inlined,
    kernel,
    read_u24,
    read_u32,
    read_u48,
    read_u64,
)
from engine.net.batching.event_filter import DROP, KEEP, is_unwanted, note_table

(
    MORE,
    SPECIAL,
    END,
    SERVER_ERROR,
    INDEX_FULL,
    BAD_PACKET,
    BAD_SIZE,
    BAD_QUERY,
    TOO_LARGE,
    NO_FORMAT,
    ENCRYPTED,
    IDS_FULL,
    AT_STOP,
) = range(13)
"""Why the kernel stopped. MORE: the next event is not complete. SPECIAL: a format description, a rotation, an
unknown table map, a compressed transaction or a damaged heartbeat stands at the cursor. END and SERVER_ERROR:
an EOF or ERR packet does. INDEX_FULL, IDS_FULL: there is no room for the event at the cursor. AT_STOP: the
event at the cursor starts at STOP_AT or behind. The rest is damage."""

REASONS = {
    BAD_PACKET: "the packet is no part of a binlog stream",
    BAD_SIZE: "the event's size does not fit the bytes that carry it",
    BAD_QUERY: "the query event's lengths do not fit into the event",
    TOO_LARGE: "the event claims to be larger than any server writes",
    NO_FORMAT: "no format description came before the event",
    ENCRYPTED: "the rest of the file is encrypted: read it from its server instead",
}

(
    CURSOR,
    COUNT,
    TRANSACTION,
    BOUNDARY_COUNT,
    BOUNDARY_CURSOR,
    BOUNDARY_POSITION,
    POSITION,
    NEEDED,
    GTID_ROW,
    EVENT_START,
    EVENT_SIZE,
    EVENT_NEXT,
    IDLE_CURSOR,
    TOLD_POSITION,
    TABLE_IDS,
    LOOKED_INSIDE,
    STOP_AT,
    STATE_SIZE,
) = range(18)
"""Places in the state that goes from call to call.

CURSOR: where the next packet (or event) starts. COUNT: rows in the index. TRANSACTION: see below.
BOUNDARY_*: rows, cursor and file position behind the last transaction end. POSITION: file position behind
the last event. NEEDED: bytes from the cursor on that the next event takes, as far as known. GTID_ROW: the
open transaction's GTID event in the index, or -1. EVENT_*: start, size and end of the event at the cursor.
IDLE_CURSOR: cursor behind the last heartbeat that said that the server has nothing more; -1 before one.
TOLD_POSITION: POSITION as the index tells it, which lacks what was left out. TABLE_IDS: ids in `table_ids`.
LOOKED_INSIDE: cursor of the compressed transaction whose table maps are known, -1 before one; or NEVER.
STOP_AT: file position from which on every event stops the kernel; or NOWHERE.
"""

OUTSIDE, PENDING, INSIDE = range(3)
"""TRANSACTION: between transactions; after a GTID (or a statement's context), so that the next statement ends
the transaction unless it opens one; in a transaction that XID, COMMIT or the like will end."""

NEVER = -2
"""LOOKED_INSIDE: the table maps of compressed transactions need not be known."""

NOWHERE = (1 << 63) - 1
"""STOP_AT: no event stops the kernel."""

UNKNOWN_FORMAT = -1
"""As `query_header`: no format description came yet, so that no event can be read."""

MAX_EVENT = 2_000_000_000
_MAX_PACKET = 0xFFFFFF
_HEADER = 19
_MARIADB_STANDALONE = 1


@inlined
def table_map_hash(data: Bytes, start: int, end: int) -> int:
    """A hash of a table map's definition: all of the event behind the table id."""
    value = np.int64(-3750763034362895579)
    at = start + _HEADER + 6
    while at + 8 <= end:
        value = (value ^ read_u64(data, at)) * np.int64(-7046029254386353131)
        value ^= (value >> 32) & 0xFFFFFFFF
        at += 8
    while at < end:
        value = (value ^ np.int64(data[at])) * np.int64(1099511628211)
        at += 1
    # The lowest bits choose the place in the table.
    return int(value ^ ((value >> 29) & 0x7FFFFFFFF))


@kernel
def find_table(tables: Int64s, value: int) -> int:
    """The place of a hash in the open-addressed table [places, (hash, slot, wanted)], or a free one."""
    mask = tables.shape[0] - 1
    place = value & mask
    while tables[place, 1] != -1 and tables[place, 0] != value:
        place = (place + 1) & mask
    return place


@inlined
def _locate_packet(data: Bytes, filled: int, state: Int64s, marker: int) -> int:
    """Set EVENT_* for the packet at the cursor, joining the parts of a large one."""
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
    if length < marker + _HEADER:
        return BAD_SIZE
    state[NEEDED] = 4 + marker + _HEADER
    if filled - cursor < state[NEEDED]:
        return MORE
    size = read_u32(data, start + 9)
    if size > MAX_EVENT:
        return TOO_LARGE
    continuations = (size + marker) // _MAX_PACKET
    whole = size + marker + 4 * (continuations + 1)
    if length != min(size + marker, _MAX_PACKET):
        return BAD_SIZE
    state[NEEDED] = whole
    if filled - cursor < whole:
        return MORE
    left = size + marker - _MAX_PACKET
    target = cursor + 4 + _MAX_PACKET
    source = target
    for _ in range(continuations):
        part = min(left, _MAX_PACKET)
        if read_u24(data, source) != part:
            return BAD_PACKET
        copy_within(data, source + 4, target, part)
        source += 4 + part
        target += part
        left -= part
    state[EVENT_START] = start
    state[EVENT_SIZE] = size
    state[EVENT_NEXT] = cursor + whole
    return SPECIAL


@kernel
def _locate_bare(data: Bytes, filled: int, state: Int64s) -> int:
    """Set EVENT_* for the event at the cursor of a binlog file's bytes."""
    cursor = state[CURSOR]
    state[NEEDED] = _HEADER
    if filled - cursor < _HEADER:
        return MORE
    size = read_u32(data, cursor + 9)
    if size < _HEADER:
        return BAD_SIZE
    if size > MAX_EVENT:
        return TOO_LARGE
    state[NEEDED] = size
    if filled - cursor < size:
        return MORE
    state[EVENT_START] = cursor
    state[EVENT_SIZE] = size
    state[EVENT_NEXT] = cursor + size
    return SPECIAL


@inlined
def _step_transaction(
    data: Bytes, start: int, end: int, role: int, kind: int, query_header: int, state: Int64s
) -> int:
    """Move the transaction state past one event: +1 if it ends a transaction, +2 if it may define a table."""
    transaction = state[TRANSACTION]
    ends = False
    defines = False
    if role == MYSQL_GTID or role == ANONYMOUS_GTID or role == TAGGED_GTID:
        state[TRANSACTION] = PENDING
        state[GTID_ROW] = state[COUNT]
    elif role == MARIADB_GTID:
        standalone = end - start > _HEADER + 12 and data[start + _HEADER + 12] & _MARIADB_STANDALONE
        state[TRANSACTION] = PENDING if standalone else INSIDE
        state[GTID_ROW] = state[COUNT]
    elif role == TRANSACTION_FINISH or role == PAYLOAD:
        ends = True
    elif role == QUERY:
        text = statements.statement_start(data, start, end, query_header)
        if text < 0:
            return -1
        statement = statements.statement_kind(data, text, end)
        defines = statement == statements.DEFINITION or statement == statements.ATOMIC_CREATE
        if (
            statement == statements.BEGIN
            or statement == statements.XA_START
            or statement == statements.ATOMIC_CREATE
        ):
            state[TRANSACTION] = INSIDE
        elif (
            statement == statements.COMMIT
            or statement == statements.ROLLBACK
            or statement == statements.XA_FINISH
        ):
            ends = True
        else:
            ends = transaction != INSIDE
    elif role == STATEMENT:
        defines = kind == types.QUERY_COMPRESSED_EVENT
        ends = transaction != INSIDE
    elif role != MANAGEMENT and transaction == OUTSIDE:
        state[TRANSACTION] = PENDING
    if ends:
        state[TRANSACTION] = OUTSIDE
        state[GTID_ROW] = -1
    return (1 if ends else 0) + (2 if defines else 0)


@inlined
def _is_sound(data: Bytes, start: int, end: int, checksum_size: int) -> bool:
    """Whether the checksum at `end` is that of data[start:end]; where there are none, nobody can tell.

    For events that go to no decoder, which checks all others: damage may have made the event one of those.
    """
    return checksum_size == 0 or read_u32(data, end) == crc32(data, start, end)


@kernel
def _take_heartbeat(data: Bytes, state: Int64s) -> None:
    """Pass a heartbeat. Its position is ours when the server waits for more to be written.

    It is ahead of ours where the server has left out transactions that we have: the position goes along, as
    a replica's does.
    """
    state[CURSOR] = state[EVENT_NEXT]
    ahead = (read_u32(data, state[EVENT_START] + 13) - state[POSITION]) & 0xFFFFFFFF
    if state[TRANSACTION] == OUTSIDE:
        if ahead == 0:
            state[IDLE_CURSOR] = state[CURSOR]
        elif ahead < 0x80000000:
            state[POSITION] += ahead


@inlined
def _is_left_out(data: Bytes, start: int, end: int, treatment: int, table_ids: Int64s) -> bool:
    """Whether nobody wants an event of a type that is not always kept."""
    if treatment == DROP:
        return True
    # One that is too short for a table id is for the decoders to refuse.
    return end - start >= _HEADER + 6 and is_unwanted(table_ids, read_u48(data, start + _HEADER))


@kernel
def first_rolls_back(data: Bytes, index: NDArray[np.uint32], query_header: int, checksum_size: int) -> bool:
    """Whether the first transaction end of an index is a ROLLBACK."""
    for i in range(index.shape[0]):
        if index[i, 1] & TRANSACTION_END:
            if index[i, 1] != types.QUERY_EVENT | TRANSACTION_END:
                return False
            start = np.int64(index[i, 0])
            end = start + read_u32(data, start + 9) - checksum_size
            text = statements.statement_start(data, start, end, query_header)
            return text >= 0 and statements.statement_kind(data, text, end) == statements.ROLLBACK
    return False


@kernel
def unknown_tables(
    data: Bytes,
    filled: int,
    state: Int64s,
    tables: Int64s,
    marker: int,
    query_header: int,
    checksum_size: int,
    found: Int64s,
) -> int:
    """Look ahead from the cursor for table maps that are not known: start and size of each go to `found`.

    Returns how many there are, each once. What comes behind a statement that may define a table is not looked
    at, nor is anything behind an event of several packets, or one that needs a thought. Arguments as below;
    `state` stays as it is.
    """
    ahead = state.copy()
    hashes = np.empty(found.shape[0], np.int64)
    count = 0
    while count < found.shape[0]:
        cursor = ahead[CURSOR]
        if marker >= 0:
            if filled - cursor < 5 or read_u24(data, cursor) == _MAX_PACKET:
                break
            status = _locate_packet(data, filled, ahead, marker)
        else:
            status = _locate_bare(data, filled, ahead)
        start, size = ahead[EVENT_START], ahead[EVENT_SIZE]
        if status != SPECIAL or size < _HEADER + checksum_size:
            break
        end = start + size - checksum_size
        kind = np.int64(data[start + 4])
        role = EVENT_ROLES[kind]
        if role == FORMAT or role == ROTATE:
            break
        if role == TABLE_MAP:
            if size < _HEADER + 8 + checksum_size:
                break
            value = table_map_hash(data, start, end)
            if tables[find_table(tables, value), 1] == -1 and not (hashes[:count] == value).any():
                hashes[count] = value
                found[count, 0] = start
                found[count, 1] = size
                count += 1
        else:
            step = _step_transaction(data, start, end, role, kind, query_header, ahead)
            if step < 0 or step & 2:
                break
        ahead[CURSOR] = ahead[EVENT_NEXT]
    return count


@kernel
def index_events(
    data: Bytes,
    filled: int,
    state: Int64s,
    index: NDArray[np.uint32],
    tables: Int64s,
    table_used: Int64s,
    table_ids: Int64s,
    treatments: NDArray[np.uint8],
    stamp: int,
    marker: int,
    query_header: int,
    checksum_size: int,
) -> int:
    """Index the events in data[:filled] from the cursor on, until something stops it; returns what.

    `marker`: bytes between a packet's header and its event, or -1 for the bytes of a file. `tables`: the
    known table maps by hash, whose slots get `stamp` in `table_used`; emptied when a statement may have
    changed a definition. `table_ids`, `treatments`: see `engine.net.batching.event_filter`. `query_header`,
    `checksum_size`: from the format description.
    """
    while True:
        if state[COUNT] + 2 > index.shape[0]:
            return INDEX_FULL
        if marker >= 0:
            status = _locate_packet(data, filled, state, marker)
        else:
            status = _locate_bare(data, filled, state)
        if status != SPECIAL:
            return status
        start = state[EVENT_START]
        size = state[EVENT_SIZE]
        if size < _HEADER + checksum_size:
            return BAD_SIZE
        end = start + size - checksum_size
        kind = np.int64(data[start + 4])
        role = EVENT_ROLES[kind]
        if role == HEARTBEAT and marker >= 0:
            if not _is_sound(data, start, end, checksum_size):
                return SPECIAL
            _take_heartbeat(data, state)
            continue
        expected = state[POSITION]
        position = start_position(data, start, size, expected)
        if position >= state[STOP_AT]:
            return AT_STOP
        if role == FORMAT or role == ROTATE:
            return SPECIAL
        if query_header == UNKNOWN_FORMAT:
            return NO_FORMAT
        if role == TABLE_MAP:
            if size < _HEADER + 8 + checksum_size:
                return BAD_SIZE
            place = find_table(tables, table_map_hash(data, start, end))
            if tables[place, 1] == -1:
                return SPECIAL
            table_used[tables[place, 1]] = stamp
            if table_ids.shape[0] != 0:
                if 2 * state[TABLE_IDS] >= table_ids.shape[0]:
                    return IDS_FULL
                wanted = tables[place, 2] != 0
                state[TABLE_IDS] += note_table(table_ids, read_u48(data, start + _HEADER), wanted)
        if role == PAYLOAD and state[LOOKED_INSIDE] != NEVER and state[LOOKED_INSIDE] != state[CURSOR]:
            return SPECIAL
        if kind == types.START_ENCRYPTION_EVENT and marker < 0:
            return ENCRYPTED
        step = _step_transaction(data, start, end, role, kind, query_header, state)
        if step < 0:
            return BAD_QUERY
        if step & 2:
            tables[:, 1] = -1
        state[POSITION] = position + length_in_file(data, start, size)
        treatment = treatments[kind]
        # A damaged one goes to a decoder, which says so.
        if (
            treatment != KEEP
            and _is_left_out(data, start, end, treatment, table_ids)
            and _is_sound(data, start, end, checksum_size)
        ):
            state[CURSOR] = state[EVENT_NEXT]
            continue
        told = state[TOLD_POSITION]
        if told != expected and start_position(data, start, size, told) != position:
            index[state[COUNT], 0] = expected - told
            index[state[COUNT], 1] = LEFT_OUT
            # This event's own row comes behind.
            state[GTID_ROW] += state[GTID_ROW] == state[COUNT]
            state[COUNT] += 1
        state[TOLD_POSITION] = state[POSITION]
        index[state[COUNT], 0] = start
        index[state[COUNT], 1] = kind | (TRANSACTION_END if step & 1 else 0)
        state[COUNT] += 1
        state[CURSOR] = state[EVENT_NEXT]
        if step & 1 or (role == MANAGEMENT and state[TRANSACTION] == OUTSIDE):
            state[BOUNDARY_COUNT] = state[COUNT]
            state[BOUNDARY_CURSOR] = state[CURSOR]
            state[BOUNDARY_POSITION] = state[POSITION]
            if 4 * state[TABLE_IDS] > table_ids.shape[0]:
                # No transaction refers to the table maps of another one.
                table_ids[:, 0] = -1
                state[TABLE_IDS] = 0
