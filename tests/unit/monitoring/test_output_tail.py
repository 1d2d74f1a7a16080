"""What the monitor reads from the commit log while an engine appends to it and vacuum removes from it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from engine.monitoring.figures import SnapshotFigures, TableFigures
from engine.monitoring.output_tail import OutputTail
from engine.output import log_files
from engine.output.caught_up import write_caught_up
from engine.output.commit import DataFile
from engine.output.commit_log import CommitLog
from engine.output.files import table_folder
from engine.output.log_segments import LogSegments
from engine.output.snapshot_progress import SnapshotChange, TableSnapshot
from tests.support.output import FIRST_COMMIT_US, SECOND_US, Output
from tests.support.schema_changes import ITEMS, ORDERS, defined, statement


@pytest.fixture(autouse=True)
def short_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_files, "COMMITS_PER_SEGMENT", 5)


def commit(output: Output, table: str = "orders", rows: int = 10) -> None:
    number = output.log.latest_version() + 1
    path = f"shop.{table}/{number:020d}-0.arrow"
    file = DataFile(path, "shop", table, 1, rows, 100, output.seq + 1, output.seq + rows, 0, 0)
    output.seq += rows
    output.commit_files([file])


def tables(tail: OutputTail) -> dict[str, tuple[int, int, int]]:
    return {table.name: (table.rows, table.bytes, table.files) for table in tail.figures.tables}


def test_an_output_without_a_commit(tmp_path: Path) -> None:
    tail = OutputTail(tmp_path / "not made yet")
    tail.read()
    assert (tail.figures.commit, tail.figures.tables, tail.figures.error) == (-1, (), None)
    free, size = tail.figures.disk_free_bytes, tail.figures.disk_bytes
    assert free is not None and size is not None and 0 < free <= size


def test_each_commit_is_added(tmp_path: Path) -> None:
    output = Output(tmp_path)
    commit(output)
    tail = OutputTail(tmp_path)
    tail.read()
    assert tables(tail) == {"shop.orders": (10, 100, 1)}
    commit(output, "items", 3)
    commit(output, rows=5)
    tail.read()
    tail.read()
    assert tables(tail) == {"shop.orders": (15, 200, 2), "shop.items": (3, 100, 1)}
    assert tail.figures.tables[0] == TableFigures("shop.orders", 15, 200, 2)
    assert (tail.figures.commit, tail.figures.commit_time) == (2, (FIRST_COMMIT_US + 2 * SECOND_US) / 1e6)
    assert tail.figures.complete_until == FIRST_COMMIT_US // SECOND_US
    moment = time.time_ns() // 1000
    write_caught_up(tmp_path, moment)
    tail.read()
    assert tail.figures.complete_until == moment / 1_000_000


def test_names_with_dots_are_told_apart(tmp_path: Path) -> None:
    names = [("a", "b.c"), ("a.b", "c"), ("a", "b"), ("`a", "b`")]
    output = Output(tmp_path)
    output.commit_files(
        [
            DataFile(f"{table_folder(*name)}/{0:020d}-0.arrow", *name, 1, 1, 100, seq, seq, 0, 0)
            for seq, name in enumerate(names, 1)
        ]
    )
    tail = OutputTail(tmp_path)
    tail.read()
    assert list(tables(tail)) == ["a.`b.c`", "`a.b`.c", "a.b", "```a`.`b```"]


def test_removed_commits_stay_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vacuum removes commits between the question for the last one and the reading of those before it."""
    output = Output(tmp_path)
    commit(output)
    tail = OutputTail(tmp_path)
    tail.read()
    for _ in range(11):
        commit(output)
    output.log.consolidate()
    LogSegments(output.path).detach(0)
    monkeypatch.setattr(CommitLog, "latest_version", lambda self: 11)
    tail.read()
    assert "no commit 1 " in (tail.figures.error or "")
    tail.read()
    assert tables(tail) == {"shop.orders": (120, 1200, 12)}
    assert tail.figures.error is None


def test_definitions_that_are_not_certain(tmp_path: Path) -> None:
    output = Output(tmp_path)
    output.change_schema(statement("CREATE …", defined(ORDERS, 1, "id"), defined(ITEMS, 1, "id")))
    commit(output)
    tail = OutputTail(tmp_path)
    tail.read()
    assert (tail.figures.unsure_tables, tail.figures.rewritten_tables) == (0, 0)
    output.change_schema(statement("ALTER …", defined(ORDERS, 2, doubt="not understood")))
    output.change_schema(statement("ALTER …", defined(ITEMS, 2, "n"), rewritten=(ITEMS,)))
    commit(output)
    tail.read()
    assert (tail.figures.unsure_tables, tail.figures.rewritten_tables) == (1, 1)
    again = OutputTail(tmp_path)
    again.read()
    assert again.figures.unsure_tables == 1
    output.change_schema(statement("CREATE …", defined(ORDERS, 3, "id")))
    output.change_schema(statement("TRUNCATE …", emptied=(ITEMS,)))
    commit(output)
    tail.read()
    assert (tail.figures.unsure_tables, tail.figures.rewritten_tables) == (0, 0)


def test_snapshots_by_state(tmp_path: Path) -> None:
    output = Output(tmp_path)
    output.snapshots = SnapshotChange(
        tables=(
            TableSnapshot("shop", "a", "r", "done", rows=50),
            TableSnapshot("shop", "b", "r", "running", rows=30, expected_rows=20),
            TableSnapshot("shop", "c", "r", "waiting", expected_rows=40),
            TableSnapshot("shop", "d", "r", "failed", reason="…"),
        )
    )
    commit(output)
    tail = OutputTail(tmp_path)
    tail.read()
    expected = SnapshotFigures(waiting=1, running=1, done=1, failed=1, rows=30, expected_rows=70)
    assert tail.figures.snapshot == expected


def test_a_damaged_log_is_an_error_and_the_figures_stay(tmp_path: Path) -> None:
    output = Output(tmp_path)
    commit(output)
    tail = OutputTail(tmp_path)
    tail.read()
    entry = tmp_path / "_log" / f"{1:020d}.json"
    entry.write_text("{")
    tail.read()
    assert "is damaged" in (tail.figures.error or "")
    assert tables(tail) == {"shop.orders": (10, 100, 1)}
    entry.unlink()
    commit(Output(tmp_path), rows=7)
    tail.read()
    assert (tail.figures.error, tables(tail)) == (None, {"shop.orders": (17, 200, 2)})
