"""Prepared transactions in the sink: what is known of them, and the rows that undo those rolled back.

Each test runs twice: their rows are remembered, or read from the output.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.binlog.position import BinlogPosition
from engine.commands.status import status
from engine.monitoring.output_tail import OutputTail
from engine.output.change_schema import DELETE, INSERT, UPDATE_POSTIMAGE, UPDATE_PREIMAGE
from engine.output.commit_log import CommitLog
from engine.output.prepared import PreparedTransaction, UndoneTransaction
from engine.output.reader import Changes
from engine.pipeline.messages import PreparedEntries, Result, StatementFacts, XaFacts
from engine.schema.changes import SchemaChange, TableName
from engine.sink import remembered_rows
from engine.sink.committed_rows import CommittedRows
from engine.sink.undone_rows import Places
from engine.sink.writer import Writer
from tests.support.results import Rows, orders, result
from tests.support.writer_output import latest_commit, open_writer

ONE, TWO = "X'31',X'',1", "X'32',X'',1"
GTID = "3e11fa47-71ca-11e1-9e33-c80aa9429562:99"
Taken = tuple[Result, list[bytes]]


def prepare(sequence: int, *tables: Rows, xid: str = ONE, first: int = 0, **fields: Any) -> Taken:
    """A batch that ends with the XA PREPARE of a transaction, whose first entry has the ordinal `first`."""
    last = sum(len(rows.ids) for rows in tables)
    return result(sequence, tables, xa=XaFacts([PreparedEntries(xid, first, last)], []), **fields)


def roll_back(sequence: int, *tables: Rows, xid: str = ONE) -> Taken:
    """A batch that ends with XA ROLLBACK, whose entry in the feed is its last one."""
    last = 1 + sum(len(rows.ids) for rows in tables)
    change = SchemaChange(
        "statement", BinlogPosition("binlog.000001", 777), f"XA ROLLBACK {xid}", rolled_back=xid
    )
    facts = StatementFacts(GTID, 1_800_000_000_000_000)
    feed = Rows("", "", [0], [last])
    return result(sequence, [*tables, feed], schema_changes=(change,), statement=facts)


@pytest.fixture
def remembers_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """All rows are read from the output."""
    monkeypatch.setattr(remembered_rows, "MOST_BYTES", 0)


@pytest.fixture(params=["remembered", "read"], autouse=True)
def rows_are(request: pytest.FixtureRequest) -> None:
    if request.param == "read":
        request.getfixturevalue("remembers_nothing")


def undo(writer: Writer, out: Path) -> None:
    """As the sink does where rows are not remembered: commit, undo, commit."""
    if writer.to_undo is not None:
        assert not writer.is_committed and not writer.between_transactions
        writer.hurry(0.0)
        assert writer.due_in(0.0) == 0.0
        writer.finish()
        assert writer.is_committed and writer.to_undo is not None
        writer.undo(CommittedRows(CommitLog(out), writer.safe.commit, writer.to_undo), 0.0)
    assert writer.to_undo is None and writer.between_transactions
    writer.finish()


def rows_of(out: Path) -> list[tuple[int, str, str, int]]:
    """`_seq`, table, kind and id of all change rows, by `_seq`."""
    found = []
    for database, table in Changes(out).tables():
        read = Changes(out).read(database, table)
        columns = [read[name].to_pylist() for name in ("_seq", "_change_type", "id")]
        found += [(seq, table, kind, cell) for seq, kind, cell in zip(*columns, strict=True)]
    return sorted(found)


def items(ids: Sequence[int], ordinals: Sequence[int]) -> Rows:
    return Rows("shop", "items", ids, ordinals)


def test_rows_of_all_tables_come_back_in_reverse_order(tmp_path: Path) -> None:
    """Between entries of other transactions, and of the events feed, in the same batch."""
    writer = open_writer(tmp_path)
    rows = (orders([1, 20, 21], 1), items([30, 31], [5, 7]), Rows("shop", "orders", [22], [6]))
    feed = Rows("", "", [0], [4])
    writer.take(*prepare(0, *rows, feed, first=2), now=0.0)
    writer.take(*roll_back(1, orders([40])), now=0.0)
    undo(writer, tmp_path)
    writer.take(*result(2, [orders([50])]), now=1.0)
    writer.finish()
    assert rows_of(tmp_path) == [
        *[(1, "orders", "insert", 1), (2, "orders", "insert", 20), (3, "orders", "insert", 21)],
        *[(5, "items", "insert", 30), (6, "orders", "insert", 22), (7, "items", "insert", 31)],
        (8, "orders", "insert", 40),
        *[(10, "items", "delete", 31), (11, "orders", "delete", 22), (12, "items", "delete", 30)],
        *[(13, "orders", "delete", 21), (14, "orders", "delete", 20)],
        (15, "orders", "insert", 50),
    ]
    assert not latest_commit(tmp_path).prepared
    log = CommitLog(tmp_path)
    commits = map(log.read, range(log.latest_version() + 1))
    assert [commit.undone for commit in commits if commit.undone] == [(UndoneTransaction(2, 7, 10, 14),)]
    (row,) = Changes(tmp_path).read("shop", "orders").to_pylist()[-2:-1]
    assert (row["_gtid"], row["_pos"]) == (GTID, 777)
    assert row["_commit_timestamp"].timestamp() == 1_800_000_000


def test_every_kind_of_change_comes_back(tmp_path: Path) -> None:
    writer = open_writer(tmp_path)
    kinds = (INSERT, UPDATE_PREIMAGE, UPDATE_POSTIMAGE, DELETE)
    writer.take(*prepare(0, Rows("shop", "orders", [1, 2, 3, 4], [1, 2, 3, 4], kinds=kinds)), now=0.0)
    writer.take(*roll_back(1), now=0.0)
    undo(writer, tmp_path)
    assert [row[2:] for row in rows_of(tmp_path)[4:]] == [
        ("insert", 4),
        ("update_preimage", 3),
        ("update_postimage", 2),
        ("delete", 1),
    ]


@given(st.sets(st.integers(1, 60), min_size=1), st.randoms(use_true_random=False))
def test_places_are_those_from_the_last_row_on(numbers: set[int], choose: random.Random) -> None:
    """However the rows are divided among tables, and whatever is missing between them."""
    tables: list[list[int]] = [[], [], []]
    for number in sorted(numbers):
        choose.choice(tables).append(number)
    batches = [pa.RecordBatch.from_pydict({"_seq": pa.array(table, pa.int64())}) for table in tables]
    places = Places(batches)
    wanted = {number: place for place, number in enumerate(sorted(numbers, reverse=True), 1)}
    for table in tables:
        assert places.of(np.array(table, np.int64)).tolist() == [wanted[number] for number in table]


def test_one_of_several_batches(tmp_path: Path) -> None:
    writer = open_writer(tmp_path)
    writer.take(*result(0, [orders([1])]), now=0.0)
    writer.take(*result(1, [orders([2])], ends=False), now=0.0)
    writer.take(*result(2, [orders([3])], ends=False), now=0.0)
    writer.take(*prepare(3, orders([4])), now=0.0)
    writer.take(*roll_back(4), now=0.0)
    undo(writer, tmp_path)
    assert [row[2:] for row in rows_of(tmp_path)[4:]] == [("delete", 4), ("delete", 3), ("delete", 2)]


def test_what_is_prepared_is_in_every_commit_until_it_ends(tmp_path: Path) -> None:
    writer = open_writer(tmp_path)
    writer.take(*prepare(0, orders([1])), now=0.0)
    writer.finish()
    assert latest_commit(tmp_path).prepared == (PreparedTransaction(ONE, 0, 1, 1),)
    writer.close()
    writer = open_writer(tmp_path)
    writer.take(*prepare(1, orders([2]), xid=TWO), now=0.0)
    writer.finish()
    assert [each.xid for each in latest_commit(tmp_path).prepared] == [ONE, TWO]
    seen, tail = status(tmp_path), OutputTail(tmp_path)
    assert seen.prepared == (PreparedTransaction(ONE, 0, 1, 1), PreparedTransaction(TWO, 1, 2, 2))
    assert f"XA prepared  2, the first of commit 0: {ONE}" in seen.text().splitlines()
    assert json.loads(seen.json())["prepared"][1]["xid"] == TWO
    tail.read()
    assert tail.figures.prepared_transactions == 2
    writer.take(*result(2, [orders([3])], xa=XaFacts([], [ONE, TWO])), now=0.0)
    writer.take(*roll_back(3), now=0.0)
    assert writer.to_undo is None
    writer.finish()
    assert latest_commit(tmp_path).prepared == ()
    assert status(tmp_path).prepared == () and "XA prepared" not in status(tmp_path).text()
    tail.read()
    assert tail.figures.prepared_transactions == 0


def test_a_name_that_is_used_again(tmp_path: Path) -> None:
    """The transaction that was committed under it is not undone."""
    writer = open_writer(tmp_path)
    writer.take(*prepare(0, orders([1])), now=0.0)
    facts = XaFacts([PreparedEntries(ONE, 2, 2)], [ONE])
    writer.take(*result(1, [orders([2, 3])], xa=facts), now=0.0)
    writer.take(*roll_back(2), now=0.0)
    undo(writer, tmp_path)
    assert rows_of(tmp_path)[-1] == (5, "orders", "delete", 3)


def test_a_start_of_the_server_undoes_what_it_has_lost(tmp_path: Path) -> None:
    """There, and in no other place: another transaction may change the rows afterwards."""
    writer = open_writer(tmp_path)
    for sequence, xid in enumerate((ONE, TWO, "X'33',X'',1")):
        writer.take(*prepare(sequence, orders([sequence + 1]), xid=xid), now=0.0)
    writer.take(*result(3, surviving_xids=("X'39',X'',1", TWO)), now=0.0)
    while writer.to_undo is not None:
        writer.finish()
        writer.undo(CommittedRows(CommitLog(tmp_path), writer.safe.commit, writer.to_undo), 0.0)
    writer.take(*result(4, [orders([3])]), now=0.0)
    writer.take(*result(5, surviving_xids=(TWO,)), now=0.0)
    assert writer.between_transactions
    writer.finish()
    assert [(seq, kind, key) for seq, _, kind, key in rows_of(tmp_path)] == [
        *((1, "insert", 1), (2, "insert", 2), (3, "insert", 3)),
        *((4, "delete", 1), (5, "delete", 3), (6, "insert", 3)),
    ]
    undone = Changes(tmp_path).read("shop", "orders").to_pylist()[3]
    assert (undone["_file"], undone["_pos"], undone["_gtid"]) == ("binlog.000001", 404, None)
    assert [each.xid for each in latest_commit(tmp_path).prepared] == [TWO]
    log = CommitLog(tmp_path)
    assert [*log.undone(0, log.latest_version())] == [
        UndoneTransaction(1, 1, 4, 4),
        UndoneTransaction(3, 3, 5, 5),
    ]
    assert log.summary_at(log.latest_version()).counters["xa_transactions_lost"] == 2


def test_a_transaction_without_entries_is_none(tmp_path: Path) -> None:
    writer = open_writer(tmp_path)
    writer.take(*result(0, [orders([1])], xa=XaFacts([PreparedEntries(ONE, 2, 1)], [])), now=0.0)
    writer.take(*roll_back(1), now=0.0)
    assert writer.to_undo is None
    assert writer.between_transactions


@pytest.mark.usefixtures("remembers_nothing")
@pytest.mark.parametrize("placed", [True, False])
def test_the_run_ends_before_the_rows_are_undone(tmp_path: Path, placed: bool) -> None:
    """The next one undoes them first, but commits nothing before it is at a position of its own server."""
    writer = open_writer(tmp_path)
    writer.take(*prepare(0, orders([1])), now=0.0)
    writer.take(*roll_back(1), now=0.0)
    writer.finish()
    writer.close()
    assert not writer.between_transactions
    other = {} if placed else {"server_uuid": "11111111-71ca-11e1-9e33-c80aa9429562"}
    writer = open_writer(tmp_path, **other)
    assert writer.to_undo is not None and writer.is_committed
    writer.undo(CommittedRows(CommitLog(tmp_path), 0, writer.to_undo), now=0.0)
    assert (writer.due_in(0.0) is not None) == placed
    writer.take(*result(2, [orders([2])]), now=0.0)
    writer.finish()
    assert [row[2:] for row in rows_of(tmp_path)] == [("insert", 1), ("delete", 1), ("insert", 2)]


def test_rows_from_before_a_snapshot_began_stay_as_they_are(tmp_path: Path) -> None:
    writer = open_writer(tmp_path)
    writer.take(*prepare(0, orders([1], 1), items([2], [2])), now=0.0)
    writer.begin_snapshot(TableName("shop", "orders"), now=0.0)
    writer.take(*roll_back(1), now=0.0)
    undo(writer, tmp_path)
    assert [row[1:] for row in rows_of(tmp_path)[-2:]] == [
        ("orders", "truncate", None),
        ("items", "delete", 2),
    ]
    assert latest_commit(tmp_path).last_seq == 5


@pytest.mark.usefixtures("remembers_nothing")
def test_rows_that_were_removed_are_counted(tmp_path: Path) -> None:
    writer = open_writer(tmp_path)
    writer.take(*prepare(0, orders([1])), now=0.0)
    writer.finish()
    writer.take(*roll_back(1), now=0.0)
    writer.finish()
    assert writer.to_undo is not None
    rollback = writer.to_undo.rolled_back
    rows = CommittedRows(CommitLog(tmp_path), 1, PreparedTransaction(ONE, -1, 1, 1, rollback))
    assert rows.are_gone
    writer.undo(rows, now=0.0)
    writer.take(*result(2, [orders([2])]), now=0.0)
    writer.finish()
    assert latest_commit(tmp_path).counters["xa_rollbacks_not_undone"] == 1
