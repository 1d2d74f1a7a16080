"""Old commits are removed from an output with their files, and the rest reads as before."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from engine.cli import main
from engine.commands.status import status
from engine.commands.vacuum import vacuum
from engine.config.retention import Retention
from engine.errors import EngineError
from engine.output import log_files
from engine.output.commit import DataFile
from engine.output.commit_log import CommitLog
from engine.output.consumers import consumers, note_progress
from engine.output.log_files import MissingCommitError
from engine.output.reader import Changes
from engine.spark.options import Options
from engine.spark.selection import Selection
from engine.spark.stream import BinlogStreamReader
from tests.support.output import FIRST_COMMIT_US, SECOND_US, Output, insert

LAST = 17
TABLE = "shop.orders"
NOW = Retention(seconds=0)


@pytest.fixture
def output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Output:
    """Commits 0 to 17, one row and one second each, in segments of five; another schema from 3 on."""
    monkeypatch.setattr(log_files, "COMMITS_PER_SEGMENT", 5)
    output = Output(tmp_path / "changes")
    output.table(TABLE, pa.schema([("id", pa.int32())]))
    for number in range(LAST + 1):
        if number == 3:
            output.table(TABLE, pa.schema([("id", pa.int32()), ("name", pa.string())]))
        output.commit({TABLE: [insert(id=number)]})
        output.log.consolidate()
    return output


def ids(output: Output) -> list[int]:
    ids: list[int] = Changes(output.path).read("shop", "orders")["id"].to_pylist()
    return ids


def files(output: Output) -> set[str]:
    return {path.name for path in (output.path / TABLE).iterdir()}


def logged_files(output: Output) -> set[str]:
    log = CommitLog(output.path)
    commits = log.range(log.oldest_version(), log.latest_version())
    return {Path(file.path).name for commit in commits for file in commit.files}


@pytest.mark.parametrize(("cut", "oldest"), [(0, 0), (4, 0), (5, 5), (12, 10), (LAST + 1, 10)])
def test_whole_segments_go_by_age(
    output: Output, cut: int, oldest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Older than commit `cut`; the last segment stays, for what came before it is known from there alone."""
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)
    older_than = now - (FIRST_COMMIT_US + cut * SECOND_US - SECOND_US // 2) / 1_000_000
    foreseen = vacuum(output.path, Retention(seconds=older_than), dry_run=True)
    assert ids(output) == list(range(LAST + 1))
    assert vacuum(output.path, Retention(seconds=older_than)) == foreseen
    assert (foreseen.commits, foreseen.files, foreseen.oldest) == (oldest, oldest, oldest)
    assert ids(output) == list(range(oldest, LAST + 1))
    assert files(output) == logged_files(output)
    assert foreseen.bytes == 0 if oldest == 0 else foreseen.bytes > 0


def test_the_engine_goes_on(output: Output) -> None:
    before = status(output.path)
    vacuum(output.path, NOW)
    for number in range(LAST + 1, LAST + 8):
        assert output.commit({TABLE: [insert(id=number)]}) == number
        output.log.consolidate()
    assert ids(output) == list(range(10, LAST + 8))
    seen = status(output.path)
    assert (seen.oldest_commit, seen.rows) == (10, LAST + 8 - 10)
    assert seen.bytes == sum(path.stat().st_size for path in output.path.rglob("*.arrow"))
    assert "oldest commit  10" in seen.text()
    assert before.oldest_commit == 0
    assert CommitLog(output.path).summary_at(9).totals["shop", "orders"].rows == 10


def test_queries_begin_with_the_oldest_commit(output: Output) -> None:
    vacuum(output.path, NOW)

    def selection(**given: str) -> Selection:
        return Selection(Options.parse({"path": str(output.path), **given}))

    first = selection()
    assert (first.first(), first.last()) == (10, LAST)
    assert first.schema(10, LAST).names[:2] == ["id", "name"]
    assert selection(startingTimestamp="2023-11-14T22:13:32Z").first() == 12
    assert selection(startingTimestamp="2020-01-01T00:00:00Z").first() == 10
    with pytest.raises(EngineError, match="before the first commit"):
        selection(endingTimestamp="2023-11-14T22:13:25Z").last()
    with pytest.raises(EngineError, match=r"no commit 4 in .* was removed"):
        list(selection().files(4, LAST))
    with pytest.raises(MissingCommitError):
        Changes(output.path).read("shop", "orders", 4)


@pytest.mark.parametrize("steps", range(1, 20))
def test_a_vacuum_that_was_broken_off_is_finished(
    output: Output, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At any step what the log lists is there, and the next vacuum removes the rest."""
    left = iter(range(steps))

    class Crash(BaseException):
        pass

    def stepping(real: Callable[..., object]) -> Callable[..., object]:
        def step(*arguments: object) -> object:
            if next(left, None) is None:
                raise Crash
            return real(*arguments)

        return step

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", stepping(Path.unlink))
        patched.setattr(Path, "rename", stepping(Path.rename))
        patched.setattr(os, "fsync", stepping(os.fsync))
        with pytest.raises(Crash):
            vacuum(output.path, NOW)
    assert logged_files(output) <= files(output)
    oldest = CommitLog(output.path).oldest_version()
    assert ids(output) == list(range(oldest, LAST + 1))
    assert vacuum(output.path, NOW).oldest == 10
    assert files(output) == logged_files(output)
    assert not list(output.path.glob("_log/*.removed"))


def test_the_command(output: Output, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["vacuum", str(output.path), "--retain", "1d", "--dry-run"]) == 0
    assert capsys.readouterr().out.startswith("would remove 10 commits with 10 files of ")
    assert main(["vacuum", str(output.path), "--retain", "100000d"]) == 0
    assert capsys.readouterr().out.startswith("removed 0 commits with 0 files of 0 bytes; the oldest")
    assert main(["vacuum", str(output.path), "--retain", "soon"]) == 1
    assert "soon is neither an age nor a size" in capsys.readouterr().err
    assert main(["vacuum", str(output.path / "nothing"), "--retain", "1d"]) == 1
    assert "no output of binlog-engine" in capsys.readouterr().err


def test_as_much_goes_as_is_above_a_size(output: Output) -> None:
    sizes = [(output.path / file.path).stat().st_size for file in files_of_commits(output)]
    for most, oldest in (
        (sum(sizes), 0),
        (sum(sizes) - 1, 5),
        (sum(sizes[5:]), 5),
        (sum(sizes[5:]) - 1, 10),
        (0, 10),
    ):
        foreseen = vacuum(output.path, Retention(bytes=most), dry_run=True)
        assert (foreseen.oldest, foreseen.bytes) == (oldest, sum(sizes[:oldest]))
    assert vacuum(output.path, Retention(bytes=sum(sizes[5:]))).oldest == 5
    assert ids(output) == list(range(5, LAST + 1))


def files_of_commits(output: Output) -> list[DataFile]:
    return [file for commit in CommitLog(output.path).range(0, LAST) for file in commit.files]


def test_what_a_consumer_has_not_read_stays(output: Output, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["vacuum", str(output.path), "--retain", "0s"]
    note_progress(output.path, "nightly", 8)
    note_progress(output.path, "orders-stream", -1)
    assert main(command) == 0
    assert (
        "more is kept for the consumer orders-stream, which has read up to commit -1"
        in capsys.readouterr().out
    )
    assert main(["consumers", str(output.path)]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert [line.partition(" behind")[0] for line in shown] == [
        "nightly: commit 8, 9 commits",
        "orders-stream: commit -1, 18 commits",
    ]
    assert main(["consumers", str(output.path), "--remove", "orders-stream"]) == 0
    assert main(command) == 0
    assert "removed 5 commits with 5 files" in capsys.readouterr().out
    assert ids(output) == list(range(5, LAST + 1))
    note_progress(output.path, "nightly", 9)
    assert main(command) == 0
    assert "removed 5 commits" in capsys.readouterr().out
    assert main(["consumers", str(output.path), "--remove", "nobody"]) == 1
    assert "has no consumer `nobody`: it has nightly" in capsys.readouterr().err


def test_a_stream_says_what_it_has_read(output: Output) -> None:
    """From its first look at the log on, and then as far as Spark's log has micro-batches as done."""
    query = pa.schema([("id", pa.int64())])
    reader = BinlogStreamReader(
        Options.parse({"path": str(output.path), "consumer": "a", "startingCommit": "7"}), query
    )
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadAllAvailable())
    assert [(each.name, each.commit) for each in consumers(output.path)] == [("a", 6)]
    reader.partitions(start, end)
    assert vacuum(output.path, NOW).oldest == 5
    reader.commit(end)
    assert [(each.name, each.commit) for each in consumers(output.path)] == [("a", LAST)]
    assert vacuum(output.path, NOW).oldest == 10


@pytest.mark.parametrize("name", ["", "a b", "../a", "_a", "x" * 101])
def test_names_of_consumers(output: Output, name: str) -> None:
    with pytest.raises(EngineError, match="a name of letters, digits"):
        Options.parse({"path": str(output.path), "consumer": name})


def test_a_damaged_consumer_is_not_passed_over(output: Output) -> None:
    note_progress(output.path, "nightly", 8)
    (output.path / "_consumers" / "nightly.json").write_text("{}")
    with pytest.raises(EngineError, match=r"nightly\.json is damaged: .*remove the file"):
        vacuum(output.path, NOW)
    assert ids(output) == list(range(LAST + 1))
