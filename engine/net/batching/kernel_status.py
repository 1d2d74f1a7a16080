"""Why a kernel that goes over received events returned to Python, and a sentence for each kind of damage.

The receive kernel and the statement kernel have these statuses in common.
"""

(
    MORE,
    NEEDS_PYTHON,
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
    DEFINED,
    BATCH_FULL,
    LARGE_TRANSACTION,
    ENDS_EARLY,
) = range(17)
"""Why a kernel returned.

MORE: the next event is not complete. NEEDS_PYTHON: at the cursor is an event that Python handles: a format
description, a rotation, a heartbeat (of the receive kernel only a damaged one), a statement that may define,
drop or empty a table and that Python has not read; of the receive kernel also an unknown table map or a
compressed transaction. END and SERVER_ERROR: at the cursor is an EOF or ERR packet. The receive kernel only:
DEFINED: the last event in the index is such a statement. INDEX_FULL and IDS_FULL: the index or the table of
ids has no room for the event at the cursor. BATCH_FULL: with the event at the cursor, the batch would
need too much memory in a decoder (`expanded_size`), or leave out more bytes than the index can say. AT_STOP:
the event at the cursor starts at STOP_POSITION or after it. LARGE_TRANSACTION: at the cursor is a compressed
transaction that no decoder expands. All others are damage.
"""

REASONS = {
    BAD_PACKET: "the packet is not part of a binlog stream",
    BAD_SIZE: "the event's size does not fit the bytes that carry it",
    BAD_QUERY: "the query event's lengths do not fit into the event",
    TOO_LARGE: "the event claims to be larger than any server writes",
    NO_FORMAT: "no format description came before the event",
    ENDS_EARLY: "the compressed transaction contains an event after its end",
    ENCRYPTED: "the rest of the file is encrypted: read it from its server instead",
}
