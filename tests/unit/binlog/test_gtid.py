"""GTID sets against a plain model: a set of (source, number) pairs, and the last of each domain."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.binlog.gtid_set import GtidError, MariadbGtidSet, MysqlGtidSet, parse_gtid_set

UUIDS = ["3e11fa47-71ca-11e1-9e33-c80aa9429562", "00000000-0000-0000-0000-000000000001"]
SOURCES = [*UUIDS, f"{UUIDS[0]}:tag_a", f"{UUIDS[0]}:b", f"{UUIDS[1]}:b"]

ranges = st.tuples(st.sampled_from(SOURCES), st.integers(1, 60), st.integers(0, 9)).map(
    lambda r: (r[0], r[1], r[1] + r[2])
)


@given(st.lists(ranges, max_size=40))
def test_a_mysql_set_holds_exactly_what_was_added(added: list[tuple[str, int, int]]) -> None:
    gtid_set = MysqlGtidSet()
    for source, first, last in added:
        gtid_set.add(source, first, last)
    model = {(source, number) for source, first, last in added for number in range(first, last + 1)}
    assert {(s, n) for s in SOURCES for n in range(1, 75) if gtid_set.contains(s, n)} == model
    for _, intervals in gtid_set.intervals():
        assert all(last + 1 < first for (_, last), (first, _) in itertools.pairwise(intervals))


@given(st.lists(ranges, max_size=40))
def test_a_mysql_set_survives_its_text(added: list[tuple[str, int, int]]) -> None:
    gtid_set = MysqlGtidSet()
    for source, first, last in added:
        gtid_set.add(source, first, last)
    assert MysqlGtidSet.parse(str(gtid_set)) == gtid_set
    assert str(MysqlGtidSet.parse(str(gtid_set))) == str(gtid_set)


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("", ""),
        (f"{UUIDS[0].upper()}:1-3 : 5", f"{UUIDS[0]}:1-3:5"),
        (f"{UUIDS[0]}:1-3:4-9:12", f"{UUIDS[0]}:1-9:12"),
        (f"{UUIDS[0]}:7,\n{UUIDS[1]}:1", f"{UUIDS[1]}:1,{UUIDS[0]}:7"),
        (f"{UUIDS[0]}:1-2:Tag_A:3:b:1:b:2", f"{UUIDS[0]}:1-2:b:1-2:tag_a:3"),
        (f"{UUIDS[0]}:b:1,{UUIDS[0]}:5", f"{UUIDS[0]}:5:b:1"),
    ],
)
def test_mysql_notation(text: str, normal: str) -> None:
    assert str(parse_gtid_set(text, "mysql")) == normal


@pytest.mark.parametrize(
    "text", ["abc", UUIDS[0], f"{UUIDS[0]}:0", f"{UUIDS[0]}:5-3", f"{UUIDS[0]}:1-", "0-1-100"]
)
def test_broken_mysql_text_is_refused(text: str) -> None:
    with pytest.raises(GtidError):
        parse_gtid_set(text, "mysql")


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3), st.integers(0, 2**64 - 1)), max_size=20))
def test_a_mariadb_position_is_the_last_of_each_domain(added: list[tuple[int, ...]]) -> None:
    gtid_set = MariadbGtidSet()
    for domain, server, number in added:
        gtid_set.add(f"{domain}-{server}", number, number)
    last = {domain: f"{domain}-{server}-{number}" for domain, server, number in added}
    assert str(gtid_set) == ",".join(last[domain] for domain in sorted(last))
    assert MariadbGtidSet.parse(str(gtid_set)) == gtid_set


@pytest.mark.parametrize("text", ["1", "0-1", "0-1-", "a-1-2", "0-1-2-3", "4294967296-1-1", f"{UUIDS[0]}:1"])
def test_broken_mariadb_text_is_refused(text: str) -> None:
    with pytest.raises(GtidError):
        parse_gtid_set(text, "mariadb")


@given(st.text(max_size=60), st.sampled_from(["mysql", "mariadb"]))
def test_any_text_is_a_set_or_an_error(text: str, flavor: str) -> None:
    try:
        gtid_set = parse_gtid_set(text, flavor)
    except GtidError:
        return
    assert str(parse_gtid_set(str(gtid_set), flavor)) == str(gtid_set)
