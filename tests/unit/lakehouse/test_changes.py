"""What is known of a range before Spark reads it, and which rows it has, from outputs made here."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from engine.lakehouse.changes import range_facts
from engine.output.commit_log import CommitLog
from engine.schema.changes import TableName
from engine.spark.log_view import LogView
from engine.spark.table_rows import TableRows
from tests.support.logged_table import AMOUNT, ID, NAME, ORDERS, Table
from tests.support.output import Change, Output, insert


def rows_after(out: Path, after: int = 0) -> TableRows:
    log = CommitLog(out)
    return TableRows.since_emptied(LogView(log, log.latest_version()), ORDERS, after)


def test_rows_and_partial_images(tmp_path: Path) -> None:
    table = Table(Output(tmp_path), ID, NAME, AMOUNT)
    for number in range(5):
        table.insert(id=number)
    table.commit()
    table.changes.append(Change("delete", {"id": 3}, ["name", "amount"]))
    table.commit()
    everything = range_facts(tmp_path, *rows_after(tmp_path).files(0), frozenset())
    assert (everything.rows, everything.partial) == (6, True)
    some = TableRows(LogView(table.output.log, 0), ORDERS, 3)
    facts = range_facts(tmp_path, *some.files(0), frozenset())
    assert (facts.rows, facts.partial) == (2, False)
    for generated, partial in (({"name"}, True), ({"name", "amount"}, False)):
        assert range_facts(tmp_path, *rows_after(tmp_path).files(0), generated).partial is partial


def test_rows_that_were_rewritten_do_not_count_once_the_table_is_empty(tmp_path: Path) -> None:
    table = Table(Output(tmp_path), ID, NAME)
    table.insert(id=1)
    table.alter((ID, NAME), "id", "name", rewritten=(ORDERS,))
    table.truncate()
    table.insert(id=2)
    table.commit()
    rows_after(tmp_path).check_complete(allow_rewritten=False)


def test_files_of_a_table_with_two_names_in_one_commit_are_in_order(tmp_path: Path) -> None:
    output = Output(tmp_path)
    for number in range(2):
        output.table(f"shop.t{number}", pa.schema([("id", pa.int64())]))
    output.commit({"shop.t1": [insert(id=1)], "shop.t0": [insert(id=1)]})
    names = [TableName("shop", "t0"), TableName("shop", "t1")]
    view = LogView(output.log, 0)
    for given in (names, names[::-1]):
        assert [file.first_seq for _, file in view.files(given, 0)] == [1, 2]


def test_a_view_that_moves_on(tmp_path: Path) -> None:
    table = Table(Output(tmp_path), ID, NAME)
    for number in range(4):
        table.insert(id=number)
        table.commit()
    log = table.output.log
    view = LogView(log, 1)
    assert view.last_seq == 2 and view.commit_after(2) == 2 and view.commit_after(1) == 1
    assert [commit.version for commit in view.move_to(3)] == [2, 3]
    assert [commit for commit, _ in view.files([ORDERS], 3)] == [3]
    assert [commit for commit, _ in view.files([ORDERS], 0)] == [0, 1, 2, 3]
    assert [view.commit_after(seq) for seq in range(5)] == [0, 1, 2, 3, 4]
    table.alter((NAME, ID), "name", "id")
    table.commit()
    last = log.latest_version()
    view.move_to(last)
    assert [entry.commit for entry in view.history(ORDERS)] == [0, last]
    assert not list(view.files([ORDERS], last))
    assert view.has_key(ORDERS)
