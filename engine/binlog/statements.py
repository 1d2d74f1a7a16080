"""A kernel that classifies the statements of QUERY events by their effect on transactions.

It distinguishes statements that begin or end a transaction, those that may define, drop or empty a table,
and those that change rows. The network process uses this to cut batches at transaction boundaries, the
decoders to keep BEGIN and COMMIT out of the events feed.
"""

from __future__ import annotations

import numpy as np

from engine.binlog.event_types import HEADER_LENGTH
from engine.kernels.kernel import Bytes, kernel, read_u16

(
    OTHER,
    BEGIN,
    COMMIT,
    ROLLBACK,
    ROLLBACK_TO,
    SAVEPOINT,
    XA_START,
    XA_END,
    XA_COMMIT,
    XA_ROLLBACK,
    DEFINITION,
    ATOMIC_CREATE,
    MANIPULATION,
) = range(13)
"""Kinds of statement. DEFINITION: may change a table's definition, or remove its rows without row events, as
may any statement after MariaDB's SET STATEMENT … FOR; so does every other SET count, since any space and
comments may follow the word.
ATOMIC_CREATE: MySQL 8's CREATE TABLE … SELECT, whose rows follow in the same transaction. MANIPULATION: may
change rows, as a session without row events logs it."""


def _text(value: str) -> Bytes:
    return np.frombuffer(value.encode(), np.uint8).copy()


_BEGIN = _text("BEGIN")
_COMMIT = _text("COMMIT")
_ROLLBACK = _text("ROLLBACK")
_ROLLBACK_TO = _text("ROLLBACK TO")
_SAVEPOINT = _text("SAVEPOINT")
_XA_START = _text("XA START")
_XA_BEGIN = _text("XA BEGIN")
_XA_END = _text("XA END")
_XA_COMMIT = _text("XA COMMIT")
_XA_ROLLBACK = _text("XA ROLLBACK")
_START_TRANSACTION = _text("START TRANSACTION")
_ALTER = _text("ALTER")
_ANALYZE = _text("ANALYZE")
_CREATE = _text("CREATE")
_CREATE_TABLE = _text("CREATE TABLE")
_DELETE = _text("DELETE")
_DROP = _text("DROP")
_INSERT = _text("INSERT")
_LOAD = _text("LOAD")
_RENAME = _text("RENAME")
_REPLACE = _text("REPLACE")
_SET = _text("SET")
_TRUNCATE = _text("TRUNCATE")
_UPDATE = _text("UPDATE")
_WITH = _text("WITH")

_QUERY_POST_HEADER = 13
_QUERY_POST_HEADER_OLD = 11


@kernel
def _matches(data: Bytes, at: int, end: int, word: Bytes) -> bool:
    """Whether data[at:end] starts with the upper-case `word`, in any case."""
    if end - at < len(word):
        return False
    for i in range(len(word)):
        byte = data[at + i]
        if 97 <= byte <= 122:
            byte -= 32
        if byte != word[i]:
            return False
    return True


@kernel
def _in_line_comment(data: Bytes, text: int, at: int) -> bool:
    """Whether data[at], in the statement that begins at `text`, is in a comment that ends with its line.

    Quoted texts and C comments may contain what begins such a comment: "#", or "--" and white space. The
    statement must have two more bytes from `at` on.
    """
    closing = 0  # the byte that ends the quoted text or comment at `i`; 0 outside of them
    i = text
    while i < at:
        byte = data[i]
        if closing == 10:
            if byte == 10:
                closing = 0
        elif closing == 42:
            if byte == 42 and data[i + 1] == 47:
                closing = 0
                i += 1
        elif closing != 0:
            if byte == 92 and closing != 96:
                i += 1
            elif byte == closing:
                closing = 0
        elif byte == 34 or byte == 39 or byte == 96:
            closing = byte
        elif byte == 35 or (byte == 45 and data[i + 1] == 45 and data[i + 2] <= 32):
            closing = 10
        elif byte == 47 and data[i + 1] == 42:
            closing = 42
            i += 1
        i += 1
    return closing == 10


@kernel
def statement_start(data: Bytes, event: int, end: int, post_header_length: int) -> int:
    """The offset of a QUERY event's statement; -1 if its lengths do not fit into the event.

    `event` is the offset of its header, `end` that of its checksum (or its end). Before binlog version 4
    there are neither status variables nor their length (post header of 11 bytes).
    """
    body = event + HEADER_LENGTH
    if post_header_length < _QUERY_POST_HEADER_OLD or body + post_header_length > end:
        return -1
    status_length = 0
    if post_header_length >= _QUERY_POST_HEADER:
        status_length = read_u16(data, body + 11)
    text = body + post_header_length + status_length + data[body + 8] + 1
    return text if text <= end else -1


@kernel
def statement_kind(data: Bytes, text: int, end: int) -> int:
    """The kind of the statement data[text:end]."""
    size = end - text
    if size == 5 and _matches(data, text, end, _BEGIN):
        return BEGIN
    if size == 6 and _matches(data, text, end, _COMMIT):
        return COMMIT
    if size == 8 and _matches(data, text, end, _ROLLBACK):
        return ROLLBACK
    if _matches(data, text, end, _ROLLBACK_TO):
        return ROLLBACK_TO
    if _matches(data, text, end, _SAVEPOINT):
        return SAVEPOINT
    if size == 0:
        return OTHER
    first = data[text] & 0xDF
    if first == 88:  # X
        if _matches(data, text, end, _XA_START) or _matches(data, text, end, _XA_BEGIN):
            return XA_START
        if _matches(data, text, end, _XA_END):
            return XA_END
        if _matches(data, text, end, _XA_COMMIT):
            return XA_COMMIT
        return XA_ROLLBACK if _matches(data, text, end, _XA_ROLLBACK) else OTHER
    if _matches(data, text, end, _CREATE):
        # Procedures and events may end in the same way.
        tail = end - len(_START_TRANSACTION)
        if (
            tail > text
            and _matches(data, text, end, _CREATE_TABLE)
            and _matches(data, tail, end, _START_TRANSACTION)
            and not _in_line_comment(data, text, tail)
        ):
            return ATOMIC_CREATE
        return DEFINITION
    if (
        _matches(data, text, end, _ALTER)
        or _matches(data, text, end, _DROP)
        or _matches(data, text, end, _RENAME)
        or _matches(data, text, end, _TRUNCATE)
        or _matches(data, text, end, _SET)
    ):
        return DEFINITION
    # A statement of any kind may follow a comment or white space.
    if data[text] <= 35 or data[text] == 45 or data[text] == 47:
        return DEFINITION
    if (
        _matches(data, text, end, _INSERT)
        or _matches(data, text, end, _UPDATE)
        or _matches(data, text, end, _DELETE)
        or _matches(data, text, end, _REPLACE)
        or _matches(data, text, end, _LOAD)
        or _matches(data, text, end, _WITH)
        or _matches(data, text, end, _ANALYZE)
    ):
        return MANIPULATION
    return OTHER
