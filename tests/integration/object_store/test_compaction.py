"""Compaction in a bucket: broken off at every request, and two machines at once, between any two requests."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from engine.cli import main
from engine.config.retention import Retention
from engine.errors import EngineError
from engine.output import compaction, file_moves, log_files
from engine.output.commit_log import CommitLog, OtherWriterError
from engine.output.compaction import compact
from engine.output.data_file_names import is_compacted
from engine.output.file_moves import MoveJournal
from engine.output.files import OutputError
from engine.output.reader import Changes
from engine.output.removal import remove_old_commits
from engine.output.storage import output_place, storage_of
from engine.output.storage.object_store import ObjectStore
from engine.output.verification import verify
from tests.servers import Server
from tests.support.engine_run import end_of_binlog, kill_all, wait_until
from tests.support.load import Load, create_table, replayed, selected
from tests.support.object_output import ObjectOutput
from tests.support.output import Output, insert
from tests.support.seeds import chosen_seed

pytestmark = pytest.mark.server

COMMITS = 13
"""In segments of three, of which four are complete, and compacted alone and by two."""
REQUESTS = range(0, 200, 1 if "BINLOG_ENGINE_OBJECT_STORE_KILLS" in os.environ else 29)
"""Those at which something happens: all of them take minutes."""
CHANGES = frozenset({"writing", "removing from"})


@pytest.fixture
def old(output: ObjectOutput, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ObjectOutput:
    """An output with many small files in its old commits."""
    monkeypatch.setattr(log_files, "COMMITS_PER_SEGMENT", 3)
    monkeypatch.setattr(compaction, "_SEGMENTS_TOGETHER", (1, 2))
    made = Output(tmp_path / "made")
    for name in ("shop.orders", "shop.items"):
        made.table(name, pa.schema([("id", pa.int32())]))
    for number in range(COMMITS):
        changes = {"shop.orders": [insert(id=number)]}
        if number % 2:
            changes["shop.items"] = [insert(id=-number), insert(id=number)]
        made.commit(changes)
        made.log.consolidate()
    fill(output, made.path)
    return output


def fill(output: ObjectOutput, made: Path) -> None:
    """Replace all objects by the files of a folder."""
    storage = storage_of(output.url)
    storage.remove(output.server.objects(output.url))
    for path in made.rglob("*"):
        if path.is_file():
            storage.create(str(path.relative_to(made)), path.read_bytes())


def rows(output: ObjectOutput, first_commit: int | None = None) -> list[pa.Table]:
    return [Changes(output.url).read("shop", table, first_commit) for table in ("orders", "items")]


def assert_compacted(output: ObjectOutput) -> None:
    """Every row is where the log says, and there is nothing else."""
    assert output.data_objects() == output.listed()
    assert verify(output.url).problems == []
    assert storage_of(output.url).names("_compaction") == ["progress.json"]


@contextmanager
def at_each_change(
    monkeypatch: pytest.MonkeyPatch, act: Callable[[Callable[[], object]], object]
) -> Iterator[None]:
    """`act` is given each request that changes something, and makes it."""
    ask = ObjectStore._ask

    def asked(store: ObjectStore, doing: str, request: Callable[[], object]) -> object:
        if doing in CHANGES:
            return act(lambda: ask(store, doing, request))
        return ask(store, doing, request)

    with monkeypatch.context() as patched:
        patched.setattr(ObjectStore, "_ask", asked)
        yield


def test_commits_keep_their_rows(old: ObjectOutput) -> None:
    before = rows(old)
    changes = Changes(old.url)
    batches = changes.batches("shop", "orders")
    begun = [next(batches) for _ in range(4)]
    done = compact(old.url, grace_seconds=3600)
    assert (done.removed, done.files_before > done.files_after > 0) == (0, True)
    assert rows(old) == before
    assert old.orphans() == set()
    assert compact(old.url, grace_seconds=0).removed == done.files_before
    assert_compacted(old)
    assert len(list(filter(is_compacted, old.listed()))) == 4
    assert rows(old) == before
    # A reader that began before goes on.
    assert pa.Table.from_batches([*begun, *batches]) == before[0]


def test_a_file_is_read_once_and_no_commit_by_itself(
    old: ObjectOutput, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests are what a store charges for."""
    read: list[str] = []
    content = ObjectStore._content

    def counted(store: ObjectStore, name: str) -> Any:
        read.append(name)
        return content(store, name)

    monkeypatch.setattr(ObjectStore, "_content", counted)
    files = old.listed()
    read.clear()
    compact(old.url, grace_seconds=3600)
    sealed = [f"_log/{number:020d}.json" for number in range(COMMITS // 3 * 3)]
    assert not set(read) & set(sealed)
    assert sorted(name for name in read if name in files) == sorted(files - old.listed())


def test_a_commit_whose_rows_were_moved_is_still_ones_own(old: ObjectOutput) -> None:
    """Its writer was suspended before it saw that the commit is there; what it uploaded must stay."""
    before = CommitLog(old.url).read(4)
    compact(old.url, grace_seconds=0)
    assert CommitLog(old.url).read(4) != before
    CommitLog(old.url).append(before)
    with pytest.raises(OtherWriterError):
        CommitLog(old.url).append(replace(before, epoch=2))


def test_the_command(old: ObjectOutput, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compact", old.url, "--grace", "0s"]) == 0
    assert "files became" in capsys.readouterr().out
    assert main(["vacuum", old.url, "--retain", "0s"]) == 0
    assert_compacted(old)


@pytest.mark.parametrize("carried_out", [True, False])
def test_a_compaction_that_is_killed_at_any_request_is_made_good(
    old: ObjectOutput, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, carried_out: bool
) -> None:
    expected = rows(old)

    class Killed(BaseException):
        pass

    for last in REQUESTS:
        left = iter(range(last))

        def killing(request: Callable[[], object], left: Iterator[int] = left) -> object:
            if next(left, None) is not None:
                return request()
            if carried_out:
                request()
            raise Killed

        with at_each_change(monkeypatch, killing):
            try:
                compact(old.url, grace_seconds=0)
            except Killed:
                pass
            else:
                assert last > 30
                return
        assert old.listed() <= old.data_objects()
        assert old.orphans() == set()
        assert rows(old) == expected
        compact(old.url, grace_seconds=0)
        assert_compacted(old)
        assert rows(old) == expected
        fill(old, tmp_path / "made")
    pytest.fail("it has more requests")


def compact_elsewhere(output: ObjectOutput) -> None:
    compact(output.url, grace_seconds=0)


def vacuum_elsewhere(output: ObjectOutput) -> None:
    remove_old_commits(CommitLog(output.url).out, Retention(seconds=0))


@pytest.mark.parametrize("carried_out", [True, False])
@pytest.mark.parametrize("elsewhere", [compact_elsewhere, vacuum_elsewhere])
def test_another_machine_takes_over_at_any_request(
    old: ObjectOutput,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    elsewhere: Callable[[ObjectOutput], None],
    carried_out: bool,
) -> None:
    """The first one is suspended for so long that it counts as failed, and then goes on."""
    monkeypatch.setattr(file_moves, "_ABANDONED_SECONDS", -1.0)
    expected = rows(old)
    for last in REQUESTS:
        left = iter(range(last))
        suspended = False

        def suspending(request: Callable[[], object], left: Iterator[int] = left) -> object:
            nonlocal suspended
            if suspended or next(left, None) is not None:
                return request()
            suspended = True
            if carried_out:
                request()
            with monkeypatch.context() as other_machine:
                other_machine.setenv("BINLOG_ENGINE_SPOOL", str(tmp_path / "elsewhere"))
                elsewhere(old)
                assert old.listed() <= old.data_objects()
            return None if carried_out else request()

        with at_each_change(monkeypatch, suspending), suppress(EngineError):
            compact(old.url, grace_seconds=0)
        if not suspended:
            assert last > 30
            return
        assert old.listed() <= old.data_objects()
        compact(old.url, grace_seconds=0)
        assert_compacted(old)
        oldest = CommitLog(old.url).oldest_version()
        assert oldest == (0 if elsewhere is compact_elsewhere else 9)
        assert rows(old) == expected if not oldest else rows(old, oldest)
        fill(old, tmp_path / "made")
    pytest.fail("it has more requests")


def test_of_two_machines_at_once_the_second_one_is_refused(
    old: ObjectOutput, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = rows(old)
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("BINLOG_ENGINE_SPOOL", str(tmp_path / "elsewhere"))
        MoveJournal(output_place(old.url)).begin(3, 5, number=7)
    objects = old.data_objects()
    for _ in range(2):
        with pytest.raises(OutputError, match=r"is being compacted by .* \(commits 3 to 5\): try again when"):
            compact(old.url, grace_seconds=3600)
    # Commits 0 to 2 are not concerned.
    assert objects < old.data_objects()
    assert old.orphans() == set()
    monkeypatch.setattr(file_moves, "_ABANDONED_SECONDS", -1.0)
    compact(old.url, grace_seconds=0)
    assert_compacted(old)
    assert rows(old) == expected


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_runs_that_compact_are_killed(mysql97: Server, output: ObjectOutput) -> None:
    moments = random.Random(chosen_seed(21))
    file, position = end_of_binlog(mysql97)
    create_table(mysql97, "packed")
    with Load(mysql97, "packed", pause=0.001) as writing:
        for _ in range(3):
            with output.follow(mysql97, start=f"{file}:{position}") as engine:
                wait_until(
                    lambda: storage_of(output.url).names("_compaction"), "journal", check=engine.must_run
                )
                time.sleep(moments.uniform(0, 1.0))
                kill_all(engine)
        writing.stop()
    output.drain(mysql97)
    output.assert_sound()
    compact(output.url, grace_seconds=0)
    assert_compacted(output)
    assert any(map(is_compacted, output.listed()))
    assert replayed(output.url, "packed") == selected(mysql97, "packed")
