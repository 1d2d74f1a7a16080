"""Damaged entries and segments of the commit log: an error that names them, never a wrong commit."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.output.commit_log import CommitLog
from engine.output.log_files import CommitLogError
from tests.support.numbered_commits import commit, entry_path, fill

pytestmark = pytest.mark.usefixtures("short_segments")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (b'"format":1', b'"format":2', "format is 2"),
        (b'"version":1', b'"version":7', "holds commit 7"),
        (b'"rows":10', b'"rows":"10"', r"Expected `int`, got `str` - at `\$.files\[0\].rows`"),
        (b'"rows":10,', b"", r"missing required field `rows` - at `\$.files\[0\]`"),
        (b"shop.orders/0", b"../../etc/0", "not a data file of shop.orders"),
        (b"-0.arrow", b"-0.arrow/../../x", "not a data file of shop.orders"),
        (b'"files":[', b'"files":{', "JSON is malformed"),
        (b'"position":{', b'"position":{"file":null,"x":{', "Input data was truncated"),
        (b'"gtid_set":null', b'"gtid_set":5', r"at `\$.position.gtid_set`"),
        (b'"zero_dates":1', b'"zero_dates":null', r"at `\$.counters\[...\]`"),
        (b'"last_seq"', b'"lost_seq"', "missing"),
    ],
)
def test_a_damaged_entry_is_named(tmp_path: Path, old: bytes, new: bytes, reason: str) -> None:
    fill(CommitLog(tmp_path), 1)
    path = entry_path(tmp_path, 1)
    content = path.read_bytes()
    assert old in content
    path.write_bytes(content.replace(old, new))
    with pytest.raises(CommitLogError, match=reason) as error:
        CommitLog(tmp_path).read(1)
    assert str(path) in str(error.value)
    assert CommitLog(tmp_path).read(0) == commit(0)


@given(st.data())
def test_any_damage_is_an_error_or_harmless(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    out = tmp_path_factory.mktemp("log")
    fill(CommitLog(out), 0)
    path = entry_path(out, 0)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    try:
        CommitLog(out).latest()
        CommitLog(out).schemas_at(0)
    except CommitLogError as error:
        assert str(out) in str(error)


def test_a_truncated_segment_is_named(tmp_path: Path) -> None:
    fill(CommitLog(tmp_path), 4)
    (segment,) = (tmp_path / "_log").glob("*.jsonl")
    segment.write_bytes(segment.read_bytes()[:-200])
    with pytest.raises(CommitLogError, match=segment.name):
        list(CommitLog(tmp_path).range(0, 4))
    segment.write_bytes(b"{}\n")
    with pytest.raises(CommitLogError, match=segment.name):
        CommitLog(tmp_path).read(2)
