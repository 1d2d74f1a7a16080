"""The commit that a GTID chooses, in the commit log alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engine.errors import EngineError
from engine.output.commit_log import CommitLog
from engine.spark.table_at import commit_with_gtid
from tests.support.numbered_commits import commit

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"


def log_with(out: Path, *gtid_sets: str | None) -> CommitLog:
    log = CommitLog(out)
    for number, gtid_set in enumerate(gtid_sets):
        each = commit(number)
        log.append(replace(each, position=replace(each.position, gtid_set=gtid_set)))
    return log


def test_the_first_commit_that_has_the_transactions(tmp_path: Path) -> None:
    log = log_with(tmp_path, None, f"{UUID}:1-3", f"{UUID}:1-7")
    for number, expected in ((1, 1), (3, 1), (4, 2), (7, 2)):
        assert commit_with_gtid(log, f"{UUID}:{number}") == expected
    with pytest.raises(EngineError, match=f"does not contain the GTID `{UUID}:8` up to commit 2"):
        commit_with_gtid(log, f"{UUID}:8")


@pytest.mark.parametrize("gtid_set", [None, f"{UUID}:1-3"])
def test_what_is_no_gtid(tmp_path: Path, gtid_set: str | None) -> None:
    log = log_with(tmp_path, gtid_set)
    with pytest.raises(EngineError, match=r"^`abc` is not a MySQL GTID"):
        commit_with_gtid(log, "abc")
    with pytest.raises(EngineError, match=r"^`gtid` is empty"):
        commit_with_gtid(log, " ")


def test_an_output_without_gtids(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="there are no commits in"):
        commit_with_gtid(CommitLog(tmp_path), f"{UUID}:1")
    with pytest.raises(
        EngineError, match="have no GTIDs up to commit 0: choose with `commit` or `timestamp`"
    ):
        commit_with_gtid(log_with(tmp_path, None), f"{UUID}:1")
