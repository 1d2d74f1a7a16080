"""GTID sets in MySQL's binary form: what we write is what we read, and what servers write."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.binlog.gtid_encoding import decode_gtid_set, encode_gtid_set
from engine.binlog.gtid_set import MysqlGtidSet
from engine.errors import EventError

UUIDS = ["3e11fa47-71ca-11e1-9e33-c80aa9429562", "00000000-0000-0000-0000-000000000001"]
sources = st.builds(lambda uuid, tag: uuid + tag, st.sampled_from(UUIDS), st.sampled_from(["", ":a", ":z_9"]))
ranges = st.tuples(st.integers(1, 2**63 - 1), st.integers(0, 100))


@given(st.lists(st.tuples(sources, ranges), max_size=12))
def test_what_is_encoded_can_be_decoded(parts: list[tuple[str, tuple[int, int]]]) -> None:
    gtid_set = MysqlGtidSet()
    for source, (first, more) in parts:
        gtid_set.add(source, first, min(first + more, 2**63 - 1))
    assert decode_gtid_set(encode_gtid_set(gtid_set)) == gtid_set


def test_the_form_that_all_servers_read() -> None:
    encoded = encode_gtid_set(MysqlGtidSet.parse(f"{UUIDS[0]}:1-5:8"))
    assert encoded.hex() == (
        "0100000000000000" "3e11fa4771ca11e19e33c80aa9429562" "0200000000000000"
        "0100000000000000" "0600000000000000" "0800000000000000" "0900000000000000"
    )  # fmt: skip


@given(st.binary(max_size=80))
def test_wrong_lengths_are_refused(data: bytes) -> None:
    try:
        decode_gtid_set(data)
    except EventError:
        return
    assert len(data) >= 8


@pytest.mark.parametrize("cut", [1, 7, 8, 20, 32, 47])
def test_a_set_that_is_cut_off_is_refused(cut: int) -> None:
    with pytest.raises(EventError):
        decode_gtid_set(encode_gtid_set(MysqlGtidSet.parse(f"{UUIDS[0]}:1-5"))[:cut])
