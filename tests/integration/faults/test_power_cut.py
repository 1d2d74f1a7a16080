"""The power is cut at every point of a commit: what a reader has seen is there again after the next start.

Real commits are written while `ObservedFolder` models what is durable. Each state that the disk may have is
laid out in a folder of its own, where a reader that was ahead reads, and then the engine starts and goes on.
"""

from __future__ import annotations

import errno
import itertools
import os
import random
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from engine.binlog.samples import sample_binlogs
from engine.commands.status import status
from engine.commands.vacuum import vacuum
from engine.config.retention import Retention
from engine.output import compaction, log_files
from engine.output.checksum import checksum_of_content
from engine.output.commit_log import CommitLog
from engine.output.compaction import compact
from engine.output.data_file_names import commits_in, is_compacted
from engine.output.data_files import DataFiles, FileRows
from engine.output.files import OutputError
from engine.output.folder import clean_output, open_output, recover_output, settled_output
from engine.output.lock import output_lock
from engine.output.log_segments import LogSegments
from engine.output.reader import Changes
from engine.output.storage import storage_of
from engine.output.verification import verify
from engine.sink import growing_file, staging, table_file
from engine.sink.writer import Writer
from engine.spark.options import Options
from engine.spark.selection import Selection
from engine.spark.stream import BinlogStreamReader
from engine.spark.tasks import read_task
from tests.support.committed import assert_same_changes, assert_sound
from tests.support.data_files import data_files, listed_files
from tests.support.engine_run import run_command
from tests.support.power_cut import DiskState, ObservedFolder, materialize
from tests.support.results import COLUMNS, WIDER_COLUMNS, Rows, result

SEGMENT = 3
DRAWN_STATES = 2
"""So many states by chance at each point, besides the two extremes."""

STREAM: list[dict[str, list[int]]] = [
    {"orders": [1, 2], "": [3]},
    {"orders": [4], "items": [5, 6]},
    {"orders": [7], "items": [8], "wide": [9]},
    {"wide": [10, 11]},
    {"orders": [12], "wide": [13], "new": [14]},
    {"orders": list(range(15, 600)), "items": [600]},
    {"orders": [601], "items": [602]},
    {"orders": [603]},
]
"""What the source sends, transaction by transaction: ids by table, the events feed having no name. Ids count
all rows in order, so each row's id is its `_seq`; transaction n becomes commit n."""
LARGE_COMMIT = 5
"""Its rows of `shop.orders` are a record batch that is written with direct I/O, without a checksum."""


@pytest.fixture(autouse=True)
def small_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_files, "COMMITS_PER_SEGMENT", SEGMENT)
    monkeypatch.setattr(table_file, "DIRECT_BYTES", 1 << 14)
    # Some files are written once, when they are complete, and some in several steps.
    monkeypatch.setattr(growing_file, "WAITING_BYTES", 2800)
    # Two small files of one commit are a pack, and one is a file. Some packs are written before the commit.
    monkeypatch.setattr(staging, "MOST_SMALL_FILES", 1)
    monkeypatch.setattr(staging, "PACK_BYTES", 5380)


def transaction(number: int) -> list[Rows]:
    tables = STREAM[number]
    first = min(min(ids) for ids in tables.values())
    return [
        Rows(
            "shop" if table else "",
            table,
            ids,
            [id - first + 1 for id in ids],
            WIDER_COLUMNS if table == "wide" else COLUMNS,
        )
        for table, ids in tables.items()
    ]


@contextmanager
def sink(out: Path) -> Iterator[tuple[int, Callable[[int], None]]]:
    """Start and end as the engine does; gives the next transaction's number, and what commits one."""
    settled = settled_output(out)
    with output_lock(out):
        state = recover_output(out)
        assert state == settled
        clean_output(out, state.commit)
        CommitLog(out).consolidate()
        done = threading.Event()
        settings = {"server_uuid": "", "flavor": "mysql", "commit_interval": 0.0, "commit_bytes": 1 << 30}
        writer = Writer(CommitLog(out), state, **settings, on_finished=done.set)  # type: ignore[arg-type]

        def commit(number: int) -> None:
            writer.take(*result(number, transaction(number)), now=0.0)
            done.clear()
            writer.commit_if_due(0.0)
            assert done.wait(60)
            writer.commit_if_due(0.0)
            assert writer.safe.commit == number

        try:
            yield (state.position.position - 4) // 100 if state.position else 0, commit
            writer.finish()
        finally:
            writer.close()


def write_until(out: Path, end: int) -> None:
    with sink(out) as (start, commit):
        for number in range(start, end):
            commit(number)


@dataclass(frozen=True)
class Seen:
    """What a reader has seen: entry and data files of each commit that was not removed."""

    commits: dict[int, tuple[bytes, dict[str, bytes]]]

    @property
    def last(self) -> int:
        return max(self.commits, default=-1)

    def look(self, out: Path) -> Seen:
        """With what is visible now."""
        log = CommitLog(out)
        oldest, latest = log.oldest_version(), log.latest_version()
        commits = {version: seen for version, seen in self.commits.items() if version >= oldest}
        for commit in log.range(max(oldest, self.last + 1), latest):
            files = {file.path: storage_of(out).open(file.path).read() for file in commit.files}
            commits[commit.version] = commit.to_json(), files
        return replace(self, commits=commits) if commits.keys() != self.commits.keys() else self


class PowerCuts:
    """Collects the states that the disk may have, each with what readers of `out` had seen by then."""

    def __init__(self, out: Path, seen: Seen | None = None, drawn_states: int = DRAWN_STATES) -> None:
        self.out = out
        self._drawn_states = drawn_states
        self.seen = (seen or Seen({})).look(out)
        self.states: dict[tuple[object, ...], tuple[DiskState, Seen]] = {}
        self._chance = random.Random(1)
        self.folder = ObservedFolder(out.parent)

    def during(self, work: Callable[[], object], meanwhile: Callable[[], None] = lambda: None) -> None:
        """Do `work`; `meanwhile` acts as another process, and is called between any two steps."""

        def between_steps() -> None:
            self._take()
            meanwhile()

        with self.folder.observe(between_steps):
            work()

    def _take(self) -> None:
        self.seen = self.seen.look(self.out)
        possible = [
            self.folder.after_power_cut(None),
            self.folder.after_power_cut(None, all_is_durable=True),
            *(self.folder.after_power_cut(self._chance) for _ in range(self._drawn_states)),
        ]
        for state in possible:
            self.states.setdefault((*state.items(), *self.seen.commits), (state, self.seen))

    def check(
        self,
        scratch: Path,
        end: int,
        *,
        ahead: bool,
        check_state: Callable[[Path, Seen, int], None] | None = None,
    ) -> None:
        """Start from each state, write transactions up to `end`, and compare, or do `check_state` there.

        `ahead` says whether readers have seen commits that some states do not show.
        """
        scratch.mkdir()
        were_ahead = 0
        with pytest.MonkeyPatch.context() as patched:
            # For speed, since nothing of it has to be durable.
            patched.setattr(os, "fsync", lambda _: None)
            patched.setattr(growing_file, "start_writeback", lambda _: None)
            patched.setattr(table_file, "DIRECT_BYTES", 1 << 30)
            for number, (state, seen) in enumerate(self.states.values()):
                root = scratch / str(number)
                materialize(state, root)
                were_ahead += open_output(root / self.out.name).commit < seen.last
                (check_state or check)(root / self.out.name, seen, end)
                shutil.rmtree(root)
        assert ahead == bool(were_ahead)
        assert len(self.states) > 5


def check(out: Path, seen: Seen, end: int) -> None:
    if seen.commits:
        check_reader_that_was_ahead(out, seen)
    assert settled_output(out).commit >= seen.last
    write_until(out, end)
    log = CommitLog(out)
    assert log.latest_version() == end - 1
    for version, (entry, files) in seen.commits.items():
        assert log.read(version).to_json() == entry
        assert {path: storage_of(out).open(path).read() for path in files} == files
    if log.oldest_version() or LogSegments(out).detached():
        vacuum(out, Retention(seconds=0))
    check_rows(out, end)


def check_reader_that_was_ahead(out: Path, seen: Seen) -> None:
    """It reads the last commit by its number before the engine has started, and goes on from there."""
    last = seen.last
    entry, _ = seen.commits[last]
    changes = Changes(out)
    assert changes.log.read(last).to_json() == entry
    query = pa.schema([("id", pa.int64()), ("_seq", pa.int64())])
    replayed = BinlogStreamReader(Options.parse({"path": str(out)}), query)
    tasks = replayed.partitions({"commit": last - 1}, {"commit": last})
    ids = [id for task in tasks for batch in read_task(task, query) for id in batch["id"].to_pylist()]
    assert sorted(ids) == sorted(id for table, ids in STREAM[last].items() if table for id in ids)
    resumed = BinlogStreamReader(Options.parse({"path": str(out)}), query)
    assert resumed.latestOffset({"commit": last}, ReadAllAvailable())["commit"] >= last
    assert changes.schema("shop", "orders", last).names[0] == "id"
    if open_output(out).commit >= 0:
        later = Options.parse({"path": str(out), "startingCommit": str(last + 1)})
        assert Selection(later).first() == last + 1


def check_rows(out: Path, end: int) -> None:
    """All commits are whole, `_seq` has no gap, and there are no files but theirs."""
    check_listed_rows(out, end)
    assert data_files(out) == listed_files(out)
    assert not list(out.rglob("*.tmp"))


def check_listed_rows(out: Path, end: int) -> None:
    log = CommitLog(out)
    oldest = log.oldest_version()
    found = []
    for commit in log.range(oldest, log.latest_version()):
        for file in commit.files:
            if not is_compacted(file.path):
                assert storage_of(out).size(file.path) == file.bytes
            is_large = commit.version == LARGE_COMMIT and file.table == "orders"
            content = storage_of(out).open(file.path)
            assert file.checksum == checksum_of_content(content).text() or (is_large and not file.checksum)
            rows = pa.Table.from_batches(DataFiles(out).batches(FileRows.of(file)))
            assert len(rows) == file.rows
            ids = rows["id"].to_pylist() if file.table else [None] * len(rows)
            found += [
                (seq, commit.version, file.table, id)
                for seq, id in zip(rows["_seq"].to_pylist(), ids, strict=True)
            ]
    assert sorted(found) == sorted(
        (id, number, table, id if table else None)
        for number in range(oldest, end)
        for table, ids in STREAM[number].items()
        for id in ids
    )


@pytest.mark.parametrize(
    ("before", "until"),
    [
        pytest.param(0, 1, id="the first commit"),
        pytest.param(1, 2, id="several tables, a new one among them"),
        pytest.param(2, 3, id="one that completes a segment"),
        pytest.param(3, 5, id="one after another"),
        pytest.param(5, 7, id="large batches, a segment, and another commit"),
    ],
)
def test_what_a_reader_saw_survives(tmp_path: Path, before: int, until: int) -> None:
    out = tmp_path / "disk" / "out"
    out.parent.mkdir()
    if before:
        write_until(out, before)
    cuts = PowerCuts(out)
    cuts.during(lambda: write_until(out, until))
    assert cuts.seen.last == until - 1
    materialize(cuts.folder.after_power_cut(None), tmp_path / "ended")
    assert open_output(tmp_path / "ended" / "out").commit == until - 1  # Without recovery.
    cuts.check(tmp_path / "after", until + 1, ahead=True)


@pytest.mark.parametrize("meanwhile", [False, True])
def test_a_vacuum_takes_nothing_that_is_needed(tmp_path: Path, meanwhile: bool) -> None:
    """Also one that finds the next segment in place when that is not durable yet."""
    out = tmp_path / "disk" / "out"
    out.parent.mkdir()
    end = 2 * SEGMENT
    write_until(out, end - meanwhile)
    cuts = PowerCuts(out)
    vacuumed = False

    def vacuum_once() -> None:
        nonlocal vacuumed
        if not vacuumed and LogSegments(out).removable_end(0) is not None:
            vacuumed = True
            vacuum(out, Retention(seconds=0))

    cuts.during(lambda: write_until(out, end), vacuum_once)
    assert vacuumed
    assert list(cuts.seen.commits) == [SEGMENT, SEGMENT + 1, SEGMENT + 2]
    cuts.check(tmp_path / "after", end + 1, ahead=meanwhile)


def test_a_compaction_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of segments alone and together; from every other state, first the engine and a vacuum go on."""
    monkeypatch.setattr(compaction, "_SEGMENTS_TOGETHER", (1, 2))
    out = tmp_path / "disk" / "out"
    out.parent.mkdir()
    written = 2 * SEGMENT + 1
    write_until(out, written)
    cuts = PowerCuts(out, drawn_states=1)
    cuts.during(partial(compact, out, grace_seconds=0))
    paths = {file.path for commit in CommitLog(out).range(0, written - 1) for file in commit.files}
    assert any(commits_in(path) == (0, 5) for path in paths)
    vacuums = itertools.cycle([False, True])

    def check_state(root: Path, seen: Seen, end: int) -> None:
        check_listed_rows(root, written)
        if vacuum_first := next(vacuums):
            write_until(root, end)
            assert vacuum(root, Retention(seconds=0)).oldest == SEGMENT
        compact(root, grace_seconds=0)
        check_rows(root, end if vacuum_first else written)
        assert not verify(root).problems

    cuts.check(tmp_path / "after", written + 1, ahead=False, check_state=check_state)


def test_the_power_fails_again_during_recovery(tmp_path: Path) -> None:
    """A commit that was seen, a later one that was not, a torn one, and data files without a commit."""
    out = tmp_path / "disk" / "out"
    out.parent.mkdir()
    write_until(out, 4)
    seen = Seen({}).look(out)
    write_until(out, 5)
    take_back_last_name(out)
    entry = take_back_last_name(out)
    entry.with_name(f"{5:020d}.json.tmp").write_bytes(entry.read_bytes()[:-9])
    (out / "shop.orders").mkdir(exist_ok=True)
    (out / "shop.orders" / f"{5:020d}-0.arrow").write_bytes(b"half")
    cuts = PowerCuts(out, seen)
    assert open_output(out).commit == 2
    cuts.during(lambda: write_until(out, 6))
    cuts.check(tmp_path / "after", 7, ahead=True)


@pytest.mark.parametrize(
    ("call", "name"), [("fsync", ".json.tmp"), ("fsync", "_log"), ("rename", ".json.tmp")]
)
def test_a_commit_that_fails_is_there_or_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, name: str
) -> None:
    """What the sink does then: it drops what was not decided, and leaves."""
    out = tmp_path / "disk" / "out"
    out.parent.mkdir()
    write_until(out, 3)
    real = getattr(os, call)
    fails = [False]

    def failing(target: int | Path, *arguments: object) -> None:
        path = Path(f"/proc/self/fd/{target}").readlink() if isinstance(target, int) else Path(target)
        if fails and path.name.endswith(name) and fails.pop():
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(target, *arguments)

    def work() -> None:
        with pytest.raises(OutputError, match="Input/output error"), sink(out) as (start, commit):
            fails[:] = [True]
            commit(start)
        with output_lock(out):
            clean_output(out, recover_output(out).commit)

    monkeypatch.setattr(os, call, failing)
    cuts = PowerCuts(out)
    cuts.during(work)
    assert cuts.seen.last == (3 if call == "rename" else 2)
    cuts.check(tmp_path / "after", 5, ahead=call == "rename")


def test_what_fsync_refused_is_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the entry could not be removed either: another fsync of the same file would prove nothing."""
    write_until(tmp_path, 2)
    real = os.fsync
    refused: list[Any] = []

    def failing(descriptor: int) -> None:
        if not refused and Path(f"/proc/self/fd/{descriptor}").readlink().name.endswith(".json.tmp"):
            refused.append(os.fstat(descriptor).st_ino)
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(descriptor)

    def stuck(path: Path, missing_ok: bool = False) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patched, pytest.raises(OutputError, match="Input/output error"):
        patched.setattr(os, "fsync", failing)
        patched.setattr(Path, "unlink", stuck)
        write_until(tmp_path, 3)
    assert settled_output(tmp_path).commit == 2
    assert refused and (tmp_path / "_log" / f"{2:020d}.json").stat().st_ino not in refused
    write_until(tmp_path, 4)
    check_rows(tmp_path, 4)


def take_back_last_name(out: Path) -> Path:
    """What a power cut does to the last entry; gives its temporary name."""
    entry = out / "_log" / f"{open_output(out).commit:020d}.json"
    return entry.rename(entry.with_name(f"{entry.name}.tmp"))


def test_a_copy_without_the_lock_file_is_recovered_too(tmp_path: Path) -> None:
    write_until(tmp_path, 2)
    take_back_last_name(tmp_path)
    (tmp_path / "_lock").unlink()
    assert settled_output(tmp_path).commit == 1


def test_the_engine_completes_the_commit_when_it_starts(tmp_path: Path) -> None:
    """`status` shows it again, even where there is nothing more to decode, and nothing comes twice."""
    undisturbed = tmp_path / "undisturbed"
    out, (first, *later) = tmp_path / "out", [str(path) for path in sample_binlogs()]
    decode = ["decode", "--out", str(out), "--workers=1", "--commit-bytes=1"]
    assert run_command(*decode, first).status == 0
    before = status(out)
    entry = out / "_log" / f"{before.commit:020d}.json"
    content = entry.read_bytes()
    take_back_last_name(out)
    assert status(out).commit == before.commit - 1
    assert Changes(out).log.read(before.commit).to_json() + b"\n" == content
    nothing_left = run_command(*decode, first)
    assert "the output folder continues at" in nothing_left.sentence
    assert entry.read_bytes() == content
    after = status(out)
    assert (after.commit, after.position, after.last_seq) == (before.commit, before.position, before.last_seq)
    assert (after.rows, after.bytes, after.tables) == (before.rows, before.bytes, before.tables)
    assert run_command(*decode, first, *later).status == 0
    assert run_command("decode", "--out", str(undisturbed), "--workers=1", first, *later).status == 0
    assert_sound(out)
    assert_same_changes(out, undisturbed)
