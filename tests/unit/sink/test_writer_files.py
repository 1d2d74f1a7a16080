"""The files of the writer: how many, durable before the log names them, and what a failure leaves."""

from __future__ import annotations

import os
import resource
import tracemalloc
from pathlib import Path

import pyarrow as pa
import pytest

from engine.output.data_file_names import file_of, part_of
from engine.output.files import OutputError
from engine.output.folder import clean_output, open_output
from engine.output.verification import verify
from engine.sink import growing_file, open_files, staging
from tests.support.data_files import commits, data_files, listed_files
from tests.support.results import Rows, orders, result
from tests.support.writer_output import latest_commit, open_descriptors, open_writer, rows_of


def test_files_roll_over(tmp_path: Path) -> None:
    writer = open_writer(tmp_path, roll_bytes=3000)
    for sequence in range(20):
        writer.take(*result(sequence, [orders([sequence])]), now=0.0)
    writer.finish()
    assert len(data_files(tmp_path)) > 2
    assert rows_of(tmp_path) == [(sequence + 1, sequence) for sequence in range(20)]
    assert data_files(tmp_path) == listed_files(tmp_path)


def test_files_that_become_full_in_an_aborted_transaction(tmp_path: Path) -> None:
    """Of the first of them, what was there before is committed; the others leave nothing."""
    writer = open_writer(tmp_path, roll_bytes=3000)
    writer.take(*result(0, [orders([0])]), now=0.0)
    for sequence in range(1, 10):
        writer.take(*result(sequence, [orders([sequence])], ends=False), now=0.0)
    writer.take(*result(10, [orders([10])], aborts_transaction=True), now=0.0)
    writer.finish()
    assert rows_of(tmp_path) == [(1, 0), (2, 10)]
    assert len(data_files(tmp_path)) == 2
    assert data_files(tmp_path) == listed_files(tmp_path)
    assert not verify(tmp_path).problems


@pytest.mark.parametrize("is_due", [False, True])
def test_a_transaction_begins_where_another_was_aborted(tmp_path: Path, is_due: bool) -> None:
    """The server crashed inside a large transaction, and the next one is open when its commit is due or at a
    stop."""
    writer = open_writer(tmp_path)
    writer.take(*result(0, [orders([0])]), now=0.0)
    writer.take(*result(1, [orders([1])], ends=False), now=0.0)
    writer.take(*result(2, [orders([2])], ends=False, aborts_transaction=True), now=0.0)
    if is_due:
        writer.commit_if_due(now=2.5)
    writer.finish()
    assert rows_of(tmp_path) == [(1, 0)]
    assert data_files(tmp_path) == listed_files(tmp_path)


def test_a_commit_that_was_started_ends_when_the_writer_is_closed(tmp_path: Path) -> None:
    for number in range(20):
        out = tmp_path / f"{number}"
        out.mkdir()
        writer = open_writer(out)
        writer.take(*result(0, [orders([0])]), now=0.0)
        writer.commit_if_due(now=2.5)
        writer.close()
        assert rows_of(out) == [(1, 0)]


@pytest.mark.parametrize("waiting_bytes", [0, 3000, 1 << 20])
def test_many_tables_have_one_file_each_and_few_are_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waiting_bytes: int
) -> None:
    monkeypatch.setattr(open_files, "MOST_DESCRIPTORS", 3)
    monkeypatch.setattr(open_files, "MOST_WAITING_BYTES", waiting_bytes)
    writer = open_writer(tmp_path)
    tables = [f"t{n}" for n in range(5)]
    for sequence in range(20):
        rows = [Rows("shop", table, [sequence], [n + 1]) for n, table in enumerate(tables)]
        writer.take(*result(sequence, rows), now=0.0)
    before = open_descriptors()
    writer.finish()
    assert before - open_descriptors() == (3 if waiting_bytes < 1 << 20 else 0)
    for n, table in enumerate(tables):
        assert rows_of(tmp_path, table=table) == [(5 * s + n + 1, s) for s in range(20)]
    assert len(data_files(tmp_path)) == 5
    assert data_files(tmp_path) == listed_files(tmp_path)


def test_memory_does_not_grow_with_the_batches_of_a_transaction(tmp_path: Path) -> None:
    """Each has the schemas of its tables."""
    of_many_columns = pa.field("name", pa.string(), metadata={"mysql_type": 100_000 * "x"})
    columns = pa.schema([("id", pa.int64()), of_many_columns])
    results = (result(n, [orders([n], columns=columns)], ends=False) for n in range(110))
    writer = open_writer(tmp_path)
    used = []
    tracemalloc.start()
    try:
        for number, (header, frames) in enumerate(results):
            writer.take(header, frames, now=0.0)
            if number in (9, 109):
                used.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    writer.close()
    assert used[1] - used[0] < 10 * len(header.tables[0].schema)


def test_rows_of_an_open_transaction_are_moved_from_more_files_than_may_be_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_files, "MOST_DESCRIPTORS", 3)
    monkeypatch.setattr(open_files, "MOST_WAITING_BYTES", 0)
    names = [f"t{n}" for n in range(100)]
    writer = open_writer(tmp_path)
    writer.take(*result(0, [orders([1])]), now=0.0)
    rows = [Rows("shop", table, [n], [n + 1]) for n, table in enumerate(names)]
    writer.take(*result(1, rows, ends=False), now=0.0)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_descriptors() + 30, hard))
    try:
        writer.commit_if_due(now=2.5)
        writer.take(*result(2), now=2.5)
        writer.finish()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert [len(commit.files) for commit in commits(tmp_path)] == [1, 100]
    assert [rows_of(tmp_path, table=table) for table in names] == [[(n + 2, n)] for n in range(100)]


@pytest.mark.parametrize(("tables", "packs"), [(8, 0), (9, 1), (300, 1)])
def test_small_files_of_many_tables_are_one_pack(tmp_path: Path, tables: int, packs: int) -> None:
    writer = open_writer(tmp_path)
    names = [f"t{n}" for n in range(tables)]
    for sequence in range(3):
        rows = [Rows("shop", table, [sequence], [n + 1]) for n, table in enumerate(names)]
        writer.take(*result(sequence, rows), now=0.0)
    writer.finish()
    for n, table in enumerate(names):
        assert rows_of(tmp_path, table=table) == [(tables * s + n + 1, s) for s in range(3)]
    assert len(data_files(tmp_path)) == (packs or tables)
    assert data_files(tmp_path) == listed_files(tmp_path)
    parts = list(filter(None, (part_of(file.path) for commit in commits(tmp_path) for file in commit.files)))
    assert len(parts) == (tables if packs else 0)
    assert all(part.offset % 64 == 0 for part in parts)
    assert not verify(tmp_path).problems


def test_a_pack_is_written_when_much_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "PACK_BYTES", 100_000)
    names = [f"t{n}" for n in range(20)]

    def rows(sequence: int) -> list[Rows]:
        return [Rows("shop", table, [sequence], [n + 1]) for n, table in enumerate(names)]

    writer = open_writer(tmp_path)
    for sequence in range(7):
        writer.take(*result(sequence, rows(sequence)), now=0.0)
    before_the_commit = data_files(tmp_path)
    # What a transaction has written can be dropped until it ends: it is in no pack, however much it is.
    for sequence in range(7, 20):
        writer.take(*result(sequence, rows(sequence), ends=False), now=0.0)
    assert data_files(tmp_path) == before_the_commit
    writer.take(*result(20, ends=False, aborts_transaction=True), now=0.0)
    writer.take(*result(21, rows(7)), now=0.0)
    writer.finish()
    assert before_the_commit == {f"_packs/{0:020d}-{number}.pack" for number in range(2)}
    assert before_the_commit < data_files(tmp_path) == listed_files(tmp_path)
    for n, table in enumerate(names):
        assert rows_of(tmp_path, table=table) == [(20 * s + n + 1, s) for s in range(8)]
    assert not verify(tmp_path).problems


def test_what_waits_of_large_files_makes_no_packs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It could not be packed, however many packs there were."""
    monkeypatch.setattr(growing_file, "WAITING_BYTES", 4000)
    monkeypatch.setattr(staging, "PACK_BYTES", 50_000)
    writer = open_writer(tmp_path)
    for sequence in range(8):
        rows = [Rows("shop", f"large{n}", [sequence], [n + 1]) for n in range(100)]
        writer.take(*result(sequence, rows, ends=sequence == 7), now=0.0)
    assert len(data_files(tmp_path)) == 100
    rows = [Rows("shop", f"small{n}", [8], [n + 1]) for n in range(10)]
    writer.take(*result(8, rows), now=0.0)
    assert len(data_files(tmp_path)) == 100
    writer.finish()
    assert len(data_files(tmp_path)) == 101
    assert rows_of(tmp_path, table="small9") == [(810, 8)]
    assert data_files(tmp_path) == listed_files(tmp_path)


def test_a_pack_of_no_commit_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "PACK_BYTES", 0)
    writer = open_writer(tmp_path)
    writer.take(*result(0, [Rows("shop", f"t{n}", [1], [n + 1]) for n in range(20)]), now=0.0)
    assert data_files(tmp_path)
    writer.close()
    open_writer(tmp_path)
    assert not data_files(tmp_path)


def test_a_table_with_many_rows_has_a_file_beside_the_pack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growing_file, "WAITING_BYTES", 10_000)
    writer = open_writer(tmp_path)
    rows = [Rows("shop", "large", range(1000), range(1, 1001))]
    rows += [Rows("shop", f"t{n}", [n], [1001 + n]) for n in range(20)]
    writer.take(*result(0, rows), now=0.0)
    writer.finish()
    assert [path for path in data_files(tmp_path) if "_packs" not in path] == [f"shop.large/{0:020d}-0.arrow"]
    assert rows_of(tmp_path, table="large") == [(n + 1, n) for n in range(1000)]
    assert [rows_of(tmp_path, table=f"t{n}") for n in range(20)] == [[(1001 + n, n)] for n in range(20)]
    assert not verify(tmp_path).problems


@pytest.mark.parametrize("is_written_as_it_comes", [True, False])
def test_a_full_disk_is_one_sentence_and_commits_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_written_as_it_comes: bool
) -> None:
    if is_written_as_it_comes:
        monkeypatch.setattr(growing_file, "WAITING_BYTES", 10_000)
    writer = open_writer(tmp_path)
    writer.take(*result(0, [orders([1])]), now=0.0)
    writer.finish()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        with pytest.raises(OutputError, match="File too large") as error:
            for sequence in range(1, 10):
                writer.take(*result(sequence, [orders(range(500))]), now=0.0)
            assert not is_written_as_it_comes
            writer.finish()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "shop.orders" in str(error.value)
    writer.close()
    again = open_writer(tmp_path)
    again.take(*result(0, [orders([2])]), now=0.0)
    again.finish()
    assert rows_of(tmp_path) == [(1, 1), (2, 2)]
    assert data_files(tmp_path) == listed_files(tmp_path)


def test_files_and_folders_are_durable_before_the_log_names_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: dict[Path, int] = {}
    before_the_log: list[dict[Path, int]] = []
    fsync = os.fsync

    def noting(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        if path.suffix == ".tmp":
            assert path.parent.name == "_log"
            before_the_log.append(dict(flushed))
        flushed[path] = os.fstat(descriptor).st_size
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noting)
    writer = open_writer(tmp_path)
    many = [f"t{n}" for n in range(20)]
    for number, tables in enumerate((["orders", "items"], ["orders"], ["orders", "prices"], many, many)):
        flushed.clear()
        writer.take(*result(number, [Rows("shop", table, [1], [1]) for table in tables]), now=0.0)
        writer.finish()
        for file in latest_commit(tmp_path).files:
            path = tmp_path / file_of(file.path)
            assert before_the_log[number][path] == path.stat().st_size
            assert path.parent in before_the_log[number]
        makes_a_folder = number not in (1, 4)
        assert (tmp_path in before_the_log[number]) == makes_a_folder


def test_a_write_that_is_cut_short_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pwritev, cut = os.pwritev, []

    def written(descriptor: int, parts: list[memoryview], offset: int) -> int:
        cut.append(len(parts[0]) > 1000)
        return pwritev(descriptor, [parts[0][:1000]], offset)

    monkeypatch.setattr(os, "pwritev", written)
    writer = open_writer(tmp_path)
    writer.take(*result(0, [orders(range(500))]), now=0.0)
    writer.take(*result(1, [orders(range(500, 1000))]), now=0.0)
    writer.finish()
    assert any(cut)
    assert [value for _, value in rows_of(tmp_path)] == list(range(1000))


def test_only_what_a_crash_left_is_removed(tmp_path: Path) -> None:
    writer = open_writer(tmp_path)
    writer.take(*result(0, [orders([1])]), now=0.0)
    writer.finish()
    kept = tmp_path / "shop.orders" / "notes.txt"
    kept.write_text("mine")
    for name in (f"{1:020d}-0.arrow", f"{7:020d}-3.arrow", f"{0:020d}-0.arrow.tmp"):
        (tmp_path / "shop.orders" / name).write_bytes(b"half")
    (tmp_path / "_packs").mkdir()
    for name in (f"{1:020d}-0.pack", f"{0:020d}-0.pack.tmp"):
        (tmp_path / "_packs" / name).write_bytes(b"half")
    clean_output(tmp_path, 0)
    assert data_files(tmp_path) == listed_files(tmp_path)
    assert kept.exists()


@pytest.mark.parametrize("content", ["notes.txt", "folder/x"])
def test_a_folder_of_something_else_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / content
    path.parent.mkdir(exist_ok=True)
    path.write_text("mine")
    with pytest.raises(OutputError, match="contains something other"):
        open_output(tmp_path)
    with pytest.raises(OutputError, match="is not a folder"):
        open_output(path)
