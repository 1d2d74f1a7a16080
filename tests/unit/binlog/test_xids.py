"""XIDs: an event and a statement about the same transaction give the same text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.binlog.xids import ended_xid, xid_text

PARTS = st.binary(max_size=64)
VERBS = ("XA COMMIT ", "xa rollback ", "XA  ROLLBACK\n")
OTHERS = ("XA START X'78',X'',1", "XA COMMIT 'x'", "XA ROLLBACK X'7',X'',1", "ROLLBACK", "XA COMMIT", "")


@given(
    PARTS, PARTS, st.integers(0, 2**31 - 1), st.sampled_from(["XA COMMIT ", "xa rollback ", "XA  ROLLBACK\n"])
)
def test_a_statement_names_what_an_event_named(gtrid: bytes, bqual: bytes, number: int, verb: str) -> None:
    xid = xid_text(gtrid, bqual, number)
    assert ended_xid(verb + xid) == xid
    assert ended_xid(verb + xid.replace(",", " , ").upper()) == xid


@given(PARTS, PARTS, PARTS, PARTS)
def test_parts_are_told_apart(a: bytes, b: bytes, c: bytes, d: bytes) -> None:
    assert (xid_text(a, b, 1) == xid_text(c, d, 1)) == ((a, b) == (c, d))


def test_a_large_number_may_be_negative() -> None:
    assert ended_xid("XA COMMIT X'78',X'',4294967295") == xid_text(b"x", b"", -1)


@pytest.mark.parametrize("statement", OTHERS)
def test_other_statements_end_none(statement: str) -> None:
    assert ended_xid(statement) is None
