"""The commit log: what is appended is read, also by readers in motion, and in segments."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from engine.output.commit_log import CommitLog
from engine.output.log_files import CommitLogError, MissingCommitError
from engine.output.log_segments import LogSegments
from tests.support.numbered_commits import SCHEMAS, check, commit, fill

pytestmark = pytest.mark.usefixtures("short_segments")


def test_an_output_that_is_not_there_is_empty(tmp_path: Path) -> None:
    log = CommitLog(tmp_path / "nothing")
    assert log.latest() is None
    assert log.latest_version() == -1
    assert list(log.range(0, -1)) == []
    assert log.schemas_at(-1) == {}
    with pytest.raises(CommitLogError, match="no commit 0"):
        log.read(0)


@pytest.mark.parametrize("last", [0, 3, 4, 5, 9, 23])
def test_what_was_appended_is_read(tmp_path: Path, last: int) -> None:
    fill(CommitLog(tmp_path), last)
    check(tmp_path, last)


def test_schemas_are_those_that_were_written(tmp_path: Path) -> None:
    fill(CommitLog(tmp_path), 9)
    assert CommitLog(tmp_path).schemas_at(9) == {("shop", "orders", n): SCHEMAS[n % 3] for n in (1, 2, 3)}


def test_segments_take_the_place_of_entries(tmp_path: Path) -> None:
    fill(CommitLog(tmp_path), 12)
    names = sorted(path.name for path in (tmp_path / "_log").iterdir())
    assert names == [
        f"{0:020d}-{4:020d}.jsonl",
        f"{5:020d}-{9:020d}.jsonl",
        *(f"{version:020d}.json" for version in (10, 11, 12)),
    ]


@pytest.mark.parametrize("version", [0, 2, 4])
def test_only_the_next_number_is_appended(tmp_path: Path, version: int) -> None:
    log = CommitLog(tmp_path)
    fill(log, 2)
    fresh = CommitLog(tmp_path)
    for writer in (log, fresh):
        with pytest.raises(CommitLogError, match="where 3 is next"):
            writer.append(commit(version))
    check(tmp_path, 2)


def test_a_reader_follows_the_writer(tmp_path: Path) -> None:
    writer, reader, late = CommitLog(tmp_path), CommitLog(tmp_path), CommitLog(tmp_path)
    assert late.latest_version() == -1
    for version in range(23):
        fill(writer, version)
        assert reader.latest_version() == version
        assert reader.read(version) == commit(version)
        if version == 2:
            assert late.latest_version() == 2
    assert late.latest_version() == 22


def test_a_reader_that_pauses_until_what_follows_is_removed_finds_the_end(tmp_path: Path) -> None:
    log, reader = CommitLog(tmp_path), CommitLog(tmp_path)
    fill(log, 2)
    assert reader.latest_version() == 2
    fill(log, 16)
    log.consolidate()
    for start in (0, 5):
        LogSegments(tmp_path).detach(start)
    assert reader.latest_version() == 16
    with pytest.raises(MissingCommitError, match="no commit 3"):
        list(reader.range(3, 16))


def test_the_summary_of_a_reader_does_not_need_commits_that_were_removed(tmp_path: Path) -> None:
    fill(CommitLog(tmp_path), 3)
    reader = CommitLog(tmp_path)
    reader.summary_at(3)
    fill(CommitLog(tmp_path), 9)
    segments = LogSegments(tmp_path)
    segments.forget(segments.detach(0))
    # It follows the known one within the length of a segment.
    assert reader.summary_at(7) == CommitLog(tmp_path).summary_at(7)
    assert reader.summary_at(7).totals["shop", "orders"].rows == 80
    with pytest.raises(MissingCommitError):
        reader.summary_at(3)


def test_a_reader_never_notices_consolidation(tmp_path: Path) -> None:
    """One thread appends and consolidates, another reads all that there is, over and over."""
    fill(CommitLog(tmp_path), 0)
    failures: list[BaseException] = []
    finished = threading.Event()

    def read() -> None:
        try:
            while not finished.is_set():
                log = CommitLog(tmp_path)
                last = log.latest_version()
                versions = [entry.version for entry in log.range(0, last)]
                assert versions == list(range(last + 1))
        except BaseException as error:
            failures.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    fill(CommitLog(tmp_path), 150)
    finished.set()
    reader.join()
    assert not failures


def test_everything_is_private(tmp_path: Path) -> None:
    fill(CommitLog(tmp_path / "out"), 6)
    for path in [tmp_path / "out", *(tmp_path / "out").rglob("*")]:
        assert path.stat().st_mode & 0o077 == 0
