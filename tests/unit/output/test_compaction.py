"""Compaction: every commit keeps its rows, for new readers and for those that have planned already."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes

from engine.cli import main
from engine.config.retention import Retention
from engine.output import compaction, log_files
from engine.output.commit_log import CommitLog
from engine.output.compaction import compact
from engine.output.compaction_progress import has_work
from engine.output.data_file_names import is_compacted, pack_path
from engine.output.data_files import MissingFileError
from engine.output.file_moves import MoveJournal
from engine.output.files import OutputError
from engine.output.lock import maintenance_lock
from engine.output.reader import Changes
from engine.output.removal import remove_old_commits
from engine.output.storage import local_folder
from engine.output.verification import verify
from engine.output.working_folder import MAINTENANCE_LOCK_FILE
from engine.spark.options import Options
from engine.spark.selection import Selection
from engine.spark.stream import BinlogStreamReader
from engine.spark.tasks import ReadTask, plan_tasks, read_task
from tests.support.data_files import commits, data_files, listed_files
from tests.support.output import EVENTS, Change, Output, delete, insert, update

COMMITS = 33
SEALED = 30
LARGE_COMMIT = 12
"""Its rows of `shop.orders` are more than `LARGE_BYTES`."""
ALONE = 18
"""The only commit among its ten with rows of `shop.items` in their second schema."""
LARGE_BYTES = 20_000
QUERY = pa.schema([("id", pa.int64()), ("_seq", pa.int64()), ("_table", pa.string())])


def event(number: int) -> Change:
    return Change("", {"type": "QUERY_EVENT", "statement": f"CREATE USER u{number}", "data": "{}"})


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("compaction") / "changes")


@pytest.fixture(scope="module")
def made_packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("compaction") / "packed", packed=True)


def make(path: Path, *, packed: bool = False) -> Path:
    """Segments of five commits; tables that change their columns, skip commits or have large ones; events."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(log_files, "COMMITS_PER_SEGMENT", 5)
        patched.setattr(os, "fsync", lambda _: None)
        output = Output(path, packed=packed)
        output.table("shop.orders", pa.schema([("id", pa.int32()), ("name", pa.string())]))
        output.table("shop.items", pa.schema([("id", pa.int64())]))
        for number in range(COMMITS):
            if number == 17:
                output.table("shop.items", pa.schema([("id", pa.int64()), ("price", pa.decimal128(10, 2))]))
            orders = 3000 if number == LARGE_COMMIT else 3
            changes = {
                "shop.orders": [insert(id=number * 10_000 + row, name=f"name {row}") for row in range(orders)]
            }
            if number % 3 == 0:
                changes["shop.items"] = [*update({"id": number}, {"id": -number}), delete(id=-number)]
            if number % 4 == 0:
                changes[EVENTS] = [event(number)]
            output.commit(changes, batch_rows=1000)
            output.log.consolidate()
    return path


@pytest.fixture
def out(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(log_files, "COMMITS_PER_SEGMENT", 5)
    monkeypatch.setattr(compaction, "_SEGMENTS_TOGETHER", (1, 2))
    monkeypatch.setattr(compaction, "LARGE_BYTES", LARGE_BYTES)
    monkeypatch.setattr(os, "fsync", lambda _: None)
    return Path(shutil.copytree(made, tmp_path / "changes"))


@pytest.fixture
def packed(out: Path, made_packed: Path, tmp_path: Path) -> Path:
    """The same rows as in `out`, with a pack for each commit."""
    return Path(shutil.copytree(made_packed, tmp_path / "packed"))


def by_commit(out: Path) -> list[pa.Table]:
    """The rows of each commit and table."""
    changes = Changes(out)
    return [
        changes.read(entry.database, entry.table, commit.version, commit.version)
        for commit in commits(out)
        for entry in commit.files
    ]


def test_commits_keep_their_rows(out: Path) -> None:
    before, rows = commits(out), by_commit(out)
    done = compact(out, grace_seconds=0)
    after = commits(out)
    assert by_commit(out) == rows
    assert [replace(commit, files=()) for commit in after] == [replace(commit, files=()) for commit in before]
    for old, new in zip(before, after, strict=True):
        assert len(old.files) == len(new.files)
        for entry, moved in zip(old.files, new.files, strict=True):
            assert replace(moved, path=entry.path, checksum=None) == entry
    kept = {int(Path(path).name[:20]) for path in listed_files(out) if not is_compacted(path)}
    assert kept == {LARGE_COMMIT, ALONE, *range(SEALED, COMMITS)}
    assert data_files(out) == listed_files(out)
    assert done.removed == done.files_before > done.files_after > 0
    assert not verify(out).problems
    assert not compact(out, grace_seconds=0)


def test_packs_become_files_of_tables(out: Path, packed: Path) -> None:
    rows = by_commit(out)
    assert by_commit(packed) == rows
    assert data_files(packed) == {pack_path(number, 0, 0) for number in range(COMMITS)}
    options = Options.parse({"path": str(packed), "tables": "shop.*"})
    planned = plan_tasks(packed, Selection(options).readable_files(3, COMMITS - 1, QUERY), 7)
    expected = tasks_read(planned)
    done = compact(packed, grace_seconds=0)
    assert by_commit(packed) == rows
    assert tasks_read(planned) == expected
    assert data_files(packed) == listed_files(packed)
    kept = {path for path in listed_files(packed) if not is_compacted(path)}
    assert kept == {pack_path(number, 0, 0) for number in range(SEALED, COMMITS)}
    # Those of the first level became fewer at the second.
    assert done.removed == done.files_before > SEALED
    assert not verify(packed).problems
    assert not compact(packed, grace_seconds=0)


def test_vacuum_removes_packs(packed: Path) -> None:
    size = sum((packed / path).stat().st_size for path in data_files(packed))
    assert main(["vacuum", str(packed), "--retain", f"{size - 1}B"]) == 0
    assert CommitLog(packed).oldest_version() == 5
    assert data_files(packed) == {pack_path(number, 0, 0) for number in range(5, COMMITS)}
    assert not verify(packed).problems


def test_files_grow_from_level_to_level(out: Path) -> None:
    """Of the items there is one file for two segments, but a schema has a file of its own."""
    compact(out, grace_seconds=0)
    items = sorted(path for path in listed_files(out) if path.startswith("shop.items"))
    spans = [tuple(map(int, path.rpartition("/")[2].split("-")[:2])) for path in items if is_compacted(path)]
    assert spans == [(0, 9), (12, 15), (21, 27)]


def test_a_file_ends_when_it_is_large(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "LARGE_BYTES", 9_000)
    rows = by_commit(out)
    compact(out, grace_seconds=0)
    assert by_commit(out) == rows
    entries = [e for c in commits(out)[:10] for e in c.files if e.table == "orders" and is_compacted(e.path)]
    assert len({entry.path for entry in entries}) == 2


def tasks_read(tasks: list[ReadTask]) -> list[tuple[str, int, int]]:
    rows = [row for task in tasks for batch in read_task(task, QUERY) for row in batch.to_pylist()]
    return [(row["_table"], row["_seq"], row["id"]) for row in rows]


@pytest.mark.parametrize("min_partitions", [1, 7, 1000])
def test_tasks_that_were_planned_before_find_their_rows(out: Path, min_partitions: int) -> None:
    options = Options.parse({"path": str(out), "tables": "shop.*"})
    files = Selection(options).readable_files(3, COMMITS - 1, QUERY)
    tasks = plan_tasks(out, files, min_partitions)
    expected = tasks_read(tasks)
    compact(out, grace_seconds=0)
    assert tasks_read(tasks) == expected
    later = Selection(options).readable_files(3, COMMITS - 1, QUERY)
    assert sorted(tasks_read(plan_tasks(out, later, min_partitions))) == sorted(expected)
    # Planned by the old entries, whose files are cut between their record batches.
    assert sorted(tasks_read(plan_tasks(out, files, min_partitions))) == sorted(expected)


def test_a_reader_goes_on(out: Path) -> None:
    expected = Changes(out).read("shop", "orders")
    changes = Changes(out)
    batches = changes.batches("shop", "orders")
    begun = [next(batches) for _ in range(7)]
    compact(out, grace_seconds=0)
    assert pa.Table.from_batches([*begun, *batches]) == expected


@pytest.mark.parametrize("limit", [ReadAllAvailable(), ReadMaxBytes(9_000)])
def test_a_stream_has_the_same_micro_batches(out: Path, limit: ReadAllAvailable | ReadMaxBytes) -> None:
    given = {"path": str(out), "tables": "shop.*"}
    if isinstance(limit, ReadMaxBytes):
        given["maxBytesPerTrigger"] = "9000"

    def micro_batches() -> Iterator[tuple[int, list[tuple[str, int, int]]]]:
        reader = BinlogStreamReader(Options.parse(given), QUERY)
        offset = reader.initialOffset()
        while (end := reader.latestOffset(offset, limit)) != offset:
            yield end["commit"], sorted(tasks_read(reader.partitions(offset, end)))
            offset = end

    expected = list(micro_batches())
    compact(out, grace_seconds=0)
    assert list(micro_batches()) == expected
    assert sum(len(rows) for _, rows in expected) > COMMITS


def test_rows_that_were_removed_are_missed_whole(out: Path) -> None:
    """Not in part: the rows that are left of a plan do not stand for all of them."""
    options = Options.parse({"path": str(out), "tables": "shop.orders", "minPartitions": "1"})
    compact(out, grace_seconds=0)
    (task,) = plan_tasks(out, Selection(options).readable_files(0, 25, QUERY), 1)
    assert main(["vacuum", str(out), "--retain", "0s"]) == 0
    with pytest.raises(MissingFileError, match="does not exist"):
        tasks_read([task])


def test_old_files_stay_for_the_grace_time(out: Path) -> None:
    before = data_files(out)
    done = compact(out, grace_seconds=3600)
    assert done.removed == 0
    assert before < data_files(out)
    assert compact(out, grace_seconds=3600).removed == 0
    assert compact(out, grace_seconds=0).removed == done.files_before
    assert data_files(out) == listed_files(out)


def test_the_engine_and_vacuum_go_on(out: Path) -> None:
    compact(out, grace_seconds=0)
    assert main(["vacuum", str(out), "--retain", "0s"]) == 0
    assert CommitLog(out).oldest_version() == 25
    assert data_files(out) == listed_files(out)
    assert not verify(out).problems
    assert not has_work(out)


def test_a_vacuum_leaves_files_that_later_commits_list(out: Path) -> None:
    """A file of two segments goes with the second one."""
    compact(out, grace_seconds=0)
    rows = Changes(out).read("shop", "orders", 5)
    log = CommitLog(out)
    paths = listed_files(out)
    size = sum((out / path).stat().st_size for path in paths)
    assert main(["vacuum", str(out), "--retain", f"{size - 1}B"]) == 0
    assert log.oldest_version() == 10
    assert Changes(out).read("shop", "orders") == rows.slice(15)
    assert data_files(out) == listed_files(out)


@pytest.mark.parametrize("steps", [*range(1, 30), *range(30, 400, 11)])
@pytest.mark.parametrize("kind", ["out", "packed"])
def test_a_compaction_that_was_broken_off(
    kind: str, steps: int, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At any step all that the log lists is there, and the next compaction leaves nothing else."""
    request.getfixturevalue("out")
    out = request.getfixturevalue(kind)
    expected = [Changes(out).read("shop", table) for table in ("orders", "items")]
    left = iter(range(steps))

    class Crash(BaseException):
        pass

    def stepping(real: Callable[..., object]) -> Callable[..., object]:
        def step(*arguments: object, **options: object) -> object:
            if next(left, None) is None:
                raise Crash
            return real(*arguments, **options)

        return step

    with monkeypatch.context() as patched:
        for owner, name in ((Path, "unlink"), (Path, "rename"), (os, "fsync"), (os, "open")):
            patched.setattr(owner, name, stepping(getattr(owner, name)))
        try:
            compact(out, grace_seconds=0)
        except Crash:
            pass
        else:
            pytest.skip("it has no more steps")
    assert listed_files(out) <= data_files(out)
    assert [Changes(out).read("shop", table) for table in ("orders", "items")] == expected
    compact(out, grace_seconds=0)
    assert data_files(out) == listed_files(out)
    assert [Changes(out).read("shop", table) for table in ("orders", "items")] == expected
    assert sorted(path.name for path in (out / "_compaction").iterdir()) == ["progress.json"]


@pytest.mark.parametrize("state", ["planned", "written"])
def test_vacuum_makes_room_on_a_full_disk(out: Path, state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where compaction has filled it, before or after the new files of its last step were written."""
    with monkeypatch.context() as patched:
        patched.setattr(MoveJournal, "complete" if state == "planned" else "_replace", full)
        patched.setattr(MoveJournal, "abandon", lambda *_: None)
        with pytest.raises(OutputError, match="No space left"):
            compact(out, grace_seconds=0)
    listed = listed_files(out)
    unlisted = data_files(out) - listed
    assert unlisted
    (out / MAINTENANCE_LOCK_FILE).unlink()
    with monkeypatch.context() as patched:
        patched.setattr(local_folder, "write_new", full)
        patched.setattr(os, "pwrite", full)
        remove_old_commits(out, Retention(bytes=sum((out / path).stat().st_size for path in listed)))
        assert CommitLog(out).oldest_version() == 0
        remove_old_commits(out, Retention(seconds=0))
        assert CommitLog(out).oldest_version() == SEALED - 5
        assert (unlisted <= data_files(out)) == (state == "written")
    compact(out, grace_seconds=0)
    assert data_files(out) == listed_files(out)
    assert not verify(out).problems


def full(*_: object) -> NoReturn:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_one_at_a_time(out: Path) -> None:
    with (
        maintenance_lock(out),
        pytest.raises(OutputError, match=rf"compacted or removed by process {os.getpid()}"),
        maintenance_lock(out, patience=0.0),
    ):
        pass
    waiting = threading.Thread(target=compact, args=(out,), kwargs={"grace_seconds": 0})
    with maintenance_lock(out):
        waiting.start()
        assert not any(map(is_compacted, listed_files(out)))
    waiting.join(60)
    assert any(map(is_compacted, listed_files(out)))


def test_entries_beside_their_segment_are_left_alone(out: Path) -> None:
    """A crash left them when the segment was made; the writer removes them when it starts."""
    single = out / "_log" / f"{11:020d}.json"
    single.write_bytes(CommitLog(out).read(11).to_json() + b"\n")
    rows = by_commit(out)
    compact(out, grace_seconds=0)
    assert by_commit(out) == rows
    single.unlink()
    compact(out, grace_seconds=0)
    assert by_commit(out) == rows
    assert data_files(out) == listed_files(out)


def test_the_command(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compact", str(out), "--grace", "0s"]) == 0
    assert "files became" in capsys.readouterr().out
    assert main(["compact", str(out), "--grace", "soon"]) == 1
    assert "soon is not an age" in capsys.readouterr().err
    assert main(["compact", str(out / "nothing")]) == 1
    assert "no output of binlog-engine" in capsys.readouterr().err
